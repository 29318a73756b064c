// sim_launch.c: a grid: clusters of CTAs handed to host threads in order.
#include <stdlib.h>
#include <unistd.h>

#include "sim_count.h"
#include "sim_race.h"
#include "sim_run.h"

// ---- what a launch may be -----------------------------------------------------------------------
static Status check_shape(const Launch *l, Diag *d) {
  static const uint32_t most_block[3] = {1024, 1024, 64}, most_grid[3] = {0x7fffffff, 65535, 65535};
  uint64_t threads = 1;
  for (int i = 0; i < 3; i++) {
    if (!l->block[i] || l->block[i] > most_block[i])
      return diag_fail(d, ST_INPUT, "launch: block.%c is %u: 1 to %u", 'x' + i, l->block[i],
                       most_block[i]);
    if (!l->grid[i] || l->grid[i] > most_grid[i])
      return diag_fail(d, ST_INPUT, "launch: grid.%c is %u: 1 to %u", 'x' + i, l->grid[i],
                       most_grid[i]);
    threads *= l->block[i];
  }
  return threads <= 1024 ? ST_OK
                         : diag_fail(d, ST_INPUT, "launch: %llu threads in a block, 1024 at most",
                                     (unsigned long long)threads);
}

static Status check_kernel(const SimDevice *dev, const SimKernel *k, const Launch *l, Diag *d) {
  const Program *p = k->prog;
  const PtxFunc *f = p->entry->ptx;
  uint32_t threads = l->block[0] * l->block[1] * l->block[2];
  if (threads > (uint32_t)k->base.info.max_threads)
    return diag_fail(d, ST_INPUT, "launch: %u threads in a block, %s allows %d", threads, f->name,
                     k->base.info.max_threads);
  for (int i = 0; i < 3; i++)
    if (f->reqntid[i] && f->reqntid[i] != l->block[i])
      return diag_fail(d, ST_INPUT, "launch: block.%c is %u, %s requires %u", 'x' + i, l->block[i],
                       f->name, f->reqntid[i]);
  if (l->arg_bytes != f->param_bytes)
    return diag_fail(d, ST_INPUT, "launch: %u bytes of arguments, %s takes %llu", l->arg_bytes,
                     f->name, (unsigned long long)f->param_bytes);
  uint64_t shared = (uint64_t)p->dynamic_at + l->smem;
  if (shared > dev->base.info.smem_optin)
    return diag_fail(d, ST_INPUT, "launch: %llu bytes of shared memory in a block, %u at most",
                     (unsigned long long)shared, dev->base.info.smem_optin);
  return ST_OK;
}

// The cluster comes from the launch, else from the kernel; a multiple of it fills the grid.
static Status check_cluster(const SimKernel *k, const Launch *l, uint32_t cluster[3], Diag *d) {
  const PtxFunc *f = k->prog->entry->ptx;
  uint32_t blocks = 1;
  for (int i = 0; i < 3; i++) {
    uint32_t asked = l->cluster[i], fixed = f->cluster[i];
    bool by_launch = l->cluster[0] * l->cluster[1] * l->cluster[2] > 1;
    if (fixed && by_launch && asked != fixed)
      return diag_fail(d, ST_INPUT, "launch: cluster.%c is %u, %s requires %u", 'x' + i, asked,
                       f->name, fixed);
    cluster[i] = fixed ? fixed : asked ? asked : 1;
    if (l->grid[i] % cluster[i])
      return diag_fail(d, ST_INPUT, "launch: grid.%c is %u: not a multiple of the cluster's %u",
                       'x' + i, l->grid[i], cluster[i]);
    blocks = cluster[i] > SIM_MAX_CLUSTER ? SIM_MAX_CLUSTER + 1 : blocks * cluster[i];
  }
  return blocks <= SIM_MAX_CLUSTER
             ? ST_OK
             : diag_fail(d, ST_INPUT, "launch: %u x %u x %u blocks in a cluster: %d at most",
                         cluster[0], cluster[1], cluster[2], SIM_MAX_CLUSTER);
}

// ---- running ------------------------------------------------------------------------------------
static void keep_trap(Grid *g, const Cluster *k) {
  pthread_mutex_lock(&g->lock);
  if (k->order < atomic_load(&g->first_bad)) {
    g->trap = *sim_cluster_trap(k);
    atomic_store(&g->first_bad, k->order);
  }
  pthread_mutex_unlock(&g->lock);
}

// Clusters in front of one that trapped still run, so that the message is about the first of them
// whatever the number of threads.
static void work(void *arg, int worker) {
  (void)worker;
  Grid *g = arg;
  Cluster *k = sim_cluster_new(g);
  if (!k) {
    atomic_store(&g->no_memory, true);
    return;
  }
  for (;;) {
    uint64_t i = atomic_fetch_add(&g->next, 1);
    if (i >= g->nclusters || i > atomic_load(&g->first_bad) || atomic_load(&g->stopped))
      break;
    if (!sim_cluster_run(k, i) && sim_cluster_trap(k))
      keep_trap(g, k);
  }
  if (g->counts) {
    pthread_mutex_lock(&g->lock);
    for (int r = 0; r < k->n; r++) {
      sim_count_cta(k->ctas[r], g->counts);
      g->barriers += k->ctas[r]->barriers;
    }
    pthread_mutex_unlock(&g->lock);
  }
  sim_cluster_free(k);
}

// Counts must not depend on which of two threads came first: CTAs that deal out their work among
// each other are counted one after the other.
static int thread_count(const SimDevice *dev, const Program *p, uint64_t nclusters) {
  const SimOpts *o = &dev->opts;
  bool one =
      o->seed || o->sanitize || o->completion == SIM_RANDOM || (o->counters && p->asks_others);
  long n = one ? 1 : o->threads ? o->threads : sysconf(_SC_NPROCESSORS_ONLN);
  return n < 1 ? 1 : (uint64_t)n > nclusters ? (int)nclusters : (int)n;
}

Status sim_launch(SimDevice *dev, const Launch *l, Diag *d) {
  SimKernel *k = (SimKernel *)l->kernel;
  Status st = check_shape(l, d);
  if (st == ST_OK)
    st = check_kernel(dev, k, l, d);
  uint32_t cluster[3];
  if (st == ST_OK)
    st = check_cluster(k, l, cluster, d);
  if (st != ST_OK)
    return st;
  const Program *p = k->prog;
  Grid g = {.dev = dev, .kernel = k, .prog = p, .launch = *l, .dynamic_at = p->dynamic_at,
            .first_bad = UINT64_MAX};
  if (dev->opts.counters) {
    g.counts = calloc((size_t)p->nsites + 1, sizeof *g.counts);
    if (!g.counts || !sim_count_begin(dev)) {
      free(g.counts);
      return diag_fail(d, ST_DEVICE, "sim: out of host memory for counters");
    }
  }
  memcpy(g.cluster, cluster, sizeof g.cluster);
  uint32_t blocks = cluster[0] * cluster[1] * cluster[2];
  g.is_cluster = blocks > 1 || p->entry->ptx->cluster[0];
  g.nclusters = (uint64_t)l->grid[0] * l->grid[1] * l->grid[2] / blocks;
  g.params = (Memory){.bytes = l->arg_bytes, .data = (uint8_t *)(uintptr_t)l->args};
  if (dev->opts.sanitize) {
    if (!dev->race && !(dev->race = race_new(dev)))
      return diag_fail(d, ST_DEVICE, "sim: out of host memory for the race detector");
    race_begin(dev->race, &g);
  } else {
    race_settle(dev->race);
  }
  pthread_mutex_init(&g.lock, NULL);
  sim_pool_run(dev->pool, thread_count(dev, p, g.nclusters), work, &g);
  pthread_mutex_destroy(&g.lock);
  if (g.counts)
    sim_count_end(dev, k, g.counts, g.barriers);
  free(g.counts);
  if (atomic_load(&g.no_memory))
    return diag_fail(d, ST_DEVICE, "sim: out of host memory for a block's registers");
  if (atomic_load(&g.stopped))
    return ST_INTERRUPTED;
  Status raced = dev->opts.sanitize ? race_report(dev->race, &g, d) : ST_OK;
  return g.trap.set ? sim_trap_report(&g, &g.trap, d) : raced;
}
