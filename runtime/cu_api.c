// Resolving the driver's functions.
#include "cu_api.h"

#include <dlfcn.h>
#include <stdlib.h>
#include <string.h>

#include "cu_error.h"

// cuGetProcAddress_v2(name, &fn, version, flags, &status): the driver picks the ABI for `version`.
typedef CuResult (*GetProc)(const char *, void **, int, uint64_t, int *);

static void *resolve(void *library, GetProc get, const char *name, const char *suffix) {
  void *fn = NULL;
  int status = 0;
  if (get && get(name, &fn, CU_API_VERSION, 0, &status) == CU_SUCCESS && fn) return fn;
  char exported[96];
  size_t n = strlen(name), m = strlen(suffix);
  if (n + m >= sizeof exported) return NULL;
  memcpy(exported, name, n);
  memcpy(exported + n, suffix, m + 1);
  return dlsym(library, exported);
}

static Status resolve_all(CuApi *api, const char *path, Diag *d) {
  GetProc get;
  *(void **)&get = dlsym(api->library, "cuGetProcAddress_v2");
  enum { R, O };
#define X(need, name, suffix, ...)                                                                 \
  *(void **)&api->name = resolve(api->library, get, #name, suffix);                                \
  if (!api->name && need == R)                                                                     \
    return diag_fail(d, ST_DEVICE,                                                                 \
                     "%s has no %s: the driver is too old, version 450 or newer is needed", path,  \
                     #name suffix);
  CU_SYMBOLS(X)
#undef X
  return ST_OK;
}

Status cu_api_open(const char *path, CuApi *out, Diag *d) {
  memset(out, 0, sizeof *out);
  if (!path) path = getenv("PTXSMITH_LIBCUDA");
  if (!path || !*path) path = "libcuda.so.1";
  // The handle is never closed: the driver keeps threads and exit handlers of its own.
  out->library = dlopen(path, RTLD_NOW | RTLD_LOCAL);
  if (!out->library)
    return diag_fail(d, ST_DEVICE,
                     "no CUDA driver: %s (the NVIDIA driver installs libcuda.so.1; "
                     "`--device sim` needs none)",
                     dlerror());
  Status st = resolve_all(out, path, d);
  if (st) return st;
  CuResult r = out->cuInit(0);
  return r ? cu_result(out, r, d, "starting the CUDA driver") : ST_OK;
}
