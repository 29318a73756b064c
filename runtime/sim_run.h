// Running a grid: CTAs, and the messages of what fails in them.
#ifndef PTXSMITH_SIM_RUN_H
#define PTXSMITH_SIM_RUN_H

#include "sim.h"

Cta *sim_cta_new(Grid *g);            // NULL: out of host memory
void sim_cta_free(Cta *c);
bool sim_cta_run(Cta *c, uint64_t index); // false: it trapped (c->trap), or was told to stop

void sim_sregs_fixed(Cta *c); // the same for every CTA of the grid
void sim_sregs_block(Cta *c); // %ctaid and what follows from it

uint32_t sim_barrier_arrived(const Cta *c, const Barrier *b);  // threads
uint32_t sim_barrier_expected(const Cta *c, const Barrier *b);

void sim_trap_deadlock(Cta *c);
Status sim_trap_report(const Grid *g, const TrapInfo *t, Diag *d);

#endif
