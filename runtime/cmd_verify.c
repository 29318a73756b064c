// verify TEMPLATE name=value ... --problem ...: runs a variant, holds it against the truth.
#include "cmd_counters.h"

void verdict_json(const Verdict *v, Json *j) {
  json_bool(j, "passed", v->passed);
  json_array(j, "gates");
  for (int i = 0; i < v->ngates; i++) {
    const GateResult *g = &v->gate[i];
    json_object(j, NULL);
    json_str(j, "name", g->name);
    json_str(j, "result", !g->run ? "not applicable" : g->passed ? "passed" : "failed");
    if (!g->run) json_str(j, "why", g->why_not);
    if (g->run) {
      json_num(j, "max_error", g->max_error);
      json_num(j, "max_allowed", g->max_allowed);
      json_num(j, "mean_error", g->mean_error);
      json_num(j, "mean_allowed", g->mean_allowed);
    }
    if (g->note) json_str(j, "note", g->note);
    if (g->bad.found) {
      json_object(j, "first_bad");
      json_int(j, "batch", g->bad.batch);
      json_int(j, "head", g->bad.head);
      json_int(j, "row", g->bad.row);
      json_int(j, "column", g->bad.col);
      json_num(j, "expected", g->bad.expected);
      json_num(j, "found", g->bad.got);
      json_close(j);
    }
    json_close(j);
  }
  json_close(j);
  if (v->sanitizer) json_str(j, "sanitizer", v->sanitizer);
  if (v->note) json_str(j, "note", v->note);
  if (v->reproduce) json_str(j, "reproduce", v->reproduce);
}

static void print_verdict(Cmd *c, const Subject *s, const Verdict *v) {
  printf("%s", s->template_name);
  for (int i = 0; i < s->params->n; i++)
    printf(" %s=%s", s->params->v[i].name, s->params->v[i].value);
  printf(" on %s, %s\n", device_info(s->device)->id, problem_text(c->arena, s->problem));
  subject_source(s);
  fputs(verdict_text(c->arena, v), stdout);
  if (v->passed) printf("verified: %s\n", verdict_passed(c->arena, v));
  else printf("NOT verified (%d gates run)\n", verdict_ran(v));
}

// The first schedule that fails is the one that is shown.
static Status every_schedule(Cmd *c, Subject *s, Verdict *v) {
  uint64_t n = c->cli->number[OPT_SCHEDULES], first = s->opts.schedule;
  Status st = ST_OK;
  for (uint64_t i = 0; i < (n ? n : 1) && !st; i++) {
    s->opts.schedule = first + i;
    cmd_schedule(c, s->opts.schedule);
    st = verify(s->session, s->device, s->template_name, s->params, s->problem, &s->opts, v,
                c->arena, c->diag);
  }
  if (n > 1 && v->sanitizer)
    v->sanitizer = arena_printf(c->arena, "%s, the last of %llu from %llu on", v->sanitizer,
                                (unsigned long long)n, (unsigned long long)first);
  if (n && st == ST_FAILED)
    diag_fail(c->diag, st, "schedule %llu is the first of %llu that fails",
              (unsigned long long)s->opts.schedule, (unsigned long long)n);
  return st;
}

Status cmd_verify(Cmd *c) {
  Subject s;
  Status st = subject_open(c, &s);
  if (st) return st;
  Verdict v = {0};
  st = every_schedule(c, &s, &v);
  bool told = !st || st == ST_FAILED;
  if (told && cli_has(c->cli, OPT_JSON)) {
    Json j;
    json_begin(&j, c->arena);
    subject_json(&s, c, &j);
    verdict_json(&v, &j);
    fputs(json_end(&j), stdout);
  } else if (told) {
    print_verdict(c, &s, &v);
  }
  if (!st && cli_has(c->cli, OPT_COUNTERS)) st = cmd_count_subject(c, &s);
  subject_close(&s);
  return st;
}
