// Ctrl-C.  Long work asks interrupt_pending() between two units of work, keeps what is done, says
// so and returns ST_INTERRUPTED; the program then exits 130.  A second Ctrl-C ends it at once.
#ifndef PTXSMITH_INTERRUPT_H
#define PTXSMITH_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
// For work that is one unit: Ctrl-C says so and ends the program with 130.  Nothing is left half
// written, since files get their names only when they are whole.
void interrupt_exit(void);
bool interrupt_pending(void);

#endif
