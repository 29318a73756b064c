// bench TEMPLATE name=value ... --problem ...: verified, then timed against the roofline.
#include "cmd_counters.h"
#include "measure.h"

static void print_measurement(Cmd *c, const Subject *s, const Measurement *m) {
  const Timing *t = &m->timing;
  const char *unit = m->by_bytes ? "GB/s" : "GFLOP/s";
  printf("%s\n", m->id);
  printf("problem    %s\n", problem_text(c->arena, s->problem));
  subject_source(s);
  printf("device     %s, %s\n", device_info(s->device)->id, device_info(s->device)->name);
  printf("verified   %d gates before the timed loop, %d after\n", verdict_ran(&m->before),
         verdict_ran(&m->after));
  const char *without = verdict_not_run(c->arena, &m->before);
  if (*without) printf("not run    %s\n", without);
  printf("launch     %u blocks", m->grid);
  if (m->chunks) printf(", %d chunks", m->chunks);
  if (m->regs && !device_info(s->device)->is_sim) printf(", %d registers", m->regs);
  if (t->modelled)
    printf("\ntime       %.2f us, modelled from counted work: not a measurement\n", t->median_us);
  else
    printf("\ntime       %.2f us, 95 %% interval %.2f to %.2f, %d samples (%s)\n", t->median_us,
           t->low_us, t->high_us, t->samples, timing_method(t));
  printf("rate       %.1f %s of %.1f: %.1f %% of the %s ceiling (%s)\n", m->rate, unit, m->roof,
         m->roof > 0 ? 100 * m->rate / m->roof : 0, m->ceiling.modelled ? "modelled" : "measured",
         m->roof_of);
}

static void json_measurement(Cmd *c, const Subject *s, const Measurement *m) {
  Json j;
  json_begin(&j, c->arena);
  subject_json(s, c, &j);
  json_str(&j, "variant", m->id);
  json_str(&j, "hash", m->hash);
  json_uint(&j, "grid", m->grid);
  json_int(&j, "chunks", m->chunks);
  json_int(&j, "registers", m->regs);
  json_object(&j, "timing");
  json_bool(&j, "modelled", m->timing.modelled);
  json_num(&j, "median_us", m->timing.median_us);
  json_num(&j, "low_us", m->timing.low_us);
  json_num(&j, "high_us", m->timing.high_us);
  json_num(&j, "min_us", m->timing.min_us);
  json_num(&j, "max_us", m->timing.max_us);
  json_int(&j, "samples", m->timing.samples);
  json_str(&j, "method", timing_method(&m->timing));
  json_close(&j);
  json_num(&j, "flops", m->flops);
  json_num(&j, "kv_bytes", m->bytes);
  json_str(&j, "unit", m->by_bytes ? "GB/s" : "GFLOP/s");
  json_num(&j, "rate", m->rate);
  json_num(&j, "ceiling", m->roof);
  json_str(&j, "ceiling_of", m->roof_of);
  json_bool(&j, "ceiling_modelled", m->ceiling.modelled);
  if (m->by_bytes && !m->copies && !m->ceiling.modelled) {
    json_str(&j, "ceiling_read_variant", m->ceiling.read_variant);
    json_num(&j, "ceiling_read_eager_us", m->ceiling.read_eager_us);
    json_num(&j, "ceiling_read_graph_us", m->ceiling.read_graph_us);
  }
  verdict_json(&m->before, &j);
  fputs(json_end(&j), stdout);
}

// A variant that fails is shown with its verdict, before or after the loop, and without a time.
static void report_failure(Cmd *c, const Subject *s, const Measurement *m) {
  const Verdict *v = m->before.passed ? &m->after : &m->before;
  if (!cli_has(c->cli, OPT_JSON)) {
    fputs(verdict_text(c->arena, v), stdout);
    return;
  }
  Json j;
  json_begin(&j, c->arena);
  subject_json(s, c, &j);
  verdict_json(v, &j);
  fputs(json_end(&j), stdout);
}

Status cmd_bench(Cmd *c) {
  Subject s;
  Status st = subject_open(c, &s);
  if (st) return st;
  MeasureOpts opts = {.verify = s.opts,
                      .time = {.samples = (int)c->cli->number[OPT_SAMPLES],
                               .hot = cli_has(c->cli, OPT_HOT),
                               .graph = cli_has(c->cli, OPT_GRAPH)}};
  Measurement m;
  st = measure_variant(s.session, s.device, s.template_name, s.params, s.problem, &opts, &m,
                       c->arena, c->diag);
  if (st == ST_FAILED) report_failure(c, &s, &m);
  else if (!st) (cli_has(c->cli, OPT_JSON) ? json_measurement : print_measurement)(c, &s, &m);
  if (!st && cli_has(c->cli, OPT_COUNTERS)) st = cmd_count_subject(c, &s);
  subject_close(&s);
  return st;
}
