// Mutants of our own kernels: each barrier, fence, wait, guard and mask taken away in turn.
//
// Whether a mutant behaves differently is decided without the sanitizer: plain runs under several
// schedules, outputs compared to the bit with those of the kernel itself; a run that can't finish
// (a trap, a deadlock, the step limit) differs too.  What then counts is that the sanitizer or the
// verifier says so.
#ifndef PTXSMITH_MUTANTS_H
#define PTXSMITH_MUTANTS_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "reference.h"
#include "verify_run.h"

typedef struct MutantCase {
  const char *template_name, *problem;
} MutantCase;

// Mutants that change bits and are told by nobody on these inputs: docs/sanitizer.md says why.  `text` stands in the line that was taken away.
typedef struct SetAside {
  const char *template_name, *text;
} SetAside;
static const SetAside set_aside[] = {
    {"prefill_thread", "@!%grows bra"},
};

static inline bool is_set_aside(const char *template_name, const char *line, size_t n) {
  for (size_t i = 0; i < sizeof set_aside / sizeof *set_aside; i++)
    if (!strcmp(set_aside[i].template_name, template_name) &&
        memmem(line, n, set_aside[i].text, strlen(set_aside[i].text)))
      return true;
  return false;
}

// A branch back is the loop itself, no mask.
static inline bool is_loop(const Source *s, uint32_t line, const char *at, size_t n) {
  const char *bra = memmem(at, n, "bra ", 4);
  if (!bra) return false;
  bra += 4 + strspn(bra + 4, " \t");
  size_t len = strcspn(bra, "; \t\n");
  for (uint32_t i = 1; i < line; i++) {
    size_t m;
    const char *text = source_line(s, i, &m);
    if (m > len && !memcmp(text, bra, len) && text[len] == ':') return true;
  }
  return false;
}

typedef struct Score {
  int made, changed, caught_by_sanitizer, caught_by_verifier, uncaught, quiet;
} Score;

typedef struct MutantRun {
  Arena *arena;
  Diag *diag;
  Session *session;
  Device *dev;
  Problem *problem;
  AttnInputs in;
  Reference ref;
  Outputs base;
  DeviceRun run;
  Runner runner;
} MutantRun;

enum { MUTANT_SCHEDULES = 4 };

static inline void mutant_opts(MutantRun *m, bool sanitize, uint64_t seed) {
  device_sim_opts(m->dev, &(SimOpts){.threads = 1, .sanitize = sanitize, .seed = seed,
                                     .step_limit = 3000000});
}

// One block does all the work under every second schedule: then what it leaves behind for its next
// work item matters.
static inline Status mutant_launch(MutantRun *m, uint64_t seed, Outputs *out) {
  diag_reset(m->diag);
  return m->runner.run(&m->run, m->problem, &m->in, seed % 2 ? 0 : 1, out, m->diag);
}

static inline void mutant_build(MutantRun *m, const char *template_name) {
  operator_free(m->run.op);
  m->run = (DeviceRun){.dev = m->dev};
  if (operator_make(m->session, template_name, NULL, m->problem, NULL, &m->run.op, m->diag))
    fail_msg("%s:\n%s", template_name, diag_text(m->diag));
}

static inline bool mutant_load(MutantRun *m) {
  Status st = operator_load(m->run.op, m->dev, m->diag);
  if (st == ST_OK) st = runner_of_operator(&m->run, &m->runner, m->diag);
  return st == ST_OK;
}

static inline void mutant_open(MutantRun *m, const MutantCase *c) {
  *m = (MutantRun){.arena = arena_new(), .diag = diag_new()};
  m->session = session_open(NULL, m->diag);
  assert_non_null(m->session);
  assert_int_equal(device_open("sim", &m->dev, m->diag), ST_OK);
  if (problem_parse(m->arena, c->problem, &m->problem, m->diag))
    fail_msg("%s", diag_text(m->diag));
  mutant_build(m, c->template_name);
  assert_true(mutant_load(m));
  assert_int_equal(inputs_make(m->problem, m->runner.in_dtype, FILL_NAN, &m->in, m->diag), ST_OK);
  inputs_fill_random(&m->in, 11);
  assert_int_equal(reference_attention(m->problem, &m->in, 1, &m->ref, m->diag), ST_OK);
  mutant_opts(m, true, 0);
  if (mutant_launch(m, 0, &m->base) != ST_OK)
    fail_msg("%s %s:\n%s", c->template_name, c->problem, diag_text(m->diag));
}

static inline void mutant_close(MutantRun *m) {
  outputs_free(&m->base);
  inputs_free(&m->in);
  reference_free(&m->ref);
  operator_free(m->run.op);
  device_close(m->dev);
  session_close(m->session);
  diag_free(m->diag);
  arena_free(m->arena);
}

// ---- mutations ----------------------------------------------------------------------------------
// The line without what orders or masks; NULL when there is nothing to take away.
static inline char *mutate_line(Arena *a, const char *line, size_t n) {
  static const char *const orders[] = {"bar.sync", "bar.warp.sync", "barrier.", "membar", "fence.",
                                       "cp.async.wait", "cp.async.bulk.wait", "wgmma.wait",
                                       "wgmma.fence", "_wait."};
  char *text = arena_strndup(a, line, n), *at = text + strspn(text, " \t");
  char *comment = strstr(at, "//");
  if (comment) *comment = 0;
  for (size_t i = 0; i < sizeof orders / sizeof *orders; i++)
    if (strstr(at, orders[i])) return arena_strdup(a, "");
  if (*at == '@') {
    char *rest = at + strcspn(at, " \t");
    return strstr(rest, "bra ") ? arena_strdup(a, "") : rest; // never taken; always done
  }
  char type[16], d[64], x[64];
  bool mask = strstr(at, "0fFF800000") || strstr(at, "0f00000000"); // a score, or a weight
  if (mask && sscanf(at, "selp.%15s %63[^,], %63[^,],", type, d, x) == 3)
    return arena_printf(a, "mov.%s %s, %s;", type, d, x);
  return NULL;
}

// The step's text with line `line` replaced; lines keep their numbers.
static inline bool mutate_step(MutantRun *m, int step, uint32_t line) {
  Variant *v = m->run.op->step[step].variant;
  size_t n;
  const char *at = source_line(v->ptx, line, &n);
  char *instead = mutate_line(m->arena, at, n);
  if (!instead) return false;
  size_t before = (size_t)(at - v->ptx->text);
  char *text = arena_printf(m->arena, "%.*s%s%s", (int)before, v->ptx->text, instead, at + n);
  v->ptx = source_new(m->arena, v->ptx->name, text, strlen(text));
  v->module = NULL;
  return true;
}

// ---- verdicts -----------------------------------------------------------------------------------
static inline bool same_bits(const HostTensor *a, const HostTensor *b) {
  return a->bytes == b->bytes && (!a->host || !memcmp(a->host, b->host, a->bytes));
}

static inline bool far_from_reference(const MutantRun *m, const Outputs *out) {
  const int64_t *n = out->o.t.shape;
  int64_t at = 0;
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t h = 0; h < n[2]; h++)
        for (int64_t e = 0; e < n[3]; e++) {
          double error = host_get(&out->o, b, i, h, e) - m->ref.o[at++];
          if (!(error < 1e-4 && error > -1e-4)) return true;
        }
  return out->damaged;
}

static inline void judge_mutant(MutantRun *m, const char *what, Score *s) {
  bool changed = false, verifier = false, sanitizer = false;
  for (uint64_t seed = 0; seed < MUTANT_SCHEDULES; seed++) {
    Outputs out = {0};
    mutant_opts(m, false, seed);
    Status st = mutant_launch(m, seed, &out);
    changed |= st != ST_OK || !same_bits(&out.o, &m->base.o) || !same_bits(&out.lse, &m->base.lse) ||
               out.damaged;
    verifier |= st == ST_OK && far_from_reference(m, &out);
    outputs_free(&out);
    mutant_opts(m, true, seed);
    st = mutant_launch(m, seed, &out);
    sanitizer |= st != ST_OK || m->diag->warnings;
    outputs_free(&out);
  }
  s->made++;
  s->changed += changed;
  s->caught_by_sanitizer += sanitizer;
  s->caught_by_verifier += verifier;
  if (changed && !sanitizer && !verifier) {
    s->uncaught++;
    print_error("not caught: %s\n", what);
  } else if (!changed && !sanitizer && !verifier) {
    s->quiet++;
    print_message("  no effect: %s\n", what);
  }
}

// Every `stride`-th mutant of masks, every one of barriers and fences.
static inline void score_mutants(const MutantCase *c, int stride, Score *s) {
  MutantRun m;
  mutant_open(&m, c);
  int steps = m.run.op->nsteps, masks = 0;
  for (int step = 0; step < steps; step++) {
    uint32_t lines = m.run.op->step[step].variant->ptx->nlines;
    for (uint32_t line = 1; line <= lines; line++) {
      mutant_build(&m, c->template_name);
      const Variant *v = m.run.op->step[step].variant;
      size_t n;
      const char *at = source_line(v->ptx, line, &n);
      char *what = arena_printf(m.arena, "%s step %d line %u: %.*s", c->template_name, step, line,
                                (int)n, at);
      char *instead = mutate_line(m.arena, at, n);
      if (!instead || is_loop(v->ptx, line, at, n) || is_set_aside(c->template_name, at, n))
        continue;
      if ((*instead || *at == '@') && masks++ % stride) continue;
      if (!mutate_step(&m, step, line) || !mutant_load(&m)) {
        print_error("does not load: %s\n%s", what, diag_text(m.diag));
        s->uncaught++;
        diag_reset(m.diag);
        continue;
      }
      judge_mutant(&m, what, s);
    }
  }
  mutant_close(&m);
}

#endif
