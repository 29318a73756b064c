// Events and graphs of the CUDA device.
#include "cu_device.h"

#include <assert.h>
#include <stdlib.h>

struct Graph {
  CuGraph graph;
  CuGraphExec exec;
  Graph *next, **link; // link: whoever points at this one
};

Status cu_record(Device *dev, int slot, Diag *d) {
  CuDevice *cu = cu_of(dev);
  assert(slot >= 0 && slot < DEVICE_EVENTS);
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "recording an event", d);
  if (st) return st;
  CuResult r = CU_SUCCESS;
  if (!cu->event[slot] && (r = cu->api.cuEventCreate(&cu->event[slot], CU_EVENT_DEFAULT)))
    cu->event[slot] = NULL;
  if (!r) r = cu->api.cuEventRecord(cu->event[slot], cu->stream);
  if (r) st = cu_failed(cu, r, d, "recording an event");
  cu_leave(cu);
  return st;
}

Status cu_elapsed(Device *dev, int from, int to, double *ms, Diag *d) {
  CuDevice *cu = cu_of(dev);
  float elapsed = 0;
  assert(cu->event[from] && cu->event[to]);
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "reading an event", d);
  if (st) return st;
  CuResult r = cu->api.cuEventSynchronize(cu->event[to]);
  if (!r) r = cu->api.cuEventElapsedTime(&elapsed, cu->event[from], cu->event[to]);
  if (r) st = cu_failed(cu, r, d, "waiting for the kernels timed");
  *ms = elapsed;
  cu_leave(cu);
  return st;
}

void cu_events_free(CuDevice *cu) {
  for (int i = 0; i < DEVICE_EVENTS; i++)
    if (cu->event[i]) cu->api.cuEventDestroy(cu->event[i]);
}

// ---- graphs -------------------------------------------------------------------------------------

static bool has_graphs(const CuApi *api) {
  return api->cuStreamBeginCapture && api->cuStreamEndCapture && api->cuGraphInstantiateWithFlags &&
         api->cuGraphLaunch && api->cuGraphExecDestroy && api->cuGraphDestroy;
}

Status cu_graph_begin(Device *dev, Diag *d) {
  CuDevice *cu = cu_of(dev);
  if (!has_graphs(&cu->api))
    return diag_fail(d, ST_DEVICE, "%s: this driver has no CUDA graphs (r470 has them)",
                     cu->base.info.id);
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "capturing a graph", d);
  if (st) return st;
  CuResult r = cu->api.cuStreamBeginCapture(cu->stream, CU_CAPTURE_THREAD_LOCAL);
  if (r) st = cu_failed(cu, r, d, "capturing a graph");
  cu->capturing = !r;
  cu_leave(cu);
  return st;
}

static void destroy(CuDevice *cu, Graph *g) {
  if (g->exec) cu->api.cuGraphExecDestroy(g->exec);
  if (g->graph) cu->api.cuGraphDestroy(g->graph);
  free(g);
}

static void link_graph(CuDevice *cu, Graph *g) {
  g->next = cu->graphs;
  g->link = &cu->graphs;
  if (g->next) g->next->link = &g->next;
  cu->graphs = g;
}

Status cu_graph_end(Device *dev, Graph **out, Diag *d) {
  CuDevice *cu = cu_of(dev);
  *out = NULL;
  assert(cu->capturing);
  Status st = cu_enter(cu, CU_ANY_TIME, "capturing a graph", d);
  if (st) return st;
  cu->capturing = false;
  Graph *g = calloc(1, sizeof *g);
  CuGraph graph = NULL;
  // Always end the capture: the stream is unusable until then.
  CuResult r = cu->api.cuStreamEndCapture(cu->stream, &graph);
  if (g) g->graph = graph;
  if (!g)
    st = diag_fail(d, ST_DEVICE, "out of host memory");
  else if (!r)
    r = cu->api.cuGraphInstantiateWithFlags(&g->exec, graph, 0);
  if (r) st = cu_failed(cu, r, d, "making a graph");
  if (!st) {
    link_graph(cu, g);
    *out = g;
  } else if (g) {
    if (r) g->exec = NULL;
    destroy(cu, g);
  }
  cu_leave(cu);
  return st;
}

Status cu_graph_launch(Device *dev, Graph *g, Diag *d) {
  CuDevice *cu = cu_of(dev);
  Status st = cu_enter(cu, CU_NOT_IN_CAPTURE, "launching a graph", d);
  if (st) return st;
  CuResult r = cu->api.cuGraphLaunch(g->exec, cu->stream);
  if (r) st = cu_failed(cu, r, d, "launching a graph");
  cu_leave(cu);
  return st;
}

void cu_graph_free(Device *dev, Graph *g) {
  CuDevice *cu = cu_of(dev);
  if (!g) return;
  *g->link = g->next;
  if (g->next) g->next->link = g->link;
  bool current = !cu->api.cuCtxPushCurrent(cu->context);
  destroy(cu, g);
  if (current) cu_leave(cu);
}
