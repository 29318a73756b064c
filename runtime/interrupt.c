#include "interrupt.h"

#include <signal.h>
#include <string.h>
#include <unistd.h>

// The one mutable global of the tree: a signal handler has no other way to tell anybody.
static volatile sig_atomic_t pending;

static void note(int signal_number) {
  (void)signal_number;
  pending = 1;
}

static void leave(int signal_number) {
  (void)signal_number;
  static const char text[] = "interrupted\n";
  ssize_t written = write(2, text, sizeof text - 1);
  (void)written; // nobody is left to be told
  _exit(130);
}

static void install(void (*handler)(int)) {
  struct sigaction sa;
  memset(&sa, 0, sizeof sa);
  sa.sa_handler = handler;
  sa.sa_flags = SA_RESETHAND; // the second one has its usual effect; reads and waits return EINTR
  sigaction(SIGINT, &sa, NULL);
  sigaction(SIGTERM, &sa, NULL);
}

void interrupt_install(void) { install(note); }

void interrupt_exit(void) { install(leave); }

bool interrupt_pending(void) { return pending != 0; }
