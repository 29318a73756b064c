// The subject of verify and bench: problem, device, and the user's own tensors.
#include "cmd_attention.h"

#include <string.h>

#include "cmd_counters.h"
#include "npy.h"
#include "outfile.h"
#include "timer.h"
#include "verify_data.h"

static const struct {
  CliOptId opt;
  const char *name;
} real_opts[3] = {{OPT_Q, "q"}, {OPT_K, "k"}, {OPT_V, "v"}};

static Status read_header(Cmd *c, const char *path, NpyArray *out) {
  Source *src;
  Status st = source_read(c->arena, path, &src, c->diag);
  if (!st) st = npy_parse(src->text, src->len, path, out, c->diag);
  if (!st && out->rank != 4)
    st = diag_error(c->diag, (Place){.src = src},
                    "%d dimensions; a tensor has 4: [batch, seqlen, heads, head_dim]", out->rank);
  return st;
}

// What the files say about a size; the problem may leave it out, and must not disagree.
static Status size_from_file(Cmd *c, Problem *p, const char *name, int64_t n, CliOptId opt) {
  const Value *v = problem_value(p, name);
  if (v && !v->implied && v->i != n)
    return diag_error(c->diag, NOWHERE, "%s=%lld in the problem, but %s has %lld", name,
                      (long long)v->i, c->cli->text[opt], (long long)n);
  problem_set_int(p, name, n);
  return ST_OK;
}

// Sizes and element type from the headers of --q, --k and --v; `p` has what --problem gives.
static Status problem_from_files(Cmd *c, Problem *p) {
  NpyArray q, k, v;
  Status st = read_header(c, c->cli->text[OPT_Q], &q);
  if (!st) st = read_header(c, c->cli->text[OPT_K], &k);
  if (!st) st = read_header(c, c->cli->text[OPT_V], &v);
  if (st) return st;
  const struct { const char *name; int64_t n; CliOptId opt; } sizes[] = {
      {"batch", q.shape[0], OPT_Q},    {"seqlen_q", q.shape[1], OPT_Q},
      {"heads_q", q.shape[2], OPT_Q},  {"head_dim", q.shape[3], OPT_Q},
      {"seqlen_k", k.shape[1], OPT_K}, {"heads_kv", k.shape[2], OPT_K},
  };
  for (size_t i = 0; i < sizeof sizes / sizeof *sizes && !st; i++)
    st = size_from_file(c, p, sizes[i].name, sizes[i].n, sizes[i].opt);
  if (!st && (v.shape[3] != q.shape[3] || problem_gives(p, "head_dim_v")))
    st = size_from_file(c, p, "head_dim_v", v.shape[3], OPT_V);
  if (!p->has_dtype) {
    p->has_dtype = true;
    p->dtype = q.type == NPY_F16 ? DT_F16 : q.type == NPY_U16 ? DT_BF16 : DT_F32;
  }
  return st ? st : problem_check(p, c->diag);
}

static Status check_shape(Cmd *c, const char *path, const HostTensor *h, const int64_t want[4]) {
  if (!memcmp(h->t.shape, want, 4 * sizeof *want)) return ST_OK;
  const int64_t *s = h->t.shape;
  return diag_error(c->diag, NOWHERE,
                    "%s: shape is [%lld, %lld, %lld, %lld], not [%lld, %lld, %lld, %lld]", path,
                    (long long)s[0], (long long)s[1], (long long)s[2], (long long)s[3],
                    (long long)want[0], (long long)want[1], (long long)want[2],
                    (long long)want[3]);
}

static Status read_real(Cmd *c, Subject *s) {
  const Problem *p = s->problem;
  int64_t b = problem_int(p, "batch", 1), d = problem_int(p, "head_dim", 1);
  int64_t q[4] = {b, problem_int(p, "seqlen_q", 1), problem_int(p, "heads_q", 1), d};
  int64_t kv[4] = {b, problem_int(p, "seqlen_k", 1), problem_int(p, "heads_kv", 1), d};
  int64_t v[4] = {b, kv[1], kv[2], problem_head_dim_v(p)};
  const int64_t *want[3] = {q, kv, v};
  HostTensor *to[3] = {&s->real.q, &s->real.k, &s->real.v};
  Status st = ST_OK;
  for (int i = 0; i < 3 && !st; i++) {
    const char *path = c->cli->text[real_opts[i].opt];
    st = npy_read_tensor(path, p->dtype, &layout_dense, to[i], c->diag);
    if (!st) st = check_shape(c, path, to[i], want[i]);
  }
  s->has_real = true;
  s->opts.real = &s->real;
  s->opts.real_args = arena_printf(c->arena, "--q %s --k %s --v %s",
                                   cli_quote(c->arena, c->cli->text[OPT_Q]),
                                   cli_quote(c->arena, c->cli->text[OPT_K]),
                                   cli_quote(c->arena, c->cli->text[OPT_V]));
  return st;
}

// A ceiling has no scores, no tensors of the user's and no problem but `words`, or nothing.
static Status check_ceiling(Cmd *c, const Problem *p) {
  static const CliOptId others[] = {OPT_HOOK, OPT_Q, OPT_K, OPT_V, OPT_SAVE};
  const char *name = c->cli->operand[0];
  for (size_t i = 0; i < sizeof others / sizeof *others; i++)
    if (cli_has(c->cli, others[i]))
      return diag_error(c->diag, NOWHERE, "--%s is for attention, and %s is none",
                        cli_opts[others[i]].name, name);
  for (int i = 0; i < p->n; i++)
    if (strcmp(p->v[i].name, "words") && !p->v[i].implied)
      return diag_error(c->diag, NOWHERE, "problem: %s is for attention; %s takes words",
                        p->v[i].name, name);
  if (!p->has_dtype && !p->has_dtype_kv) return ST_OK;
  return diag_error(c->diag, NOWHERE, "problem: dtype is for attention; %s takes words", name);
}

static Status open_ceiling(Cmd *c, Subject *s) {
  Problem *p = arena_new_of(c->arena, Problem);
  *p = (Problem){.arena = c->arena, .name = ""};
  Status st = cli_has(c->cli, OPT_PROBLEM) ? cmd_problem(c, &p) : ST_OK;
  if (!st) st = check_ceiling(c, p);
  if (!st) st = cmd_device(c, &s->device);
  if (st) return st;
  const Problem *complete = ceiling_problem(c->arena, p, s->device);
  problem_set_int(p, "words", problem_int(complete, "words", 0));
  s->problem = p;
  return ST_OK;
}

static Status open_problem(Cmd *c, Subject *s, const TemplateInfo *info) {
  if (info->kind == KIND_CEILING) return open_ceiling(c, s);
  int given = 0;
  for (int i = 0; i < 3; i++) given += cli_has(c->cli, real_opts[i].opt);
  if (!given) return cmd_problem(c, &s->problem);
  const char *spec = cli_has(c->cli, OPT_PROBLEM) ? c->cli->text[OPT_PROBLEM] : "";
  Status st = cmd_problem_of(c, spec, &s->problem);
  if (st) return st;
  if (problem_int(s->problem, "shared_kv", 0))
    return diag_error(c->diag, NOWHERE,
                      "--q, --k and --v are tensors apart; with shared=1 K and V are one");
  if (given != 3) return diag_error(c->diag, NOWHERE, "--q, --k and --v belong together");
  const char *dtype = params_get(&c->cli->params, "dtype");
  if (!st && dtype && !s->problem->has_dtype)
    s->problem->has_dtype = dtype_parse(dtype, &s->problem->dtype);
  if (!st) st = problem_from_files(c, s->problem);
  return st ? st : read_real(c, s);
}

// Parameters that were not given come from the planner's row for this device and shape.
static Status choose(Cmd *c, Subject *s) {
  const PlannerAsk ask = {.template_name = s->template_name, .given = &c->cli->params,
                          .build = s->opts.build};
  Status st = cmd_choose(c, &ask, s->problem, &s->choice);
  if (st) return st;
  s->params = &s->choice.params;
  s->problem = s->choice.problem;
  return ST_OK;
}

// What is written and said in the end, before anything runs.
static Status check_ends(Cmd *c) {
  static const char *const names[] = {"o.npy", "lse.npy", NULL};
  const char *dir = c->cli->text[OPT_SAVE];
  Status st = dir ? outfile_probe_folder(c->arena, dir, names, c->diag) : ST_OK;
  return st ? st : cmd_check_roof(c);
}

Status subject_open(Cmd *c, Subject *out) {
  *out = (Subject){.template_name = c->cli->operand[0]};
  const TemplateInfo *info;
  Status st = cmd_session(c, &out->session);
  // A wrong template name is told before anything about the problem.
  if (!st) st = session_template(out->session, out->template_name, &info, c->diag);
  if (!st) st = check_ends(c);
  if (!st) st = open_problem(c, out, info);
  if (!st) st = cmd_build_opts(c, &out->opts.build);
  if (!st) st = cmd_device(c, &out->device);
  if (!st) st = choose(c, out);
  out->opts.seed = c->cli->number[OPT_SEED];
  out->opts.grid = (uint32_t)c->cli->number[OPT_GRID];
  out->opts.threads = (int)c->cli->number[OPT_THREADS];
  out->opts.program = c->program;
  out->opts.sanitize = cli_has(c->cli, OPT_SANITIZE);
  out->opts.step_limit = c->cli->number[OPT_STEPS];
  out->opts.schedule = c->cli->number[OPT_SCHEDULE];
  out->opts.save_dir = c->cli->text[OPT_SAVE];
  out->opts.plan = (PlanOpts){.grid = out->opts.grid, .build = out->opts.build};
  if (st) subject_close(out);
  return st;
}

void subject_close(Subject *s) {
  if (s->has_real) inputs_free(&s->real);
}

void subject_source(const Subject *s) {
  printf("parameters %s: %s\n", planner_source(&s->choice), s->choice.why);
}

void subject_json(const Subject *s, const Cmd *c, Json *j) {
  json_str(j, "template", s->template_name);
  json_object(j, "params");
  for (int i = 0; i < s->params->n; i++) json_str(j, s->params->v[i].name, s->params->v[i].value);
  json_close(j);
  json_str(j, "source", planner_source(&s->choice));
  json_str(j, "why", s->choice.why);
  json_str(j, "problem", problem_text(c->arena, s->problem));
  json_str(j, "device", device_info(s->device)->id);
  json_str(j, "device_name", device_info(s->device)->name);
}
