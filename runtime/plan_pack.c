// From declared Args to packed argument blocks.  Nothing here knows a kernel: what is written where
// comes from ArgDecl alone.
#include <assert.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "plan.h"

static uint64_t round_up(uint64_t n, uint64_t to) { return (n + to - 1) / to * to; }

const ArgDecl *operator_arg(const Operator *op, const char *name) {
  for (int s = 0; s < op->nsteps; s++)
    for (int i = 0; i < op->step[s].variant->nargs; i++)
      if (!strcmp(op->step[s].variant->args[i].name, name)) return &op->step[s].variant->args[i];
  return NULL;
}

static const WorkSlot *slot_find(const Operator *op, const char *name) {
  for (int i = 0; i < op->nslots; i++)
    if (!strcmp(op->slot[i].arg->name, name)) return &op->slot[i];
  return NULL;
}

// ---- plan values -------------------------------------------------------------------------------
// Chunks are the only dimension of the work: pieces of all keys of all sequences and heads
// together.
static bool of_all_keys(const Operator *op) {
  const LaunchRule *rule = &op->step[0].variant->launch;
  return rule->nwork == 1 && rule->work[0].name && !strcmp(rule->work[0].name, "chunks");
}

// Work items of the first step for each chunk; 1 where that is not to be had yet.
static int64_t items_of_a_chunk(const Operator *op) {
  const LaunchRule *rule = &op->step[0].variant->launch;
  int64_t items = 1, n;
  for (int i = 0; i < rule->nwork; i++) {
    if (rule->work[i].name && !strcmp(rule->work[i].name, "chunks")) continue;
    Diag *ignored = diag_new();
    if (dim_eval(&rule->work[i], op->problem, &n, ignored) == ST_OK && n > 0 &&
        n < INT32_MAX / items)
      items *= n;
    diag_free(ignored);
  }
  return items;
}

// What the pieces of all keys are of: batch, KV heads and, where more queries than a tile has share
// a key, tiles.  1 where the template does not say.
static int64_t span_items(const Operator *op) {
  const LaunchRule *rule = &op->step[0].variant->launch;
  int64_t items = 1, n;
  Diag *ignored = diag_new();
  for (int i = 0; i < rule->nitems; i++)
    if (dim_eval(&rule->items[i], op->problem, &n, ignored) == ST_OK &&
        (__builtin_mul_overflow(items, n, &items) || items > INT32_MAX))
      items = INT32_MAX;
  diag_free(ignored);
  return items;
}

static int64_t times(int64_t a, int64_t b) {
  int64_t n;
  return __builtin_mul_overflow(a, b, &n) ? INT64_MAX : n;
}

// The fewest chunks, up to four rounds, that keep within 5 % as many of the `places` busy as any
// other count: equal pieces that leave a part of the last round idle are the usual loss.
static int64_t whole_rounds(int64_t items, int64_t places, int64_t most) {
  int64_t best = 1;
  double best_share = 0;
  for (int64_t c = 1; c <= most && c * items <= 4 * places; c++) {
    int64_t rounds = (c * items + places - 1) / places;
    double share = (double)(c * items) / (double)(rounds * places);
    if (share > best_share * 1.05) best = c, best_share = share;
  }
  return best;
}

// As many spans as places, or so few less that each is a whole item or the same part of one: an
// item in one span has no pieces to store and to merge, and its tiles of rows read the same keys at
// the same time.  An item to a span in up to four rounds; at most a 16th of the places idle.
static int64_t whole_items(int64_t items, int64_t places) {
  int64_t n = items < 1 ? 1 : items < places ? places / items * items : items;
  int64_t all = (n + places - 1) / places * places;
  return n <= 4 * places && all - n <= all / 16 ? n : places;
}

// Of the Problem and the Params alone: the same problem gives the same bits everywhere.  A variant
// that keeps its loads in shared memory fills an SM with one or two blocks, and PLAN_SMS are
// filled in whole rounds; others want enough blocks for a few to every SM.  No chunk of less than
// 256 keys, of latent ones, whose rows are longer, of 128.
int64_t plan_chunks(const Operator *op) {
  enum { WANTED_BLOCKS = 512, LEAST_KEYS = 256, LEAST_LATENT = 128, MOST = 256 };
  enum { SM_SMEM = 228 * 1024 };
  int64_t smem = op->step[0].variant->launch.smem_bytes, items = items_of_a_chunk(op);
  int64_t most = (problem_int(op->problem, "seqlen_k", 0) + LEAST_KEYS - 1) / LEAST_KEYS;
  int64_t rows = problem_int(op->problem, "batch", 1) * problem_int(op->problem, "heads_kv", 1);
  if (!of_all_keys(op) && most > MOST) most = MOST;
  int64_t n = rows > 0 ? (WANTED_BLOCKS + rows - 1) / rows : 1;
  int64_t fit = SM_SMEM / (smem + 1024);
  if (of_all_keys(op)) { // one round, equal pieces; all heads in step where that idles few SMs
    int64_t heads = problem_int(op->problem, "heads_kv", 1);
    int64_t meant = op->step[0].variant->launch.per_sm; // registers may not let in more
    if (meant > 0 && fit > meant) fit = meant;
    n = PLAN_SMS * (fit < 1 ? 1 : fit < 4 ? fit : 4);
    if (heads > 0 && n % heads <= n / 16) n -= n % heads;
    most = times(most, span_items(op));
    if (problem_int(op->problem, "shared_kv", 0)) {
      most = times(most, LEAST_KEYS / LEAST_LATENT);
      if (!operator_arg(op, "seqlens_k")) n = whole_items(span_items(op), n);
    }
    return n < most ? n : most > 0 ? most : 1;
  }
  if (smem > 0) n = whole_rounds(items, PLAN_SMS * (fit < 4 ? fit : 4), most);
  if (n > most) n = most;
  return n < 1 ? 1 : n;
}

// o_part: two kinds of pieces, of each span, of the rows of an item, of a row's elements.
static int64_t piece_bytes(const Operator *op) {
  const ArgDecl *part = operator_arg(op, "o_part");
  int64_t shape[TENSOR_MAX_RANK], rows = 0;
  Diag *ignored = diag_new();
  bool told = part && part->rank == 4 && arg_shape(part, op->problem, shape, ignored) == ST_OK;
  diag_free(ignored);
  if (!told || !problem_whole(op->problem, "rows", &rows)) return 0;
  return (rows < shape[2] ? rows : shape[2]) * shape[3] * dtype_bytes(part->dtype);
}

int64_t plan_pieces(const Operator *op, int64_t *bytes) {
  int64_t items = span_items(op), n = 0;
  if (of_all_keys(op) && items > 0)
    n = (problem_int(op->problem, "chunks", 1) + items - 1) / items;
  if (bytes) *bytes = times(n, piece_bytes(op));
  return n;
}

static void choose_chunks(Operator *op, int64_t given) {
  Problem *p = op->problem;
  int64_t most = problem_int(p, "seqlen_k", 0);
  if (of_all_keys(op)) most = times(most, span_items(op));
  int64_t n = given > 0 ? given : problem_int(p, "chunks", plan_chunks(op));
  if (most < 1) most = 1;
  problem_set_int(p, "chunks", n < 1 ? 1 : n > most ? most : n);
}

// The kernel gets scale in its own type, so the Problem holds what the kernel gets.
static void choose_scale(Problem *p, Dtype kernel) {
  double scale = problem_float(p, "scale", 1 / sqrt(problem_float(p, "head_dim", 1)));
  problem_set_float(p, "scale", dtype_round(kernel, scale));
}

// What a ceiling's Args are when nobody says: small, and `blocks` until the grid is known.
static void complete_ceiling(Problem *p) {
  static const struct {
    const char *name;
    int64_t value;
  } values[] = {{"words", CEILING_WORDS},
                {"blocks", 1},
                {"threads", CEILING_THREADS},
                {"rounds", CEILING_ROUNDS},
                {"a", 1},
                {"b", 1}};
  for (size_t i = 0; i < sizeof values / sizeof *values; i++)
    if (!problem_gives(p, values[i].name)) problem_set_int(p, values[i].name, values[i].value);
}

// What the problem says, and a variant that has nothing to do with it.
static Status check_asked(const Operator *op, Diag *d) {
  const Value *q = problem_value(op->problem, "seqlens_q"),
              *k = problem_value(op->problem, "seqlens_k");
  const char *name =
      op->step[0].variant->tmpl ? op->step[0].variant->tmpl->name : op->step[0].variant->id;
  for (int i = 0; q && i < q->nlist && !operator_arg(op, "cu_seqlens_q"); i++)
    if (q->list[i] != problem_int(op->problem, "seqlen_q", 1))
      return diag_fail(d, ST_INPUT,
                       "%s takes as many queries from every sequence, and seqlens_q differ", name);
  if (k && !operator_arg(op, "cu_seqlens_k") && !operator_arg(op, "seqlens_k"))
    return diag_fail(d, ST_INPUT,
                     "%s takes as many keys from every sequence, and the problem has seqlens_k",
                     name);
  if (operator_arg(op, "block_table") && problem_int(op->problem, "page_size", 0) < 1)
    return diag_fail(d, ST_INPUT,
                     "%s was built for K and V in pages, and the problem gives no page_size", name);
  if (problem_gives(op->problem, "words") && op->step[0].variant->kind != KIND_CEILING)
    return diag_fail(d, ST_INPUT, "words is for ceilings, and %s is none", name);
  TemplateKind kind = op->step[0].variant->kind;
  int64_t chunks = problem_int(op->problem, "chunks", 1);
  bool none = chunks > 1 && !operator_arg(op, "chunks");
  uint32_t blocks = op->step[0].variant->launch.cluster[0];
  if (none && kind == KIND_DECODE && blocks > 1)
    return diag_fail(d, ST_INPUT,
                     "chunks=%lld: %s was built with cluster=%u, which makes %u pieces of an item",
                     (long long)chunks, name, blocks, blocks);
  if (none && (kind == KIND_PREFILL || kind == KIND_DECODE))
    return diag_fail(d, ST_INPUT, "chunks=%lld: %s does not split the keys of a sequence",
                     (long long)chunks, name);
  return lengths_check_pages(op->problem, d);
}

// Factors of 8-bit inputs, and a variant whose inputs have none.
static Status check_factors(const Operator *op, Diag *d) {
  const Variant *v = op->step[0].variant;
  bool attention = v->kind == KIND_PREFILL || v->kind == KIND_DECODE;
  if (!attention || !problem_int(op->problem, "descale", 0) || operator_arg(op, "descale_k"))
    return ST_OK;
  return diag_fail(d, ST_INPUT, "%s has no factors of q, k and v (descale) for these types",
                   v->tmpl ? v->tmpl->name : v->id);
}

// Values that a template declares to be right from 0 on.
static Status check_signs(const Operator *op, Diag *d) {
  for (int s = 0; s < op->nsteps; s++) {
    const Variant *v = op->step[s].variant;
    for (int i = 0; i < v->nargs; i++) {
      double x = v->args[i].not_negative ? problem_float(op->problem, v->args[i].name, 0) : 0;
      if (x < 0)
        return diag_fail(d, ST_INPUT, "%s=%g: %s takes none below 0", v->args[i].name, x,
                         v->entry->name);
    }
  }
  return ST_OK;
}

// Values that a template takes multiples of.
static Status check_multiples(const Operator *op, Diag *d) {
  for (int s = 0; s < op->nsteps; s++) {
    const Variant *v = op->step[s].variant;
    for (int i = 0; i < v->nargs; i++) {
      int n = v->args[i].multiple;
      int64_t x = n ? problem_int(op->problem, v->args[i].name, 0) : 0;
      if (n && x % n)
        return diag_fail(d, ST_INPUT, "%s=%lld: %s takes multiples of %d", v->args[i].name,
                         (long long)x, v->tmpl ? v->tmpl->name : v->id, n);
    }
  }
  return ST_OK;
}

Status operator_complete(Operator *op, int64_t chunks, Diag *d) {
  Problem *p = op->problem;
  if (check_asked(op, d) != ST_OK || check_factors(op, d) != ST_OK) return ST_INPUT;
  if (op->step[0].variant->kind == KIND_CEILING) complete_ceiling(p);
  for (int s = 0; s < op->nsteps; s++) problem_fill_from_params(p, &op->step[s].variant->params);
  const ArgDecl *scale = operator_arg(op, "scale");
  if (scale) choose_scale(p, scale->dtype);
  const char *const sides[] = {"window_left", "window_right"};
  for (int i = 0; i < 2; i++) // a side that is not given is open
    if (operator_arg(op, sides[i]) && !problem_gives(p, sides[i])) problem_set_int(p, sides[i], -1);
  double cap = problem_float(p, "softcap", 1);
  if (operator_arg(op, "softcap") && !(cap >= 1e-30 && cap <= 1e30)) // s / cap in f32
    return diag_fail(d, ST_INPUT,
                     "softcap=%g: %s was built with a cap of the scores, which must be "
                     "between 1e-30 and 1e30",
                     cap, op->step[0].variant->entry->name);
  if (check_signs(op, d) != ST_OK || check_multiples(op, d) != ST_OK) return ST_INPUT;
  if (operator_arg(op, "chunks")) choose_chunks(op, chunks);
  return problem_check(p, d);
}

// ---- workspace ---------------------------------------------------------------------------------
static Status tensor_of_arg(const Operator *op, const ArgDecl *arg, Tensor *t, Diag *d) {
  *t = (Tensor){.dtype = arg->dtype, .rank = arg->rank};
  Status st = arg_shape(arg, op->problem, t->shape, d);
  if (st == ST_OK) tensor_dense(t);
  return st;
}

// Two steps that name the same tensor must mean the same tensor.
static Status same_everywhere(const Operator *op, const ArgDecl *arg, const Tensor *t, Diag *d) {
  for (int s = 0; s < op->nsteps; s++) {
    const Variant *v = op->step[s].variant;
    for (int i = 0; i < v->nargs; i++) {
      if (strcmp(v->args[i].name, arg->name)) continue;
      Tensor other;
      Status st = tensor_of_arg(op, &v->args[i], &other, d);
      if (st != ST_OK) return st;
      if (other.dtype != t->dtype || other.rank != t->rank ||
          memcmp(other.shape, t->shape, sizeof *t->shape * (size_t)t->rank))
        return diag_fail(d, ST_INPUT, "%s: tensor %s is declared otherwise by an earlier step",
                         v->id, arg->name);
    }
  }
  return ST_OK;
}

static Status add_slots(Operator *op, bool zero, Diag *d) {
  for (int s = 0; s < op->nsteps; s++) {
    const Variant *v = op->step[s].variant;
    for (int i = 0; i < v->nargs; i++) {
      const ArgDecl *arg = &v->args[i];
      if (arg->role != ARG_WORK || (arg->zero != 0) != zero || slot_find(op, arg->name)) continue;
      Tensor t;
      Status st = tensor_of_arg(op, arg, &t, d);
      if (st == ST_OK) st = same_everywhere(op, arg, &t, d);
      if (st != ST_OK) return st;
      uint64_t bytes = tensor_span_bytes(&t);
      *arena_push(op->arena, op->slot, op->nslots, op->slot_cap) =
          (WorkSlot){.arg = arg, .offset = op->workspace_bytes, .bytes = bytes};
      if (__builtin_add_overflow(op->workspace_bytes, round_up(bytes, WORKSPACE_ALIGN),
                                 &op->workspace_bytes))
        return diag_fail(d, ST_INPUT, "%s: the workspace overflows 64 bits", v->id);
    }
  }
  return ST_OK;
}

Status operator_lay_out(Operator *op, Diag *d) {
  op->nslots = 0;
  op->workspace_bytes = 0;
  Status st = add_slots(op, true, d);
  op->workspace_zero_bytes = op->workspace_bytes;
  return st == ST_OK ? add_slots(op, false, d) : st;
}

// ---- packing -----------------------------------------------------------------------------------
static void put(Step *step, uint32_t at, const void *p, size_t bytes) {
  assert(at + bytes <= step->variant->arg_bytes);
  memcpy(step->args + at, p, bytes);
}

// A pointer, then rank-1 strides in bytes: eight bytes each, so they follow one another.
static Status pack_tensor(Step *step, int i, const Tensor *t, Diag *d) {
  const ArgDecl *arg = &step->variant->args[i];
  put(step, arg->offset, &t->data, sizeof t->data);
  for (int k = 0; k + 1 < arg->rank; k++) {
    int64_t bytes;
    if (__builtin_mul_overflow(t->stride[k], (int64_t)dtype_bytes(t->dtype), &bytes))
      return diag_fail(d, ST_INPUT, "%s: stride_%d = %lld elements overflows", arg->name, k,
                       (long long)t->stride[k]);
    put(step, arg->offset + 8 * (uint32_t)(k + 1), &bytes, sizeof bytes);
  }
  if (arg->map.box[0]) {
    unsigned char map[MAP_BYTES];
    Status st = plan_tensor_map(step, arg, t, map, d);
    if (st != ST_OK) return st;
    put(step, arg->map_offset, map, sizeof map);
  }
  step->bound |= 1ull << i;
  return ST_OK;
}

// What a shape makes up (pool_pages) is not made up for a kernel that holds numbers against it.
static Status no_value(const Step *step, const ArgDecl *arg, const Problem *p, Diag *d) {
  const char *hint = "";
  int64_t n;
  if (problem_derived(p, arg->name, &n))
    hint = arena_printf(d->arena, "; the kernel holds what it reads against it: %s=%lld or more",
                        arg->name, (long long)n);
  Place at = {.origin = arg->origin};
  return diag_error(d, at, "%s: the problem gives no value for %s (%s)%s",
                    step->variant->tmpl ? step->variant->tmpl->name : step->variant->id, arg->name,
                    arg->doc ? arg->doc : "", hint);
}

static Status pack_value(Step *step, int i, const Problem *p, Diag *d) {
  const ArgDecl *arg = &step->variant->args[i];
  const Value *v = problem_value(p, arg->name);
  Place at = {.origin = arg->origin};
  if (!v) return no_value(step, arg, p, d);
  bool whole = dtype_mantissa(arg->dtype) == 0;
  if (whole && v->is_float)
    return diag_error(d, at, "%s=%g: takes a whole number", arg->name, v->f);
  if (arg->dtype == DT_I32 && (v->i < INT32_MIN || v->i > INT32_MAX))
    return diag_error(d, at, "%s=%lld does not fit the kernel's 32-bit parameter", arg->name,
                     (long long)v->i);
  if (arg->dtype == DT_I64) { // not by way of double
    put(step, arg->offset, &v->i, sizeof v->i);
  } else {
    uint64_t room = 0;
    dtype_store(arg->dtype, &room, v->f);
    put(step, arg->offset, &room, (size_t)dtype_bytes(arg->dtype));
  }
  step->bound |= 1ull << i;
  return ST_OK;
}

Status operator_pack_values(Operator *op, Diag *d) {
  for (int s = 0; s < op->nsteps; s++)
    for (int i = 0; i < op->step[s].variant->nargs; i++) {
      if (op->step[s].variant->args[i].role != ARG_VALUE) continue;
      Status st = pack_value(&op->step[s], i, op->problem, d);
      if (st != ST_OK) return st;
    }
  return ST_OK;
}

// ---- binding -----------------------------------------------------------------------------------
uint32_t variant_alignment(const Variant *v, const ArgDecl *arg) {
  uint32_t bytes = (uint32_t)dtype_bytes(arg->dtype);
  const char *vec = params_get(&v->params, "vec");
  if (arg->map.box[0]) return 16; // cuTensorMapEncodeTiled
  // Only rows of constant length (heads) are read by vectors; a row of LSE has any length.
  if (!vec || !arg->rank || arg->dim[arg->rank - 1].name) return bytes;
  uint64_t wide = strtoull(vec, NULL, 10) * bytes;
  return wide > 16 ? 16 : wide > bytes ? (uint32_t)wide : bytes; // one load is 16 bytes at most
}

static const char *shape_text(Arena *a, const int64_t *shape, int rank) {
  char *text = arena_strdup(a, "[");
  for (int i = 0; i < rank; i++)
    text = arena_printf(a, "%s%s%lld", text, i ? ", " : "", (long long)shape[i]);
  return arena_printf(a, "%s]", text);
}

static Status check_shape(const Operator *op, const ArgDecl *arg, const Tensor *t, Diag *d) {
  if (t->dtype != arg->dtype)
    return diag_fail(d, ST_INPUT, "%s: element type is %s, not %s", arg->name, dtype_name(t->dtype),
                     dtype_name(arg->dtype));
  if (t->rank != arg->rank)
    return diag_fail(d, ST_INPUT, "%s: has %d dimensions, not %d", arg->name, t->rank, arg->rank);
  int64_t shape[TENSOR_MAX_RANK];
  Status st = arg_shape(arg, op->problem, shape, d);
  if (st != ST_OK || !memcmp(shape, t->shape, sizeof *shape * (size_t)arg->rank)) return st;
  return diag_fail(d, ST_INPUT, "%s: shape is %s, not %s", arg->name,
                   shape_text(d->arena, t->shape, t->rank),
                   shape_text(d->arena, shape, arg->rank));
}

// What asks for the alignment, for messages.
static const char *alignment_reason(Arena *a, const Variant *v, const ArgDecl *arg) {
  const char *vec = params_get(&v->params, "vec");
  return arg->map.box[0] ? "its tensor map" : arena_printf(a, "vec=%s", vec ? vec : "1");
}

// Binding again and again, as a server does, takes no memory.
static Status check_strides(const Variant *v, const ArgDecl *arg, const Tensor *t, Diag *d) {
  uint32_t align = variant_alignment(v, arg);
  if (t->shape[t->rank - 1] > 1 && t->stride[t->rank - 1] != 1)
    return diag_fail(d, ST_INPUT, "%s: the last dimension's stride is %lld; it must be contiguous",
                     arg->name, (long long)t->stride[t->rank - 1]);
  if (t->data % align)
    return diag_fail(d, ST_INPUT, "%s: address 0x%llx is not aligned to %u bytes (%s)",
                     arg->name, (unsigned long long)t->data, align,
                     alignment_reason(d->arena, v, arg));
  for (int k = 0; k + 1 < t->rank; k++) {
    if (t->shape[k] <= 1) continue; // never multiplied by anything but 0
    if (t->stride[k] < 0) return diag_fail(d, ST_INPUT, "%s: stride_%d is negative", arg->name, k);
    if (arg->role != ARG_IN && t->stride[k] == 0)
      return diag_fail(d, ST_INPUT, "%s: stride_%d is 0, so outputs would overlap", arg->name, k);
    if ((uint64_t)t->stride[k] * (uint64_t)dtype_bytes(t->dtype) % align)
      return diag_fail(d, ST_INPUT,
                       "%s: stride_%d is %lld bytes, not a multiple of %u (%s)%s",
                       arg->name, k, (long long)(t->stride[k] * dtype_bytes(t->dtype)), align,
                       alignment_reason(d->arena, v, arg),
                       arg->map.box[0] ? "; a template without tensor maps takes it"
                                       : "; use a smaller vec");
  }
  return ST_OK;
}

static bool is_empty(const Tensor *t) {
  for (int i = 0; i < t->rank; i++)
    if (t->shape[i] == 0) return true;
  return false;
}

static Status check_tensor(const Operator *op, const Variant *v, const ArgDecl *arg,
                           const Tensor *t, Diag *d) {
  Status st = check_shape(op, arg, t, d);
  if (st == ST_OK && !is_empty(t)) {
    if (!t->data) return diag_fail(d, ST_INPUT, "%s: no memory is bound", arg->name);
    st = check_strides(v, arg, t, d);
  }
  return st;
}

Status operator_bind(Operator *op, const char *name, const Tensor *t, Diag *d) {
  const ArgDecl *first = operator_arg(op, name);
  if (!first || first->role == ARG_VALUE)
    return diag_fail(d, ST_INPUT, "no step of %s takes a tensor named %s", op->step[0].variant->id,
                     name);
  if (slot_find(op, name))
    return diag_fail(d, ST_INPUT, "%s is part of the workspace, which is bound whole", name);
  Tensor nothing = {0};
  for (int s = 0; s < op->nsteps; s++) {
    Step *step = &op->step[s];
    for (int i = 0; i < step->variant->nargs; i++) {
      const ArgDecl *arg = &step->variant->args[i];
      if (strcmp(arg->name, name)) continue;
      if (!t && !arg->optional)
        return diag_fail(d, ST_INPUT, "%s: %s needs this tensor", name, step->variant->id);
      Status st = t ? check_tensor(op, step->variant, arg, t, d) : ST_OK;
      if (st == ST_OK) st = pack_tensor(step, i, t ? t : &nothing, d);
      if (st != ST_OK) return st;
    }
  }
  return ST_OK;
}

Status operator_bind_workspace(Operator *op, DevPtr p, uint64_t bytes, Diag *d) {
  if (bytes < op->workspace_bytes)
    return diag_fail(d, ST_INPUT, "workspace: %llu bytes given, %llu needed",
                     (unsigned long long)bytes, (unsigned long long)op->workspace_bytes);
  if (p % WORKSPACE_ALIGN)
    return diag_fail(d, ST_INPUT, "workspace: address 0x%llx is not aligned to %d bytes",
                     (unsigned long long)p, WORKSPACE_ALIGN);
  for (int s = 0; s < op->nsteps; s++) {
    Step *step = &op->step[s];
    for (int i = 0; i < step->variant->nargs; i++) {
      const WorkSlot *slot = slot_find(op, step->variant->args[i].name);
      if (!slot) continue;
      Tensor t;
      Status st = tensor_of_arg(op, slot->arg, &t, d);
      t.data = p + slot->offset;
      if (st == ST_OK) st = pack_tensor(step, i, &t, d);
      if (st != ST_OK) return st;
    }
  }
  return ST_OK;
}

// A workspace of no bytes need not be bound.
static bool is_nothing(const Operator *op, const ArgDecl *arg) {
  return !op->workspace_bytes && slot_find(op, arg->name);
}

Status operator_all_bound(const Operator *op, Diag *d) {
  for (int s = 0; s < op->nsteps; s++) {
    const Step *step = &op->step[s];
    for (int i = 0; i < step->variant->nargs; i++) {
      const ArgDecl *arg = &step->variant->args[i];
      if (!(step->bound >> i & 1) && !arg->optional && !is_nothing(op, arg))
        return diag_fail(d, ST_INPUT, "%s: %s is not bound", step->variant->id, arg->name);
    }
  }
  return ST_OK;
}
