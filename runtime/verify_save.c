// What came out of a verification, as .npy files.
#include "npy.h"
#include "outfile.h"
#include "verify_gates.h"

Status save_outputs(Arena *a, const char *dir, const Outputs *out, Diag *d) {
  Status st = outfile_folder(a, dir, d);
  if (st == ST_OK) st = npy_write_tensor(a, arena_printf(a, "%s/o.npy", dir), &out->o, d);
  if (st == ST_OK && out->lse.host)
    st = npy_write_tensor(a, arena_printf(a, "%s/lse.npy", dir), &out->lse, d);
  return st;
}
