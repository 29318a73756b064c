#include "progress.h"

#include <inttypes.h>
#include <time.h>
#include <unistd.h>

static double now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

void progress_begin(Progress *p, FILE *to, const char *what, int64_t total) {
  *p = (Progress){.to = to, .what = what, .total = total, .live = isatty(fileno(to))};
  p->began = now();
}

static void put_time_left(char *out, size_t size, double s) {
  if (s < 60) snprintf(out, size, "%.0f s left", s);
  else if (s < 3600) snprintf(out, size, "%d min %02d s left", (int)s / 60, (int)s % 60);
  else snprintf(out, size, "%d h %02d min left", (int)(s / 3600), (int)(s / 60) % 60);
}

void progress_line(const Progress *p, int64_t done, double seconds, char *out, size_t size) {
  int n = snprintf(out, size, "%s %" PRId64, p->what, done);
  double rate = seconds > 0 ? (double)(done - p->found) / seconds : 0;
  char *at = out + n;
  size_t room = n < (int)size ? size - (size_t)n : 0;
  if (!room) return;
  if (p->total > 0) n = snprintf(at, room, " of %" PRId64, p->total);
  else n = 0;
  if (n >= (int)room || rate <= 0) return;
  at += n, room -= (size_t)n;
  n = rate >= 1 ? snprintf(at, room, ", %.1f/s", rate)
                : snprintf(at, room, ", %.1f s each", 1 / rate);
  if (n >= (int)room || p->total <= done) return;
  char left[40];
  put_time_left(left, sizeof left, (double)(p->total - done) / rate);
  snprintf(at + n, room - (size_t)n, ", %s", left);
}

bool progress_due(const Progress *p, double t) {
  if (p->live) return p->drawn == 0 || t - p->drawn >= 0.1;
  return t - (p->drawn > 0 ? p->drawn : p->began) >= 60;
}

void progress_at(Progress *p, int64_t done) {
  double t = now();
  if (!progress_due(p, t)) return;
  p->drawn = t;
  char line[160];
  progress_line(p, done, t - p->began, line, sizeof line);
  fprintf(p->to, p->live ? "\r\033[K%s" : "%s\n", line);
  fflush(p->to);
}

void progress_clear(Progress *p) {
  if (!p->live || p->drawn == 0) return;
  fputs("\r\033[K", p->to);
  fflush(p->to);
  p->drawn = 0;
}
