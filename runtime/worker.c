// Workers: spawning, talking, timing out, burying.
#include "worker.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "interrupt.h"
#include "wire.h"

extern char **environ;

// ---- spawning -----------------------------------------------------------------------------------

static void close_pair(int p[2]) {
  close(p[0]);
  close(p[1]);
}

static bool open_pipes(int p[3][2]) {
  for (int i = 0; i < 3; i++)
    if (pipe2(p[i], O_CLOEXEC)) {
      while (i-- > 0) close_pair(p[i]);
      return false;
    }
  return true;
}

static int spawn(const WorkerOpts *o, int p[3][2], pid_t *pid) {
  const char *argv[32] = {o->program, "worker"};
  for (int i = 0; o->args && o->args[i] && i < 28; i++) argv[2 + i] = o->args[i];
  posix_spawn_file_actions_t files;
  posix_spawnattr_t attr;
  posix_spawn_file_actions_init(&files);
  posix_spawnattr_init(&attr);
  posix_spawn_file_actions_adddup2(&files, p[0][0], 0);
  posix_spawn_file_actions_adddup2(&files, p[1][1], 1);
  posix_spawn_file_actions_adddup2(&files, p[2][1], 2);
  // A process group of its own: Ctrl-C is the parent's to handle.
  posix_spawnattr_setflags(&attr, POSIX_SPAWN_SETPGROUP);
  posix_spawnattr_setpgroup(&attr, 0);
  int bad = posix_spawnp(pid, o->program, &files, &attr, (char *const *)argv, environ);
  posix_spawnattr_destroy(&attr);
  posix_spawn_file_actions_destroy(&files);
  return bad;
}

Status worker_start(Worker *w, const WorkerOpts *o, Diag *d) {
  int p[3][2]; // its standard input, output, error
  memset(w, 0, sizeof *w);
  if (!open_pipes(p)) return diag_fail(d, ST_DEVICE, "worker: pipe: %s", strerror(errno));
  int bad = spawn(o, p, &w->pid);
  close(p[0][0]);
  close(p[1][1]);
  close(p[2][1]);
  if (bad) {
    close(p[0][1]);
    close(p[1][0]);
    close(p[2][0]);
    w->pid = 0;
    return diag_fail(d, ST_DEVICE, "worker: can't start %s: %s", o->program, strerror(bad));
  }
  w->to = p[0][1];
  w->from = p[1][0];
  w->err = p[2][0];
  fcntl(w->from, F_SETFL, O_NONBLOCK);
  fcntl(w->err, F_SETFL, O_NONBLOCK);
  return ST_OK;
}

// Waits for its end, which must be near, and releases everything.
static int bury(Worker *w) {
  int status = 0;
  while (waitpid(w->pid, &status, 0) < 0 && errno == EINTR) {
  }
  close(w->to);
  close(w->from);
  close(w->err);
  free(w->line);
  w->line = NULL;
  w->len = w->cap = 0;
  w->pid = 0;
  return status;
}

static void kill_now(Worker *w) {
  kill(w->pid, SIGKILL);
  bury(w);
}

static double seconds(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void worker_stop(Worker *w) {
  if (!w->pid) return;
  close(w->to); // it ends at the end of its input
  w->to = -1;
  for (double until = seconds() + 1; seconds() < until;) {
    siginfo_t info = {0};
    if (!waitid(P_PID, (id_t)w->pid, &info, WEXITED | WNOHANG | WNOWAIT) && info.si_pid) break;
    nanosleep(&(struct timespec){.tv_nsec = 5000000}, NULL);
  }
  kill_now(w);
}

// ---- one job ------------------------------------------------------------------------------------

// Appends what can be read; false at the end of the stream.
static bool read_some(Worker *w) {
  if (w->cap - w->len < 4096) {
    char *grown = realloc(w->line, w->cap + 8192);
    if (!grown) return false;
    w->line = grown;
    w->cap += 8192;
  }
  ssize_t n = read(w->from, w->line + w->len, w->cap - w->len);
  if (n < 0) return errno == EAGAIN || errno == EINTR;
  w->len += (size_t)n;
  return n > 0;
}

// Keeps the end of its standard error: that is where an abort says why.
static void read_stderr(Worker *w) {
  char buf[512];
  ssize_t n;
  while ((n = read(w->err, buf, sizeof buf)) > 0) {
    size_t room = sizeof w->last - 1, k = (size_t)n;
    size_t keep = w->nlast + k > room ? room - k : w->nlast;
    memmove(w->last, w->last + w->nlast - keep, keep);
    memcpy(w->last + keep, buf, k);
    w->nlast = keep + k;
    w->last[w->nlast] = 0;
  }
}

// The next complete line, NULL when there is none yet.
static char *take_line(Worker *w, Arena *a) {
  char *nl = memchr(w->line, '\n', w->len);
  if (!w->len || !nl) return NULL;
  size_t n = (size_t)(nl - w->line);
  char *line = arena_strndup(a, w->line, n);
  w->len -= n + 1;
  memmove(w->line, nl + 1, w->len);
  return line;
}

static bool send_line(Worker *w, const char *line) {
  for (size_t n = strlen(line); n;) {
    ssize_t done = write(w->to, line, n);
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return false;
    line += done;
    n -= (size_t)done;
  }
  return true;
}

static const char *last_words(const Worker *w, Arena *a) {
  size_t n = w->nlast;
  while (n && (w->last[n - 1] == '\n' || w->last[n - 1] == ' ')) n--;
  return n ? arena_printf(a, ": %.*s", (int)n, w->last) : "";
}

static JobEnd died(Worker *w, Arena *a, const char **why) {
  read_stderr(w);
  const char *words = last_words(w, a);
  int status = bury(w);
  if (WIFSIGNALED(status))
    *why = arena_printf(a, "the worker was killed by signal %d (%s)%s", WTERMSIG(status),
                        strsignal(WTERMSIG(status)), words);
  else
    *why = arena_printf(a, "the worker ended with exit code %d%s", WEXITSTATUS(status), words);
  return JOB_DIED;
}

// Reads lines up to the one that ends the job; false when more is to come.
static bool read_replies(Worker *w, Arena *a, Params *reply, const char **stage, JobEnd *end) {
  for (char *line; (line = take_line(w, a));) {
    const char *verb;
    Params fields = {0};
    if (!wire_parse(a, line, &verb, &fields)) continue;
    const char *name = params_get(&fields, "name");
    if (!strcmp(verb, "stage") && name) *stage = name;
    if (strcmp(verb, "done") && strcmp(verb, "failed")) continue;
    *reply = fields;
    *end = verb[0] == 'd' ? JOB_DONE : JOB_FAILED;
    return true;
  }
  return false;
}

JobEnd worker_run(Worker *w, Arena *a, const Params *job, double limit_s, Params *reply,
                  const char **stage, const char **why) {
  double until = seconds() + limit_s;
  *stage = "start";
  *why = "";
  w->nlast = 0;
  if (!send_line(w, wire_line(a, "job", job))) return died(w, a, why);
  for (JobEnd end;;) {
    if (interrupt_pending()) {
      kill_now(w);
      *why = "interrupted";
      return JOB_INTERRUPTED;
    }
    double left = until - seconds();
    if (left <= 0) {
      kill_now(w);
      *why = arena_printf(a, "over its time limit of %g s", limit_s);
      return JOB_LATE;
    }
    struct pollfd fds[2] = {{.fd = w->from, .events = POLLIN}, {.fd = w->err, .events = POLLIN}};
    poll(fds, 2, left < 0.2 ? (int)(1e3 * left) + 1 : 200); // awake for Ctrl-C five times a second
    read_stderr(w);
    bool open = !(fds[0].revents & (POLLIN | POLLHUP)) || read_some(w);
    if (w->line && read_replies(w, a, reply, stage, &end)) {
      if (wire_number(reply, "lost") != 0) worker_stop(w);
      return end;
    }
    if (!open) return died(w, a, why);
  }
}
