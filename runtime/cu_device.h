// The CUDA device's insides, shared by the cu_*.c files only.
#ifndef PTXSMITH_CU_DEVICE_H
#define PTXSMITH_CU_DEVICE_H

#include "cu_error.h"
#include "device.h"

typedef struct CuKernel CuKernel;

typedef struct CuDevice {
  Device base; // first: a Device * is a CuDevice *
  CuApi api;
  CuDeviceId id;
  CuContext context;
  CuStream stream;
  bool adopted;   // context and stream are the caller's
  bool capturing; // between graph_begin and graph_end
  char death[160]; // the first sticky error, for the messages after it
  CuEvent event[DEVICE_EVENTS]; // made when first recorded
  CuPtr *buffers; int nbuffers, buffers_cap;
  CuKernel *kernels; // list
  Graph *graphs;     // list
} CuDevice;

enum { CU_MAX_PARAMS = 1024 }; // of a kernel

struct CuKernel {
  Kernel base; // first
  CuModule module;
  CuFunction function;
  uint32_t smem_allowed; // dynamic shared memory asked for so far
  bool large_cluster;    // asked for
  uint32_t *param_at;   // offsets of the parameters in the packed block
  uint64_t param_bytes; // its size
  int nparams;
  char *log;
  char name[128];
  CuKernel *next, **link; // link: whoever points at this one
};

static inline CuDevice *cu_of(Device *dev) { return (CuDevice *)dev; }

// Makes the device's context current on this thread, whatever thread it is.  Fails when the device
// is dead, or when `what` can't be done during capture and one is under way.  Every cu_enter that
// returns ST_OK is followed by one cu_leave.
typedef enum CuWhen { CU_ANY_TIME, CU_NOT_IN_CAPTURE } CuWhen;
Status cu_enter(CuDevice *cu, CuWhen when, const char *what, Diag *d);
void cu_leave(CuDevice *cu);
// As cu_result, and notes a sticky error.
Status cu_failed(CuDevice *cu, CuResult r, Diag *d, const char *what, ...)
    __attribute__((format(printf, 4, 5)));

// With the library at `path` (NULL: the driver's): what cuda_open and device_adopt are made of.
Status cu_open(const char *path, int index, Device **out, Diag *d);
Status cu_adopt(const char *path, void *context, void *stream, Device **out, Diag *d);

// cu_kernel.c
Status cu_load(Device *dev, const Source *ptx, const LineMap *map, const PtxModule *module,
               const char *entry, Kernel **out, Diag *d);
void cu_kernel_free(Kernel *k);
Status cu_occupancy(Kernel *k, uint32_t threads, uint32_t smem, int *blocks, Diag *d);
Status cu_clusters(Kernel *k, const uint32_t cluster[3], uint32_t threads, uint32_t smem, int *n,
                   Diag *d);
Status cu_launch(Device *dev, const Launch *l, Diag *d);

// cu_jit.c: the JIT's logs, said in terms of the template.
// Lines `ptxas application ptx input, line N; ...` become errors with a place; returns how many.
int cu_jit_errors(const char *log, const Source *ptx, const LineMap *map, Diag *d);
// The info log with template lines in place of PTX lines (malloc'ed).  Remarks C75xx and warnings
// are also added to `d` as warnings.
char *cu_jit_info(const char *log, const Source *ptx, const LineMap *map, Diag *d);
// The driver that first takes a .version, "r580"; NULL when unknown.
const char *cu_driver_for(int ptx_version);

// cu_graph.c
Status cu_record(Device *dev, int slot, Diag *d);
Status cu_elapsed(Device *dev, int from, int to, double *ms, Diag *d);
Status cu_graph_begin(Device *dev, Diag *d);
Status cu_graph_end(Device *dev, Graph **out, Diag *d);
Status cu_graph_launch(Device *dev, Graph *g, Diag *d);
void cu_graph_free(Device *dev, Graph *g);
void cu_events_free(CuDevice *cu);

#endif
