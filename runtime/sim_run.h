// Running a grid: CTAs, and the messages of what fails in them.
#ifndef PTXSMITH_SIM_RUN_H
#define PTXSMITH_SIM_RUN_H

#include "sim.h"

Cluster *sim_cluster_new(Grid *g);    // NULL: out of host memory
void sim_cluster_free(Cluster *k);
// At a place of the schedule; false: it trapped, or was told to stop.
bool sim_cluster_run(Cluster *k, uint64_t order);
const TrapInfo *sim_cluster_trap(const Cluster *k); // NULL: none

Cta *sim_cta_new(Cluster *k, int rank);
void sim_cta_free(Cta *c);
void sim_cta_start(Cta *c); // c->id is set
// One turn for every warp that can move; *moved is set when any could.  False as above.
bool sim_cta_round(Cta *c, bool *moved);
bool sim_cta_ended(const Cta *c);

void sim_sregs_fixed(Cta *c); // the same for every CTA of the grid
void sim_sregs_block(Cta *c); // %ctaid and what follows from it

uint32_t sim_barrier_arrived(const Cta *c, const Barrier *b);  // threads
uint32_t sim_barrier_expected(const Cta *c, const Barrier *b);

void sim_cluster_barrier(const Cluster *k, uint32_t *arrived, uint32_t *expected); // threads
void sim_cluster_lanes_ended(Cluster *k);

// sim_schedule.c: all random choices of a CTA come from sim_random.
uint64_t sim_random(Cta *c);
void sim_schedule_block(Cta *c);                               // a CTA begins
void sim_schedule_turns(Cta *c, uint8_t *order, int n);        // of n warps or CTAs in a round
int64_t sim_schedule_turn(Cta *c);                             // the length of one
uint64_t sim_schedule_cluster(const Grid *g, uint64_t at);     // which one comes then

void sim_maxnreg_start(Cta *c);
void sim_maxnreg_finish(Cta *c); // the CTA has ended: warps that executed one without the others
void sim_maxnreg_describe(const Warp *w, const Group *g, char *out, size_t n);

void sim_trap_deadlock(Cluster *k);
Status sim_trap_report(const Grid *g, const TrapInfo *t, Diag *d);

#endif
