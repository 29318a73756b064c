// The views of `dump`: annotated text and statistics.
#include <string.h>

#include "dump.h"
#include "json.h"

// "lib/softmax.inc:12 < decode_splitk.ptx.in:80": the origins, innermost first, shortened to file
// names without the folder that all of them share.
static char *origin_text(Arena *a, const Origin *o) {
  char *t = arena_strdup(a, "");
  for (const Origin *at = o; at; at = at->up) {
    const char *file = at->src->name;
    if (!strncmp(file, "templates/", 10)) file += 10;
    t = arena_printf(a, "%s%s%s:%u", t, at == o ? "" : " < ", file, at->line);
  }
  return t;
}

void dump_annotated(Arena *a, const DumpSubject *s, bool json, FILE *out) {
  uint32_t n = s->ptx->nlines;
  char **left = arena_array(a, char *, n + 1);
  int width = 0;
  for (uint32_t i = 1; i <= n; i++) {
    left[i] = origin_text(a, linemap_at(s->map, i));
    int len = (int)strlen(left[i]);
    if (len > width && len <= 60) width = len;
  }
  for (uint32_t i = 1; i <= n; i++) {
    size_t len;
    const char *line = source_line(s->ptx, i, &len);
    if (!json) {
      if (i < n || len) fprintf(out, "%-*s | %.*s\n", width, left[i], (int)len, line);
      continue;
    }
    const Origin *o = linemap_at(s->map, i);
    Json j;
    json_begin(&j, a);
    json_uint(&j, "line", i);
    json_str(&j, "ptx", arena_strndup(a, line, len));
    json_str(&j, "file", o ? o->src->name : NULL);
    if (o) json_uint(&j, "file_line", o->line);
    else json_null(&j, "file_line");
    json_str(&j, "origin", o ? left[i] : NULL);
    fputs(json_end(&j), out);
  }
}

static const char *const pipe_name[PTX_PIPE_COUNT] = {
#define X(id) #id,
    PTX_PIPES(X)
#undef X
};

static void json_stats(Arena *a, const DumpSubject *s, const PtxFunc *f, const PtxStats *t,
                       FILE *out) {
  Json j;
  json_begin(&j, a);
  json_str(&j, "variant", s->name);
  if (s->variant) json_str(&j, "hash", s->variant->hash);
  json_str(&j, "entry", f->name);
  json_int(&j, "instructions", t->insts);
  json_object(&j, "by_pipe");
  for (int i = 0; i < PTX_PIPE_COUNT; i++)
    if (t->by_pipe[i]) json_int(&j, pipe_name[i], t->by_pipe[i]);
  json_close(&j);
  json_int(&j, "registers_declared", t->regs_declared);
  json_int(&j, "registers_live", t->live_max);
  json_uint(&j, "registers_live_line", t->live_max_line);
  json_int(&j, "predicates_declared", t->preds_declared);
  json_int(&j, "predicates_live", t->preds_live_max);
  json_uint(&j, "shared_bytes", t->shared_bytes);
  if (s->variant) json_uint(&j, "dynamic_shared_bytes", s->variant->launch.smem_bytes);
  json_uint(&j, "local_bytes", t->local_bytes);
  json_uint(&j, "param_bytes", t->param_bytes);
  json_int(&j, "barriers", t->barriers);
  json_object(&j, "hot_loop");
  json_uint(&j, "line", t->loop_line);
  json_int(&j, "instructions", t->loop_insts);
  json_num(&j, "flops", t->loop_flops);
  json_num(&j, "global_bytes", t->loop_global_bytes);
  json_num(&j, "shared_bytes", t->loop_shared_bytes);
  json_num(&j, "intensity", t->loop_intensity);
  fputs(json_end(&j), out);
}

static void print_stats(Arena *a, const DumpSubject *s, const PtxFunc *f, const PtxStats *t,
                        FILE *out) {
  fprintf(out, "%s\nentry         %s\ninstructions  %d:", s->name, f->name, t->insts);
  for (int i = 0; i < PTX_PIPE_COUNT; i++)
    if (t->by_pipe[i]) fprintf(out, "  %s %d", pipe_name[i], t->by_pipe[i]);
  fprintf(out, "\nregisters     %d live at most (line %u; 64-bit ones count two), %d declared\n",
          t->live_max, t->live_max_line, t->regs_declared);
  fprintf(out, "predicates    %d live at most, %d declared\n", t->preds_live_max,
          t->preds_declared);
  fprintf(out, "bytes         %llu shared, ", (unsigned long long)t->shared_bytes);
  if (s->variant && s->variant->launch.smem_bytes)
    fprintf(out, "%u dynamic shared, ", s->variant->launch.smem_bytes);
  fprintf(out, "%llu local, %llu of parameters\n", (unsigned long long)t->local_bytes,
          (unsigned long long)t->param_bytes);
  fprintf(out, "barriers      %d\n", t->barriers);
  if (!t->loop_line) {
    fprintf(out, "hot loop      none\n");
    return;
  }
  const Origin *o = linemap_at(s->map, t->loop_line);
  fprintf(out, "hot loop      line %u%s%s: %d instructions\n", t->loop_line, o ? ", " : "",
          origin_text(a, o), t->loop_insts);
  fprintf(out, "  a thread    %.6g flops, %.6g global bytes, %.6g shared bytes", t->loop_flops,
          t->loop_global_bytes, t->loop_shared_bytes);
  if (t->loop_intensity > 0) fprintf(out, "; %.4g flops a global byte", t->loop_intensity);
  fputc('\n', out);
}

void dump_stats(Arena *a, const DumpSubject *s, bool json, FILE *out) {
  for (int i = 0; i < s->module->nfuncs; i++) {
    const PtxFunc *f = &s->module->funcs[i];
    if (!f->entry) continue;
    PtxStats t;
    ptx_stats(s->module, f, &t);
    (json ? json_stats : print_stats)(a, s, f, &t, out);
  }
}
