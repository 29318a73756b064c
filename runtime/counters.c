#include "counters.h"

#include <stdlib.h>
#include <string.h>

#include "../gen/number.h"

// ---- the roof -----------------------------------------------------------------------------------
// Dense peaks of an H200 at 1.98 GHz: SMs x operations a clock of an SM; DRAM as measured.
#define PEAK(per_clock) (132 * (per_clock) * 1.98)
const Roof roof_h200 = {
    .name = "H200, modelled",
    .read_gbs = 4491,
    .gflops = {[FLOP_F16] = PEAK(512), [FLOP_BF16] = PEAK(512), [FLOP_F32] = PEAK(256),
               [FLOP_F64] = PEAK(128), [FLOP_TENSOR_F16] = PEAK(4096),
               [FLOP_TENSOR_BF16] = PEAK(4096), [FLOP_TENSOR_TF32] = PEAK(2048),
               [FLOP_TENSOR_F8] = PEAK(8192), [FLOP_TENSOR_F64] = PEAK(256),
               [FLOP_TENSOR_INT] = PEAK(8192)},
};

static double *roof_field(Roof *roof, const char *name, size_t n) {
  if (n == 4 && !memcmp(name, "dram", 4)) return &roof->read_gbs;
  for (int i = 0; i < FLOP_KIND_COUNT; i++) {
    const char *kind = flop_kind_name[i];
    bool same = strlen(kind) == n;
    for (size_t k = 0; same && k < n; k++)
      same = name[k] == kind[k] || (name[k] == '-' && kind[k] == ' ');
    if (same) return &roof->gflops[i];
  }
  return NULL;
}

Status roof_parse(Arena *a, const char *text, Roof *roof, Diag *d) {
  double *seen[FLOP_KIND_COUNT + 1];
  int nseen = 0;
  for (const char *at = text; *at;) {
    size_t n = strcspn(at, "=,");
    double *to = roof_field(roof, at, n), v = 0;
    char *end = (char *)at + n;
    if (!to)
      return diag_error(d, NOWHERE,
                        "--roof: no ceiling \"%s\": dram, f16, bf16, f32, f64, tensor-f16, "
                        "tensor-bf16, tensor-tf32, tensor-fp8, tensor-f64, tensor-int",
                        arena_strndup(a, at, n));
    if (at[n] == '=') v = number_parse(at + n + 1, &end);
    if (end == at + n || !(v > 0 && v < 1e12) || (*end && *end != ','))
      return diag_error(d, NOWHERE, "--roof: %.*s needs a rate, as dram=4491 (GB/s) or f32=66909 "
                        "(GFLOP/s)", (int)n, at);
    for (int i = 0; i < nseen; i++)
      if (seen[i] == to) return diag_error(d, NOWHERE, "--roof: %.*s is given twice", (int)n, at);
    seen[nseen++] = to;
    *to = v;
    at = *end ? end + 1 : end;
  }
  roof->name = "given";
  return ST_OK;
}

static RoofPosition roof_position(const Counters *c, const Roof *roof) {
  RoofPosition p = {.dram_us = (double)c->distinct_bytes / roof->read_gbs * 1e-3,
                    .bound_by = "dram"};
  p.floor_us = p.dram_us;
  int kind = FLOP_F32;
  uint64_t ops = 0;
  for (int i = 0; i < FLOP_KIND_COUNT; i++) {
    p.flop_us[i] = (double)c->flops_by_kind[i] / roof->gflops[i] * 1e-3;
    ops += c->flops_by_kind[i];
    if (p.flop_us[i] > p.flop_us[kind]) kind = i;
    if (p.flop_us[i] <= p.floor_us) continue;
    p.floor_us = p.flop_us[i];
    p.bound_by = flop_kind_name[i];
  }
  if (c->distinct_bytes) p.intensity = (double)ops / (double)c->distinct_bytes;
  p.ridge = roof->gflops[kind] / roof->read_gbs;
  return p;
}

// ---- lines --------------------------------------------------------------------------------------
static void add_counts(InstCount *to, const InstCount *from) {
  for (size_t i = 0; i < sizeof *to / sizeof(uint64_t); i++) // every member is a uint64_t
    ((uint64_t *)to)[i] += ((const uint64_t *)from)[i];
}

static InstCount sum_of(const KernelCounts *k) {
  InstCount all = {0};
  for (int i = 0; i < k->n; i++) add_counts(&all, &k->count[i]);
  return all;
}

static int by_place(const void *a, const void *b) {
  const LineCount *x = a, *y = b;
  int c = x->src == y->src ? 0 : strcmp(x->src->name, y->src->name);
  return c ? c : (x->line > y->line) - (x->line < y->line);
}

static uint64_t units(const SpaceCount s[COUNT_FORMS]) {
  uint64_t sum = 0;
  for (int i = 0; i < COUNT_FORMS; i++) sum += s[i].units;
  return sum;
}

static double share(uint64_t part, uint64_t all) { return all ? (double)part / (double)all : 0; }

static void find_heat(LineCount *lines, int n) {
  InstCount all = {0};
  for (int i = 0; i < n; i++) add_counts(&all, &lines[i].n);
  for (int i = 0; i < n; i++) {
    const InstCount *c = &lines[i].n;
    double heat[3] = {share(c->warps, all.warps), share(units(c->global), units(all.global)),
                      share(units(c->shared), units(all.shared))};
    for (int k = 0; k < 3; k++)
      if (heat[k] > lines[i].heat) lines[i].heat = heat[k];
  }
}

// The lines that ran, by source and line; *n of them.
static LineCount *counters_lines(Arena *a, const KernelCounts *k, int *n) {
  LineCount *v = arena_array(a, LineCount, k->n + 1);
  int count = 0;
  for (int i = 0; i < k->n; i++) {
    if (!k->count[i].warps) continue;
    const InstSite *s = &k->site[i];
    const Origin *o = linemap_at(k->map, s->in->line);
    if (o && !o->src->len) o = NULL; // a name by .loc: there is no text to show
    v[count++] = (LineCount){o ? o->src : k->module->src, o ? o->line : s->in->line, k->count[i],
                             k->count[i].threads * s->flops, 0};
  }
  qsort(v, (size_t)count, sizeof *v, by_place);
  *n = 0;
  for (int i = 0; i < count; i++) {
    if (*n && !by_place(&v[*n - 1], &v[i])) {
      add_counts(&v[*n - 1].n, &v[i].n);
      v[*n - 1].flops += v[i].flops;
    } else {
      v[(*n)++] = v[i];
    }
  }
  find_heat(v, *n);
  return v;
}

// ---- as text ------------------------------------------------------------------------------------
static const char *const pipe_name[PTX_PIPE_COUNT] = {
#define X(id) #id,
    PTX_PIPES(X)
#undef X
};

#define U(x) ((unsigned long long)(x))
static double percent(uint64_t part, uint64_t all) { return 100 * share(part, all); }

// A line for each way that was taken.
static void print_ways(const SpaceCount s[COUNT_FORMS], const char *space, const char *unit,
                       FILE *out) {
  const char *label = space;
  for (int i = 0; i < COUNT_FORMS; i++) {
    if (!s[i].requests) continue;
    fprintf(out, "%-10s %-10s %llu requests, %llu %s (ideal %llu: %.1f %%), %llu bytes\n", label,
            count_way[i].name, U(s[i].requests), U(s[i].units), unit, U(s[i].ideal),
            percent(s[i].ideal, s[i].units), U(s[i].bytes));
    label = "";
  }
}

static void print_memory(const KernelCounts *k, FILE *out) {
  const Counters *c = &k->total;
  InstCount all = sum_of(k);
  print_ways(all.global, "global", "sectors", out);
  fprintf(out, "distinct   %llu bytes read, %llu written, %llu together: the least DRAM can move\n",
          U(c->distinct_read_bytes), U(c->distinct_write_bytes), U(c->distinct_bytes));
  print_ways(all.shared, "shared", "wavefronts", out);
  if (c->shared_conflicts)
    fprintf(out, "           %llu wavefronts lost to bank conflicts (%.1f %%)\n",
            U(c->shared_conflicts), percent(c->shared_conflicts, units(all.shared)));
  if (c->local_read_sectors + c->local_write_sectors)
    fprintf(out, "local      %llu sectors read, %llu written\n", U(c->local_read_sectors),
            U(c->local_write_sectors));
}

static void print_roof(const Counters *c, const Roof *roof, FILE *out) {
  RoofPosition p = roof_position(c, roof);
  fprintf(out,
          "roofline   %.4g operations a distinct byte (ridge %.4g); on %s the counted work needs\n"
          "           at least %.4g us, bound by %s (modelled, not a measurement): dram %.4g us",
          p.intensity, p.ridge, roof->name, p.floor_us, p.bound_by, p.dram_us);
  for (int i = 0; i < FLOP_KIND_COUNT; i++)
    if (c->flops_by_kind[i]) fprintf(out, ", %s %.4g us", flop_kind_name[i], p.flop_us[i]);
  fputc('\n', out);
}

void counters_print(Arena *a, const KernelCounts *k, const Roof *roof, FILE *out) {
  (void)a;
  const Counters *c = &k->total;
  fprintf(out, "kernel     %s, %llu launch%s\n", k->entry->name, U(k->launches),
          k->launches == 1 ? "" : "es");
  fprintf(out,
          "issued     %llu warp instructions, %llu of threads (%.2f lanes active on average)\n",
          U(c->warp_insts), U(c->thread_insts), 32 * share(c->thread_insts, 32 * c->warp_insts));
  fprintf(out, "by pipe   ");
  for (int i = 0; i < PTX_PIPE_COUNT; i++)
    if (c->warps_by_pipe[i])
      fprintf(out, " %s %llu (%.1f %%)", pipe_name[i], U(c->warps_by_pipe[i]),
              percent(c->warps_by_pipe[i], c->warp_insts));
  fprintf(out, "\noperations");
  for (int i = 0; i < FLOP_KIND_COUNT; i++)
    if (c->flops_by_kind[i]) fprintf(out, " %s %llu", flop_kind_name[i], U(c->flops_by_kind[i]));
  fprintf(out, "\n");
  print_memory(k, out);
  fprintf(out, "control    %llu branches, %llu divergent; %llu barriers, %llu warps came to one\n",
          U(c->branches), U(c->divergent_branches), U(c->barriers), U(c->barrier_warps));
  print_roof(c, roof, out);
  for (int i = 0; i < k->nbuffers; i++) {
    const BufferCount *b = &k->buffer[i];
    fprintf(out, "buffer     %-10s %llu bytes: %llu read, %llu written (sectors touched, x32)\n",
            b->name, U(b->bytes), U(b->read), U(b->written));
  }
}

static void listing_line(const LineCount *l, double mark, const char *text, size_t len,
                         uint32_t line, FILE *out) {
  if (!l) {
    fprintf(out, "%53s%5u | %.*s\n", "", line, (int)len, text);
    return;
  }
  fprintf(out, "%s %12llu %6.2f", l->heat >= mark ? ">" : " ", U(l->n.warps),
          32 * share(l->n.threads, 32 * l->n.warps));
  uint64_t sectors = units(l->n.global), waves = units(l->n.shared), ideal = 0;
  for (int i = 0; i < COUNT_FORMS; i++) ideal += l->n.shared[i].ideal;
  if (sectors) fprintf(out, " %11llu", U(sectors));
  else fprintf(out, " %11s", "");
  if (waves) fprintf(out, " %9llu %8llu", U(waves), U(waves - ideal));
  else fprintf(out, " %9s %8s", "", "");
  fprintf(out, " %5u | %.*s\n", line, (int)len, text);
}

void counters_listing(Arena *a, const KernelCounts *k, FILE *out) {
  int n;
  LineCount *v = counters_lines(a, k, &n);
  double most = 0;
  for (int i = 0; i < n; i++) most = v[i].heat > most ? v[i].heat : most;
  for (int i = 0; i < n;) {
    const Source *src = v[i].src;
    fprintf(out, "%s%s\n  %12s %6s %11s %9s %8s\n", i ? "\n" : "", src->name, "warps", "lanes",
            "sectors", "wavefr.", "conflicts");
    for (uint32_t line = 1; line <= src->nlines; line++) {
      size_t len;
      const char *text = source_line(src, line, &len);
      const LineCount *l = i < n && v[i].src == src && v[i].line == line ? &v[i++] : NULL;
      if (l || len) listing_line(l, most / 2, text, len, line, out);
    }
  }
}

// ---- as JSON ------------------------------------------------------------------------------------
// One object for each way that was taken, of the first `ways`.
static void json_space(Json *j, const char *name, const SpaceCount *s, int ways, const char *unit) {
  bool some = false;
  for (int i = 0; i < ways; i++) some |= s[i].requests > 0;
  if (!some) return;
  json_object(j, name);
  for (int i = 0; i < ways; i++) {
    if (!s[i].requests) continue;
    json_object(j, count_way[i].name);
    json_uint(j, "requests", s[i].requests);
    json_uint(j, unit, s[i].units);
    json_uint(j, "ideal", s[i].ideal);
    json_uint(j, "bytes", s[i].bytes);
    json_close(j);
  }
  json_close(j);
}

static void json_spaces(Json *j, const InstCount *n) {
  json_space(j, "global", n->global, COUNT_FORMS, "sectors");
  json_space(j, "shared", n->shared, COUNT_FORMS, "wavefronts");
  json_space(j, "local", n->local, COUNT_STORE + 1, "sectors");
}

static void json_lines(Arena *a, const KernelCounts *k, Json *j) {
  int n;
  LineCount *v = counters_lines(a, k, &n);
  json_array(j, "lines");
  for (int i = 0; i < n; i++) {
    json_object(j, NULL);
    json_str(j, "file", v[i].src->name);
    json_uint(j, "line", v[i].line);
    json_uint(j, "warp_insts", v[i].n.warps);
    json_uint(j, "thread_insts", v[i].n.threads);
    if (v[i].flops) json_uint(j, "flops", v[i].flops);
    if (v[i].n.divergent) json_uint(j, "divergent", v[i].n.divergent);
    json_spaces(j, &v[i].n);
    json_num(j, "heat", v[i].heat);
    json_close(j);
  }
  json_close(j);
}

//                  member of Counters, and its name in JSON
#define SCALARS(X)                                                                                 \
  X(warp_insts) X(thread_insts) X(flops) X(xu_ops) X(global_read_requests)                         \
  X(global_read_sectors) X(global_read_ideal) X(global_read_bytes) X(global_write_requests)        \
  X(global_write_sectors) X(global_write_ideal) X(global_write_bytes) X(distinct_read_bytes)       \
  X(distinct_write_bytes) X(distinct_bytes) X(shared_read_requests) X(shared_read_wavefronts)      \
  X(shared_read_bytes) X(shared_write_requests) X(shared_write_wavefronts) X(shared_write_bytes)   \
  X(shared_conflicts) X(local_read_sectors) X(local_write_sectors) X(barriers) X(barrier_warps)    \
  X(branches) X(divergent_branches)

// fma, add and mul of each type apart, as the profiler counts them.
static uint64_t op_threads(const KernelCounts *k, FlopKind kind, const char *stem) {
  uint64_t sum = 0;
  for (int i = 0; i < k->n; i++) {
    const char *is = ptx_inst_form(k->site[i].in)->stem;
    bool same = !strcmp(is, stem) || (!strcmp(stem, "add") && !strcmp(is, "sub")) ||
                (!strcmp(stem, "fma") && !strcmp(is, "mad"));
    if (k->site[i].flop == kind && same) sum += k->count[i].threads;
  }
  return sum;
}

static void json_operations(const KernelCounts *k, Json *j) {
  static const char *const stems[] = {"fma", "add", "mul"};
  json_object(j, "operations");
  for (int i = 0; i < FLOP_KIND_COUNT; i++) {
    if (!k->total.flops_by_kind[i]) continue;
    json_object(j, flop_kind_name[i]);
    json_uint(j, "flops", k->total.flops_by_kind[i]);
    for (int s = 0; s < 3 && i <= FLOP_F64; s++)
      json_uint(j, stems[s], op_threads(k, (FlopKind)i, stems[s]));
    json_close(j);
  }
  json_close(j);
}

// Instructions that the machine has no single one for, or none as exact: ptxas makes arithmetic of
// them that `operations` does not have (docs/counters.md).
static const char *function_name(Arena *a, const PtxInst *in) {
  static const char *const stems[] = {"div", "rcp", "sqrt", "rsqrt", "ex2",
                                      "lg2", "sin", "cos",  "tanh"};
  const char *name = ptx_inst_form(in)->stem;
  PtxType t = (PtxType)in->type[0];
  bool is = false;
  for (size_t i = 0; i < sizeof stems / sizeof *stems; i++) is |= !strcmp(name, stems[i]);
  is &= t == PTX_T_F32 || t == PTX_T_F64 || t == PTX_T_F16 || t == PTX_T_F16X2 || t == PTX_T_BF16 ||
        t == PTX_T_BF16X2;
  for (int i = 0; is && i < in->nmods; i++)
    name = arena_printf(a, "%s.%s", name, ptx_mod_text(in->mods[i]));
  return is ? name : NULL;
}

static void json_functions(Arena *a, const KernelCounts *k, Json *j) {
  const char **name = arena_array(a, const char *, k->n + 1);
  uint64_t *threads = arena_array(a, uint64_t, k->n + 1);
  uint64_t *small = arena_array(a, uint64_t, k->n + 1);
  int n = 0;
  for (int i = 0; i < k->n; i++) {
    const char *is = k->count[i].warps ? function_name(a, k->site[i].in) : NULL;
    int at = 0;
    while (is && at < n && strcmp(name[at], is)) at++;
    if (!is) continue;
    if (at == n) name[n++] = is;
    threads[at] += k->count[i].threads;
    small[at] += k->count[i].small;
  }
  json_object(j, "functions");
  for (int i = 0; i < n; i++) json_uint(j, name[i], threads[i]);
  json_close(j);
  json_object(j, "functions_small");
  for (int i = 0; i < n; i++)
    if (small[i]) json_uint(j, name[i], small[i]);
  json_close(j);
}

static void json_roof(const Counters *c, const Roof *roof, Json *j) {
  RoofPosition p = roof_position(c, roof);
  json_object(j, "roofline");
  json_str(j, "ceilings", roof->name);
  json_bool(j, "modelled", true);
  json_num(j, "intensity", p.intensity);
  json_num(j, "ridge", p.ridge);
  json_num(j, "floor_us", p.floor_us);
  json_str(j, "bound_by", p.bound_by);
  json_close(j);
}

void counters_json(Arena *a, const KernelCounts *k, const Roof *roof, Json *j) {
  const Counters *c = &k->total;
  json_str(j, "kernel", k->entry->name);
  json_uint(j, "launches", k->launches);
#define X(field) json_uint(j, #field, c->field);
  SCALARS(X)
#undef X
  json_object(j, "warp_insts_by_pipe");
  for (int i = 0; i < PTX_PIPE_COUNT; i++)
    if (c->warps_by_pipe[i]) json_uint(j, pipe_name[i], c->warps_by_pipe[i]);
  json_close(j);
  json_object(j, "thread_insts_by_pipe");
  for (int i = 0; i < PTX_PIPE_COUNT; i++)
    if (c->by_pipe[i]) json_uint(j, pipe_name[i], c->by_pipe[i]);
  json_close(j);
  json_operations(k, j);
  json_functions(a, k, j);
  InstCount all = sum_of(k);
  json_object(j, "ways");
  json_spaces(j, &all);
  json_close(j);
  json_array(j, "buffers");
  for (int i = 0; i < k->nbuffers; i++) {
    json_object(j, NULL);
    json_str(j, "name", k->buffer[i].name);
    json_uint(j, "bytes", k->buffer[i].bytes);
    json_uint(j, "read", k->buffer[i].read);
    json_uint(j, "written", k->buffer[i].written);
    json_uint(j, "read64", k->buffer[i].read64);
    json_uint(j, "cold64", k->buffer[i].cold64);
    json_close(j);
  }
  json_close(j);
  json_roof(c, roof, j);
  json_lines(a, k, j);
}
