// sim_remote.c: st.async and red.async: registers into the shared memory of a block of
// the cluster, counted by an mbarrier there.  ISA 9.7.9.13, 9.7.13.9.
//
// Each lane's is an operation of its own in the queue of bulk copies.  Its value is taken at issue.
#include "sim_bulk.h"
#include "sim_count.h"
#include "sim_race.h"

static void count_words(Warp *w, const Op *op) {
  const AsyncArgs *g = op->more->async;
  uint64_t to[32] = {0};
  SIM_LANES(i, w->active) to[i] = sim_lane_address(w, &g->to, i);
  sim_count_access(w, op, PTX_S_SHARED, to, w->active, (uint32_t)g->nvalues * g->width,
                   ACCESS_WRITE);
}

static const Op *op_remote(Warp *w, const Op *op) {
  const AsyncArgs *g = op->more->async;
  if (sim_counts(w))
    count_words(w, op);
  SIM_LANES(i, w->active) {
    Bulk b = {.op = op, .thread = (uint32_t)w->index * 32 + i, .kind = BULK_WORDS, .atom = g->atom,
              .type = g->type, .event = sim_race_async_event(w, op, i)};
    sim_box_flat(&b.box, 0, (uint64_t)g->nvalues * g->width);
    uint8_t value[16]; // copied when it is queued
    for (uint32_t k = 0; k < g->nvalues; k++)
      memcpy(value + k * g->width, w->regs + g->value[k] + i * g->width, g->width);
    b.staged = value;
    const Op *stop = sim_bulk_issue(w, &b, i);
    if (stop)
      return stop;
  }
  return op + 1;
}

bool sim_async_words(Decoder *x, const PtxInst *in) {
  x->prog->uses_async = true;
  AsyncArgs *g = arena_new_of(x->prog->arena, AsyncArgs);
  const PtxOperand *b = &in->opnds[1];
  bool reduce = !strcmp(ptx_inst_form(in)->stem, "red");
  g->kind = BULK_WORDS;
  g->type = in->type[0];
  g->atom = (uint8_t)(reduce ? sim_atom_kind(in) : ATOM_KINDS);
  g->width = (uint8_t)sim_width((PtxType)g->type);
  g->nvalues = (uint8_t)(b->kind == PTX_O_VEC ? b->n : 1);
  for (int i = 0; i < g->nvalues; i++)
    g->value[i] = sim_source(x, b->kind == PTX_O_VEC ? &b->v[i] : b, (PtxType)g->type, g->width);
  g->to = sim_address(x, in, &in->opnds[0]);
  g->mbar = sim_address(x, in, &in->opnds[2]);
  g->to.space = g->mbar.space = in->space;
  OpMore *more = arena_new_of(x->prog->arena, OpMore);
  more->async = g;
  sim_emit(x, op_remote)->more = more;
  return true;
}
