// sim_sreg.c: special registers, as places in the frame that are filled before a CTA runs.
#include "sim_ops.h"
#include "sim_run.h"

static bool per_block(PtxSreg s) {
  return s == PTX_SREG_CTAID || s == PTX_SREG_CLUSTERID;
}

static uint32_t lane_mask(PtxSreg s, uint32_t lane) {
  uint32_t bit = 1u << lane;
  switch (s) {
  case PTX_SREG_LANEMASK_EQ: return bit;
  case PTX_SREG_LANEMASK_LT: return bit - 1;
  case PTX_SREG_LANEMASK_LE: return bit | (bit - 1);
  case PTX_SREG_LANEMASK_GT: return ~(bit | (bit - 1));
  default: return ~(bit - 1); // GE
  }
}

static uint32_t thread_id(const uint32_t block[3], uint32_t linear, uint8_t dim) {
  switch (dim) {
  case 0: return linear % block[0];
  case 1: return linear / block[0] % block[1];
  case 2: return linear / block[0] / block[1];
  default: return 0;
  }
}

static uint32_t in_cluster(const Cta *c, uint8_t dim) {
  return thread_id(c->grid->cluster, c->rank, dim);
}

static uint64_t value(const Warp *w, PtxSreg s, uint8_t dim, uint32_t lane) {
  const Cta *c = w->cta;
  const Launch *l = &c->grid->launch;
  const uint32_t *cluster = c->grid->cluster;
  bool xyz = dim < 3;
  switch (s) {
  case PTX_SREG_TID: return thread_id(l->block, (uint32_t)w->index * 32 + lane, dim);
  case PTX_SREG_NTID: return xyz ? l->block[dim] : 0;
  case PTX_SREG_CTAID: return xyz ? c->id[dim] : 0;
  case PTX_SREG_NCTAID: return xyz ? l->grid[dim] : 0;
  case PTX_SREG_CLUSTERID: return xyz ? c->id[dim] / cluster[dim] : 0;
  case PTX_SREG_NCLUSTERID: return xyz ? l->grid[dim] / cluster[dim] : 0;
  case PTX_SREG_CLUSTER_CTAID: return xyz ? in_cluster(c, dim) : 0;
  case PTX_SREG_CLUSTER_NCTAID: return xyz ? cluster[dim] : 0;
  case PTX_SREG_CLUSTER_CTARANK: return c->rank;
  case PTX_SREG_CLUSTER_NCTARANK: return (uint64_t)c->cluster->n;
  case PTX_SREG_IS_EXPLICIT_CLUSTER: return c->grid->is_cluster;
  case PTX_SREG_LANEID: return lane;
  case PTX_SREG_WARPID: return (uint64_t)w->index;
  case PTX_SREG_NWARPID: return (uint64_t)c->nwarps;
  case PTX_SREG_NSMID: return (uint64_t)c->grid->dev->base.info.sm_count;
  case PTX_SREG_LANEMASK_EQ:
  case PTX_SREG_LANEMASK_LE:
  case PTX_SREG_LANEMASK_LT:
  case PTX_SREG_LANEMASK_GE:
  case PTX_SREG_LANEMASK_GT: return lane_mask(s, lane);
  case PTX_SREG_DYNAMIC_SMEM_SIZE: return l->smem;
  case PTX_SREG_TOTAL_SMEM_SIZE: return c->shared.bytes;
  // The memory that the system keeps lies where no variable is: nobody can use it by chance.
  case PTX_SREG_RESERVED_SMEM_OFFSET_BEGIN:
  case PTX_SREG_RESERVED_SMEM_OFFSET_0:
  case PTX_SREG_RESERVED_SMEM_OFFSET_1: return SIM_RESERVED;
  case PTX_SREG_RESERVED_SMEM_OFFSET_END: return SIM_RESERVED + SIM_RESERVED_USED;
  case PTX_SREG_RESERVED_SMEM_OFFSET_CAP: return SIM_RESERVED_BYTES;
  default: return 0; // %smid, %gridid
  }
}

static void fill(Warp *w, const FrameSreg *s) {
  for (int level = 0; level < s->func->levels; level++) {
    uint8_t *at = w->file + s->func->frame + (size_t)level * s->func->frame_bytes + s->at;
    for (uint32_t i = 0; i < 32; i++) {
      uint64_t v = value(w, (PtxSreg)s->sreg, s->dim, i);
      if (s->width == 8)
        ((uint64_t *)at)[i] = v;
      else if (s->width == 4)
        ((uint32_t *)at)[i] = (uint32_t)v;
      else
        *(uint32_t *)at = v ? SIM_FULL : 0;
    }
  }
}

static void fill_all(Cta *c, bool block) {
  const Program *p = c->grid->prog;
  for (int i = 0; i < p->nsregs; i++)
    if (per_block((PtxSreg)p->sregs[i].sreg) == block)
      for (int k = 0; k < c->nwarps; k++)
        fill(&c->warps[k], &p->sregs[i]);
}

void sim_sregs_fixed(Cta *c) { fill_all(c, false); }
void sim_sregs_block(Cta *c) { fill_all(c, true); }
