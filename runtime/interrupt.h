// Ctrl-C.  Long work asks interrupt_pending() between two units of work, keeps what is done, says
// so and returns ST_INTERRUPTED; the program then exits 130.  A second Ctrl-C ends it at once.
#ifndef PTXSMITH_INTERRUPT_H
#define PTXSMITH_INTERRUPT_H

#include <stdbool.h>

void interrupt_install(void);
bool interrupt_pending(void);

#endif
