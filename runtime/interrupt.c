#include "interrupt.h"

#include <signal.h>
#include <string.h>

// The one mutable global of the tree: a signal handler has no other way to tell anybody.
static volatile sig_atomic_t pending;

static void note(int signal_number) {
  (void)signal_number;
  pending = 1;
}

void interrupt_install(void) {
  struct sigaction sa;
  memset(&sa, 0, sizeof sa);
  sa.sa_handler = note;
  sa.sa_flags = SA_RESETHAND; // the second one has its usual effect; reads and waits return EINTR
  sigaction(SIGINT, &sa, NULL);
  sigaction(SIGTERM, &sa, NULL);
}

bool interrupt_pending(void) { return pending != 0; }
