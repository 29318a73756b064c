// Mutants of our own kernels, scored: mutate.h makes them, mutant_cases.h says on what they run.
//
// Whether a mutant behaves differently is decided without the sanitizer: plain runs under several
// schedules and completions, one block or many, outputs compared to the bit with those of the kernel
// itself; a run that can't finish (a trap, a deadlock, the step limit) differs too.  What then counts
// is that the sanitizer says so, or the comparison with the fp64 reference.  What neither tells must
// stand in docs/mutants.md with a proof, and nothing else may stand there.
#ifndef PTXSMITH_MUTANTS_H
#define PTXSMITH_MUTANTS_H

#include <stdlib.h>

#include "mutate.h"
#include "verify_gates.h"

// ---- a run with tensors as small as they are ----------------------------------------------------
// Inputs in three forms.  The first goes through verification's own runner: strided tensors, NaN in
// the rows that nobody may see.  The others are dense and end where the last row ends, so that a read
// beyond it leaves the buffer; scores there are some hundreds apart, or there is no LSE.
typedef enum InputForm { IN_STRIDED, IN_LARGE, IN_NO_LSE, INPUT_FORMS } InputForm;

typedef struct Input {
  AttnInputs in;
  Reference ref;
  Outputs base; // of the kernel itself
  double slack; // on gate 2: scores of some hundreds have errors that depend on the order of sums
} Input;

typedef struct MutantRun {
  Arena *arena;
  Diag *diag;
  Session *session;
  Device *dev;
  const char *template_name;
  Params params;
  Problem *problem;
  Input input[INPUT_FORMS];
  bool optional_lse;
  DeviceRun run;
  Runner runner;
} MutantRun;

static inline void dense_input(HostTensor *h, double scale, Diag *d) {
  HostTensor dense;
  const int64_t *n = h->t.shape;
  assert_int_equal(host_tensor_make(&dense, h->t.dtype, 4, n, &layout_dense, FILL_ZERO, d), ST_OK);
  for (int64_t b = 0; b < n[0]; b++)
    for (int64_t i = 0; i < n[1]; i++)
      for (int64_t k = 0; k < n[2]; k++)
        for (int64_t e = 0; e < n[3]; e++)
          host_set(&dense, b, i, k, e, scale * host_get(h, b, i, k, e));
  host_tensor_free(h);
  *h = dense;
}

static inline Status put(Device *dev, const char *name, const HostTensor *h, DevPtr *to, Diag *d) {
  if (!h->bytes) return ST_OK;
  Status st = device_alloc(dev, h->bytes, name, to, d);
  return st == ST_OK ? device_write(dev, *to, h->host, h->bytes, d) : st;
}

static inline Status bind_exact(MutantRun *m, const AttnInputs *in, Outputs *out, DevPtr at[6]) {
  const char *const names[] = {"q", "k", "v", "o", "lse"};
  const HostTensor *t[] = {&in->q, &in->k, &in->v, &out->o, &out->lse};
  Operator *op = m->run.op;
  Status st = ST_OK;
  for (int i = 0; i < 5 && st == ST_OK; i++) {
    bool none = !t[i]->host;
    Tensor bound = t[i]->t;
    if (!none) st = put(m->dev, names[i], t[i], &at[i], m->diag);
    bound.data = at[i];
    if (st == ST_OK) st = operator_bind(op, names[i], none ? NULL : &bound, m->diag);
  }
  uint64_t words = (op->workspace_bytes + 3) / 4;
  if (st == ST_OK && words) {
    st = device_alloc(m->dev, words * 4, "workspace", &at[5], m->diag);
    if (st == ST_OK) st = device_fill32(m->dev, at[5], POISON * 0x10001u, words * 4, m->diag);
    uint64_t zero = op->workspace_zero_bytes;
    if (st == ST_OK && zero) st = device_fill32(m->dev, at[5], 0, (zero + 3) / 4 * 4, m->diag);
  }
  return st == ST_OK ? operator_bind_workspace(op, at[5], op->workspace_bytes, m->diag) : st;
}

static inline Status run_exact(MutantRun *m, const AttnInputs *in, bool lse, uint32_t grid,
                               Outputs *out) {
  int64_t o_shape[TENSOR_MAX_RANK], lse_shape[TENSOR_MAX_RANK];
  PlanOpts opts = {.grid = grid, .chunks = problem_int(m->problem, "chunks", 0)};
  DevPtr at[6] = {0};
  Status st = operator_replan(m->run.op, m->problem, m->dev, &opts, m->diag);
  if (st == ST_OK)
    st = arg_shape(operator_arg(m->run.op, "o"), m->run.op->problem, o_shape, m->diag);
  if (st == ST_OK && lse)
    st = arg_shape(operator_arg(m->run.op, "lse"), m->run.op->problem, lse_shape, m->diag);
  if (st == ST_OK)
    st = outputs_make(o_shape, m->runner.o_dtype, lse ? lse_shape : NULL, m->runner.lse_dtype, out,
                      m->diag);
  if (st == ST_OK) st = bind_exact(m, in, out, at);
  if (st == ST_OK) st = operator_launch(m->run.op, m->dev, m->diag);
  if (st == ST_OK) st = device_sync(m->dev, m->diag);
  if (st == ST_OK && at[3]) st = device_read(m->dev, out->o.host, at[3], out->o.bytes, m->diag);
  if (st == ST_OK && at[4]) st = device_read(m->dev, out->lse.host, at[4], out->lse.bytes, m->diag);
  if (st == ST_OK) st = outputs_check(out, m->diag);
  for (int i = 0; i < 6; i++)
    if (at[i]) device_free(m->dev, at[i]);
  if (st != ST_OK) outputs_free(out);
  return st;
}

// One block does all the work under every second schedule: then what it leaves behind for its next
// work item matters.
static inline Status mutant_launch(MutantRun *m, InputForm form, bool sanitize, uint64_t seed,
                                   Outputs *out) {
  static const SimCompletion when[] = {SIM_LATE, SIM_RANDOM, SIM_EAGER};
  device_sim_opts(m->dev, &(SimOpts){.threads = 1, .sanitize = sanitize, .seed = seed,
                                     .step_limit = 400000, .completion = when[seed % 3]});
  diag_reset(m->diag);
  *out = (Outputs){0};
  uint32_t grid = seed % 2 ? 0 : 1;
  const AttnInputs *in = &m->input[form].in;
  if (form != IN_STRIDED) return run_exact(m, in, form == IN_LARGE, grid, out);
  return m->runner.run(&m->run, m->problem, in, grid, out, m->diag);
}

static inline Status mutant_build(MutantRun *m) {
  PlanOpts opts = {.chunks = problem_int(m->problem, "chunks", 0)};
  operator_free(m->run.op);
  m->run = (DeviceRun){.dev = m->dev};
  return operator_make(m->session, m->template_name, &m->params, m->problem, &opts, &m->run.op,
                       m->diag);
}

static inline Status mutant_load(MutantRun *m) {
  Status st = operator_load(m->run.op, m->dev, m->diag);
  return st == ST_OK ? runner_of_operator(&m->run, &m->runner, m->diag) : st;
}

static inline Status input_open(MutantRun *m, InputForm form) {
  Input *x = &m->input[form];
  x->slack = form == IN_LARGE ? 4 : 1;
  Status st = inputs_make(m->run.op->problem, m->runner.in_dtype, FILL_NAN, &x->in, m->diag);
  if (st != ST_OK) return st;
  inputs_fill_random(&x->in, 11 + form);
  if (form != IN_STRIDED) {
    dense_input(&x->in.q, form == IN_LARGE ? 40 : 1, m->diag);
    dense_input(&x->in.k, 1, m->diag);
    dense_input(&x->in.v, 1, m->diag);
  }
  st = reference_attention(m->run.op->problem, &x->in, 1, &x->ref, m->diag);
  return st == ST_OK ? mutant_launch(m, form, true, 0, &x->base) : st;
}

// ---- verdicts -----------------------------------------------------------------------------------
static inline bool same_bits(const HostTensor *a, const HostTensor *b) {
  return a->bytes == b->bytes && (!a->host || !memcmp(a->host, b->host, a->bytes));
}

static inline GateResult compare_run(const Input *x, const Outputs *out) {
  Expected want = expect_reference(&x->ref, out, 1);
  GateResult g = {.passed = true};
  want.o_max.abs *= x->slack, want.o_mean *= x->slack, want.lse_max.abs *= x->slack;
  if (!out->lse.host) want.lse = NULL;
  compare_outputs(&want, &out->o, out->lse.host ? &out->lse : NULL, &g);
  g.passed &= !out->damaged;
  return g;
}

static inline bool is_wrong(const Input *x, const Outputs *out) {
  return !compare_run(x, out).passed;
}

typedef struct Judgement {
  bool changed, sanitizer, verifier;
} Judgement;

enum { MUTANT_SCHEDULES = 6, MUTANT_PROBLEMS = 40 };

static inline int forms_of(const MutantRun *m) { return m->optional_lse ? INPUT_FORMS : IN_NO_LSE; }

static inline void judge_plain(MutantRun *m, Judgement *j) {
  for (int form = 0; form < forms_of(m); form++)
    for (uint64_t seed = 0; seed < MUTANT_SCHEDULES && !(j->changed && j->verifier); seed++) {
      const Outputs *base = &m->input[form].base;
      Outputs out;
      Status st = mutant_launch(m, (InputForm)form, false, seed, &out);
      j->changed |= st != ST_OK || out.damaged || !same_bits(&out.o, &base->o) ||
                    !same_bits(&out.lse, &base->lse);
      j->verifier |= st == ST_OK && is_wrong(&m->input[form], &out);
      outputs_free(&out);
      if (st != ST_OK) return; // it traps, or never ends: nothing more to learn
    }
}

static inline Judgement judge_mutant(MutantRun *m) {
  Judgement j = {0};
  judge_plain(m, &j);
  for (uint64_t seed = 0; seed < MUTANT_SCHEDULES && !j.sanitizer; seed++)
    for (int form = 0; form < forms_of(m) && !j.sanitizer; form++) {
      Outputs out;
      j.sanitizer = mutant_launch(m, (InputForm)form, true, seed, &out) != ST_OK ||
                    m->diag->errors || m->diag->warnings;
      outputs_free(&out);
    }
  return j;
}

// Tensors of the template that the reference knows nothing of.
static inline bool is_plain(const Operator *op) {
  static const char *const known[] = {"q", "k", "v", "o", "lse"};
  for (int s = 0; s < op->nsteps; s++)
    for (int i = 0; i < op->step[s].variant->nargs; i++) {
      const ArgDecl *arg = &op->step[s].variant->args[i];
      bool own = arg->role == ARG_VALUE || arg->role == ARG_WORK;
      for (int k = 0; k < 5; k++) own |= !strcmp(known[k], arg->name);
      if (!own && s == 0) return false;
    }
  return true;
}

// ---- one problem of one variant -----------------------------------------------------------------
static inline void mutant_close(MutantRun *m) {
  for (int form = 0; form < INPUT_FORMS; form++) {
    outputs_free(&m->input[form].base);
    inputs_free(&m->input[form].in);
    reference_free(&m->input[form].ref);
  }
  operator_free(m->run.op);
  diag_free(m->diag);
  arena_free(m->arena);
}

// Everything but ST_OK: the kernel itself can't be built for this, or does not pass.
static inline Status mutant_open(MutantRun *m, Session *s, Device *dev, const char *template_name,
                                 const Params *params, const char *problem) {
  *m = (MutantRun){.arena = arena_new(), .diag = diag_new(), .session = s, .dev = dev,
                   .template_name = template_name};
  for (int i = 0; i < params->n; i++)
    params_set(m->arena, &m->params, params->v[i].name, params->v[i].value);
  Status st = problem_parse(m->arena, problem, &m->problem, m->diag);
  if (st == ST_OK) st = mutant_build(m);
  if (st == ST_OK) st = mutant_load(m);
  if (st != ST_OK) return st;
  const ArgDecl *lse = operator_arg(m->run.op, "lse");
  m->optional_lse = lse && lse->optional;
  for (int form = 0; form < forms_of(m) && st == ST_OK; form++) {
    st = input_open(m, (InputForm)form);
    GateResult g = {.passed = true};
    if (st == ST_OK) g = compare_run(&m->input[form], &m->input[form].base);
    if (!g.passed)
      st = diag_fail(m->diag, ST_FAILED,
                     "the kernel itself is wrong, inputs %d: %s%s: errors %g (allowed %g), mean %g "
                     "(%g), LSE %g (%g); row %d: %g, not %g", form, m->input[form].base.note, g.bad.tensor, g.max_error,
                     g.max_allowed, g.mean_error, g.mean_allowed, g.lse_error, g.lse_allowed,
                     (int)g.bad.row, g.bad.got, g.bad.expected);
  }
  return st;
}

// ---- the score ----------------------------------------------------------------------------------
typedef struct Scored {
  const char *key;
  bool order;
  Judgement j;
  int problems; // that it was judged on
} Scored;

typedef struct Score {
  Arena *arena;
  Scored *v; int n, cap;
} Score;

static inline bool is_caught(const Scored *s) { return s->j.sanitizer || s->j.verifier; }

static inline Scored *score_of(Score *s, const Mutant *m) {
  for (int i = 0; i < s->n; i++)
    if (!strcmp(s->v[i].key, m->key)) return &s->v[i];
  Scored *x = arena_push(s->arena, s->v, s->n, s->cap);
  *x = (Scored){.key = arena_strdup(s->arena, m->key), .order = m->order};
  return x;
}

// Every mutant of the problem's launches that was not caught before; of the masks every `stride`-th.
static inline void score_problem(MutantRun *m, int stride, Score *score) {
  int steps = m->run.op->nsteps, masks = 0;
  for (int step = 0; step < steps; step++) {
    Mutants all;
    list_mutants(m->arena, m->run.op->step[step].variant, &all);
    for (int i = 0; i < all.n; i++) {
      if (!all.v[i].order && masks++ % stride) continue;
      Scored *x = score_of(score, &all.v[i]);
      if (is_caught(x) || x->problems++ >= MUTANT_PROBLEMS) continue;
      diag_reset(m->diag);
      assert_int_equal(mutant_build(m), ST_OK);
      mutate_variant(m->arena, m->run.op->step[step].variant, &all.v[i]);
      if (mutant_load(m) != ST_OK) fail_msg("%s\n%s", x->key, diag_text(m->diag));
      Judgement j = judge_mutant(m);
      x->j.changed |= j.changed;
      x->j.sanitizer |= j.sanitizer;
      x->j.verifier |= j.verifier;
    }
  }
}

#endif
