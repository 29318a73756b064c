// Driver results as messages.
#include "cu_error.h"

#include <stdio.h>

typedef struct Advice {
  CuResult result;
  bool sticky;
  Status status;
  const char *text;
} Advice;

// What to do about a result; those without a row get the driver's own words alone.
static const Advice advice[] = {
    {1, false, ST_DEVICE, "an argument of the launch or copy is out of the driver's range"},
    {2, false, ST_DEVICE, "free device memory, or take a smaller problem"},
    {3, false, ST_DEVICE, "the driver was not started or is shutting down"},
    {100, false, ST_DEVICE, "the driver sees no GPU; check nvidia-smi and CUDA_VISIBLE_DEVICES"},
    {101, false, ST_DEVICE, "there is no GPU with that number"},
    {200, false, ST_INPUT, "the image is neither PTX text nor a cubin"},
    {201, false, ST_DEVICE, "the CUDA context is gone or belongs to another thread's stack"},
    {209, false, ST_DEVICE,
     "the .target does not fit this GPU: `a` targets run on exactly their own architecture"},
    {214, true, ST_DEVICE, "memory of the GPU is failing (uncorrectable ECC error)"},
    {218, false, ST_INPUT, "the driver's assembler refuses the PTX"},
    {220, true, ST_DEVICE, "an NVLink error; the GPU has to be reset"},
    {221, false, ST_DEVICE,
     "libnvidia-ptxjitcompiler.so.1 is missing; it belongs to the driver's packages"},
    {222, false, ST_DEVICE, "the .version is newer than the driver"},
    {223, false, ST_DEVICE, "CUDA_DISABLE_PTX_JIT or CUDA_DISABLE_JIT is set; unset it"},
    {500, false, ST_INPUT, "the module has no function of that name"},
    {700, true, ST_DEVICE,
     "the kernel read or wrote memory that is not its own; run it with --device sim to see where"},
    {701, false, ST_DEVICE,
     "registers x threads or shared memory exceed what one block may have; use fewer of either"},
    {702, true, ST_DEVICE, "the kernel ran into the display watchdog; make the problem smaller"},
    {709, true, ST_DEVICE, "the context was destroyed"},
    {710, true, ST_DEVICE, "the kernel hit an assert"},
    {714, true, ST_DEVICE, "a fault in the call stack or an error of the hardware"},
    {715, true, ST_DEVICE, "the kernel hit an instruction this GPU lacks, or a trap"},
    {716, true, ST_DEVICE,
     "a vector access at an address that is no multiple of its size; run it with --device sim"},
    {717, true, ST_DEVICE, "an address of the wrong space; run it with --device sim"},
    {718, true, ST_DEVICE, "a branch or call left the program"},
    {719, true, ST_DEVICE, "the kernel died; run it with --device sim to see where"},
    {900, false, ST_DEVICE, "the call is not allowed while a graph is being captured"},
    {912, false, ST_DEVICE, "the cluster is larger than this GPU allows for this kernel"},
};

static const Advice *advice_for(CuResult r) {
  for (size_t i = 0; i < sizeof advice / sizeof *advice; i++)
    if (advice[i].result == r) return &advice[i];
  return NULL;
}

bool cu_sticky(CuResult r) {
  const Advice *a = advice_for(r);
  return a && a->sticky;
}

const char *cu_result_name(const CuApi *api, Arena *a, CuResult r) {
  const char *name = NULL;
  if (api->cuGetErrorName(r, &name) || !name) return arena_printf(a, "unknown result %d", r);
  return arena_printf(a, "%s (%d)", name, r);
}

Status cu_result(const CuApi *api, CuResult r, Diag *d, const char *what, ...) {
  va_list ap;
  va_start(ap, what);
  char *doing = arena_vprintf(d->arena, what, ap);
  va_end(ap);
  const char *text = NULL;
  if (api->cuGetErrorString(r, &text) || !text) text = "the driver has no text for it";
  const Advice *a = advice_for(r);
  return diag_fail(d, a ? a->status : ST_DEVICE, "%s: %s: %s%s%s", doing,
                   cu_result_name(api, d->arena, r), text, a ? "; " : "", a ? a->text : "");
}
