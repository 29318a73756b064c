// Mutants of our own kernels, scored: mutate.h makes them, mutant_cases.h says on what they run.
//
// Whether a mutant behaves differently is decided without the sanitizer: plain runs under several
// schedules and completions, one block or many, outputs compared to the bit with those of the
// kernel itself; a run that can't finish (a trap, a deadlock, the step limit) differs too.  What
// then counts is that the sanitizer says so, or the comparison with the fp64 reference.  What
// neither tells must stand in docs/mutants.md with a proof, and nothing else may stand there.
#ifndef PTXSMITH_MUTANTS_H
#define PTXSMITH_MUTANTS_H

#include "mutant_inputs.h"
#include "mutate.h"
#include "verify_layout.h"

typedef struct MutantRun {
  Arena *arena;
  Diag *diag;
  Session *session;
  Device *dev;
  const char *template_name;
  Params params;
  Problem *problem;
  Input input[INPUT_FORMS];
  bool optional_lse, split;
  DeviceRun run;
  Runner runner;
} MutantRun;

enum { ROUND = 6 }; // schedules: all completions, with few blocks and with many

// ---- a run with tensors as small as they are ----------------------------------------------------
enum { AT_O = NINPUTS, AT_LSE, AT_WORK, BUFFERS };

static inline Status put_exact(MutantRun *m, const HostTensor *h, const char *name, DevPtr *to) {
  const ArgDecl *arg = operator_arg(m->run.op, name);
  if (!arg) return ST_OK;
  if (!h->host) return arg->optional ? operator_bind(m->run.op, name, NULL, m->diag) : ST_OK;
  uint64_t bytes = tensor_span_bytes(&h->t);
  Status st = bytes ? device_alloc(m->dev, bytes, name, to, m->diag) : ST_OK;
  if (bytes && st == ST_OK) st = device_write(m->dev, *to, h->host, bytes, m->diag);
  Tensor bound = layout_bound(arg, h, *to);
  return st == ST_OK ? operator_bind(m->run.op, name, &bound, m->diag) : st;
}

static inline Status put_workspace(MutantRun *m, DevPtr *work) {
  Operator *op = m->run.op;
  uint64_t words = (op->workspace_bytes + 3) / 4, zero = op->workspace_zero_bytes;
  Status st = words ? device_alloc(m->dev, words * 4, "workspace", work, m->diag) : ST_OK;
  if (words && st == ST_OK)
    st = device_fill32(m->dev, *work, POISON * 0x10001u, words * 4, m->diag);
  if (zero && st == ST_OK) st = device_fill32(m->dev, *work, 0, (zero + 3) / 4 * 4, m->diag);
  return st == ST_OK ? operator_bind_workspace(op, *work, op->workspace_bytes, m->diag) : st;
}

// Pages lie in another order each time: the first one may be nobody's, and hold NaN.
static inline Status bind_exact(MutantRun *m, const Input *x, Outputs *out, DevPtr at[BUFFERS]) {
  KernelInputs laid;
  Status st = kernel_inputs(m->run.op, &x->in, m->run.seed++, &laid, m->diag);
  for (int i = 0; i < NINPUTS && st == ST_OK; i++)
    st = put_exact(m, &laid.t[i], input_names[i], &at[i]);
  if (st == ST_OK) st = put_exact(m, &out->o, "o", &at[AT_O]);
  if (st == ST_OK) st = put_exact(m, &out->lse, "lse", &at[AT_LSE]);
  kernel_inputs_free(&laid);
  return st == ST_OK ? put_workspace(m, &at[AT_WORK]) : st;
}

static inline Status run_exact(MutantRun *m, const Input *x, bool lse, uint32_t grid,
                               Outputs *out) {
  PlanOpts opts = {.grid = grid, .chunks = problem_int(m->problem, "chunks", 0)};
  DevPtr at[BUFFERS] = {0};
  Status st = operator_replan(m->run.op, m->problem, m->dev, &opts, m->diag);
  if (st == ST_OK) st = kernel_outputs(m->run.op, out, m->diag);
  if (st == ST_OK && !lse) host_tensor_free(&out->lse);
  if (st == ST_OK) st = bind_exact(m, x, out, at);
  if (st == ST_OK) st = operator_launch(m->run.op, m->dev, m->diag);
  if (st == ST_OK) st = device_sync(m->dev, m->diag);
  HostTensor *back[] = {&out->o, &out->lse};
  for (int i = 0; i < 2; i++) {
    DevPtr from = at[AT_O + i];
    uint64_t bytes = from ? tensor_span_bytes(&back[i]->t) : 0;
    if (st == ST_OK && from) st = device_read(m->dev, back[i]->host, from, bytes, m->diag);
  }
  if (st == ST_OK) st = outputs_check(out, m->diag);
  if (st == ST_OK) st = outputs_spread(m->run.op, out, m->diag);
  for (int i = 0; i < BUFFERS; i++)
    if (at[i]) device_free(m->dev, at[i]);
  if (st != ST_OK) outputs_free(out);
  return st;
}

// One block does all the work, or two share it (then what they leave behind for their next work
// item matters), or there is one for each item (0), or more than items.
static inline Status mutant_launch(MutantRun *m, InputForm form, bool sanitize, uint64_t seed,
                                   Outputs *out) {
  static const SimCompletion when[] = {SIM_LATE, SIM_RANDOM, SIM_EAGER};
  device_sim_opts(m->dev, &(SimOpts){.threads = 1, .sanitize = sanitize, .seed = seed,
                                     .step_limit = 2000000, .completion = when[seed % 3]});
  diag_reset(m->diag);
  *out = (Outputs){0};
  static const uint32_t grids[ROUND] = {1, 0, 2, 64, 2, 1};
  uint32_t grid = runner_blocks(&m->runner, grids[seed % ROUND]);
  const Input *x = &m->input[form];
  if (form != IN_STRIDED) return run_exact(m, x, form != IN_NO_LSE, grid, out);
  return m->runner.run(&m->run, m->problem, &x->in, grid, out, m->diag);
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
  const Operator *op = m->run.op;
  Status st = inputs_make(op->problem, m->runner.in_dtype, FILL_NAN, &x->in, m->diag);
  if (st != ST_OK) return st;
  inputs_fill_random(&x->in, 11 + form);
  if (form == IN_LARGE) {
    grow_input(&x->in.q, 40);
    grow_sinks(&x->in);
  }
  bool shared = x->in.v.host == x->in.k.host;
  if (form == IN_NO_LSE && (m->split || shared)) infinite_input(op->problem, &x->in);
  if (form != IN_STRIDED) dense_inputs(&x->in, m->diag);
  st = reference_attention(op->problem, &x->in, 1, &x->ref, m->diag);
  if (st == ST_OK && (form == IN_LARGE || (m->runner.in_dtype == DT_F32 && few_keys(op->problem))))
    input_slack(op->problem, x);
  return st == ST_OK ? mutant_launch(m, form, true, 0, &x->base) : st;
}

// ---- verdicts -----------------------------------------------------------------------------------
static inline bool same_bits(const HostTensor *a, const HostTensor *b) {
  return a->bytes == b->bytes && (!a->host || !memcmp(a->host, b->host, a->bytes));
}

static inline GateResult judge_outputs(const MutantRun *m, const Input *x, const Outputs *out) {
  return compare_run(&m->runner, m->run.op->problem, x, out, m->split);
}

typedef struct Judgement {
  bool changed, sanitizer, verifier;
  bool unplaced; // a report or note of the sanitizer has no template line
} Judgement;

static inline bool is_placed(const Diag *d) {
  for (const DiagMsg *m = d->first; m; m = m->next)
    if (m->line && !m->origin_line) return false;
  return true;
}

static inline int forms_of(const MutantRun *m) {
  return m->optional_lse ? INPUT_FORMS : IN_NO_LSE;
}

// What a mutant is tried on: inputs first .. end - 1, schedules from .. from + n - 1.
typedef struct Trial { int first, end; uint64_t from; int n; } Trial;

static inline uint64_t seed_of(const Trial *t, int n, int form) {
  return t->from + (uint64_t)(n + (t->n < ROUND ? form : 0));
}

static inline void judge_plain(MutantRun *m, const Trial *t, Judgement *j) {
  for (int form = t->first; form < t->end; form++)
    for (int n = 0; n < t->n && !(j->changed && j->verifier); n++) {
      const Outputs *base = &m->input[form].base;
      Outputs out;
      Status st = mutant_launch(m, (InputForm)form, false, seed_of(t, n, form), &out);
      j->changed |= st != ST_OK || out.damaged || !same_bits(&out.o, &base->o) ||
                    !same_bits(&out.lse, &base->lse);
      j->verifier |= st == ST_OK && !judge_outputs(m, &m->input[form], &out).passed;
      outputs_free(&out);
      if (st != ST_OK) return; // it traps, or never ends: nothing more to learn
    }
}

static inline Judgement judge_mutant(MutantRun *m, const Trial *t) {
  Judgement j = {0};
  judge_plain(m, t, &j);
  for (int n = 0; n < t->n && !j.sanitizer; n++)
    for (int form = t->first; form < t->end && !j.sanitizer; form++) {
      Outputs out;
      Status st = mutant_launch(m, (InputForm)form, true, seed_of(t, n, form), &out);
      j.sanitizer = st != ST_OK || m->diag->errors || m->diag->warnings;
      j.unplaced |= !is_placed(m->diag);
      outputs_free(&out);
    }
  return j;
}

// Tensors of the template that these inputs have none of.
static inline bool is_known(const Operator *op) {
  for (int i = 0; i < op->step[0].variant->nargs; i++) {
    const ArgDecl *arg = &op->step[0].variant->args[i];
    bool known = arg->role != ARG_IN;
    for (int k = 0; k < NINPUTS; k++) known |= !strcmp(input_names[k], arg->name);
    if (!known) return false;
  }
  return true;
}

// ---- one problem of one variant -----------------------------------------------------------------
static inline void mutant_close(MutantRun *m) {
  for (int form = 0; form < INPUT_FORMS; form++) input_free(&m->input[form]);
  operator_free(m->run.op);
  diag_free(m->diag);
  arena_free(m->arena);
}

static inline Status mutant_check(MutantRun *m, InputForm form) {
  const Input *x = &m->input[form];
  GateResult g = judge_outputs(m, x, &x->base);
  return g.passed
             ? ST_OK
             : diag_fail(m->diag, ST_FAILED,
                         "the kernel itself is wrong, inputs %d: %s%s: errors %g (allowed %g), "
                         "mean %g (%g), LSE %g (%g); row %d: %g, not %g",
                         form, x->base.note, g.bad.tensor, g.max_error, g.max_allowed, g.mean_error,
                         g.mean_allowed, g.lse_error, g.lse_allowed, (int)g.bad.row, g.bad.got,
                         g.bad.expected);
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
  const char *split = params_get(&m->run.op->step[0].variant->params, "split");
  m->optional_lse = lse && lse->optional;
  m->split = split && !strcmp(split, "1");
  for (int form = 0; form < forms_of(m) && st == ST_OK; form++) {
    st = input_open(m, (InputForm)form);
    if (st == ST_OK) st = mutant_check(m, (InputForm)form);
  }
  return st;
}

// ---- the score ----------------------------------------------------------------------------------
typedef struct Scored {
  const char *key;
  bool order;
  bool listed; // in docs/mutants.md
  Judgement j;
  int problems; // that it was judged on
} Scored;

typedef struct Score {
  Arena *arena;
  const char *list; // text of docs/mutants.md, NULL: nothing is listed
  Scored *v; int n, cap;
} Score;

static inline bool is_caught(const Scored *s) { return s->j.sanitizer || s->j.verifier; }

// "prefill_mma: first of bar.sync 0; #2" is the row of template prefill_mma, mutant bar.sync 0; #2.
static inline const char *row_of(Arena *a, const char *key) {
  const char *text = strstr(key, ": ") + 2;
  size_t n = (size_t)(text - key) - 2;
  if (!strncmp(text, "first of ", 9)) text += 9;
  else if (!strncmp(text, "last of ", 8)) text += 8;
  return arena_printf(a, "| %.*s | `%s` |", (int)n, key, text);
}

static inline Scored *score_of(Score *s, const Mutant *m) {
  for (int i = 0; i < s->n; i++)
    if (!strcmp(s->v[i].key, m->key)) return &s->v[i];
  Scored *x = arena_push(s->arena, s->v, s->n, s->cap);
  *x = (Scored){.key = arena_strdup(s->arena, m->key), .order = m->order};
  x->listed = s->list && strstr(s->list, row_of(s->arena, x->key));
  return x;
}

// How many schedules; what was proven takes one on one of the inputs, others as the problems go on.
typedef struct Depth { int schedules, stride; bool deep; } Depth;

static inline Judgement judge_scored(MutantRun *m, const Scored *x, const Depth *depth) {
  bool sampled = x->listed && !depth->deep;
  Trial t = {0, forms_of(m), depth->schedules < ROUND ? (uint64_t)x->problems * 5 : 0,
             depth->schedules};
  if (sampled) {
    int form = x->problems % t.end;
    t = (Trial){form, form + 1, (uint64_t)x->problems * 5, 1};
  }
  return judge_mutant(m, &t);
}

// Every mutant of the problem's launches `first` .. `steps` - 1 that was not caught before; of the
// masks every `stride`-th.
static inline void score_problem(MutantRun *m, int first, int steps, const Depth *depth,
                                 Score *score) {
  int masks = 0;
  for (int step = first; step < steps && step < m->run.op->nsteps; step++) {
    Mutants all;
    list_mutants(m->arena, m->run.op->step[step].variant, &all);
    for (int i = 0; i < all.n; i++) {
      if (!all.v[i].order && masks++ % depth->stride) continue;
      Scored *x = score_of(score, &all.v[i]);
      if (is_caught(x)) continue;
      diag_reset(m->diag);
      assert_int_equal(mutant_build(m), ST_OK);
      mutate_variant(m->arena, m->run.op->step[step].variant, &all.v[i]);
      if (mutant_load(m) != ST_OK) fail_msg("%s\n%s", x->key, diag_text(m->diag));
      Judgement j = judge_scored(m, x, depth);
      x->problems++;
      x->j.changed |= j.changed;
      x->j.sanitizer |= j.sanitizer;
      x->j.verifier |= j.verifier;
      x->j.unplaced |= j.unplaced;
    }
  }
}

#endif
