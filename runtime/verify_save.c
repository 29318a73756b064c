// What came out of a verification, as .npy files.
#include <unistd.h>

#include "npy.h"
#include "outfile.h"
#include "verify_gates.h"

// Both files or none: what could not be finished leaves no folder that was not there, either.
Status save_outputs(Arena *a, const char *dir, const Outputs *out, Diag *d) {
  const char *missing = outfile_missing(a, dir);
  const char *o = arena_printf(a, "%s/o.npy", dir), *lse = arena_printf(a, "%s/lse.npy", dir);
  Status st = outfile_folder(a, dir, d);
  if (st == ST_OK) st = npy_write_tensor(a, o, &out->o, d);
  if (st == ST_OK && out->lse.host) {
    st = npy_write_tensor(a, lse, &out->lse, d);
    if (st != ST_OK) unlink(o);
  }
  if (st != ST_OK) outfile_unmake(a, dir, missing);
  return st;
}
