#include "problem.h"

#include <assert.h>
#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "../gen/number.h"

static const ProblemName problem_names[] = {
    {"b", "batch", PROBLEM_SIZE, 0, "sequences in the batch"},
    {"hq", "heads_q", PROBLEM_SIZE, 1, "query heads; a multiple of heads_kv"},
    {"hkv", "heads_kv", PROBLEM_SIZE, 1, "key and value heads"},
    {"sq", "seqlen_q", PROBLEM_SIZE, 0, "queries in a sequence"},
    {"sk", "seqlen_k", PROBLEM_SIZE, 0, "keys in a sequence"},
    {"seqlens_q", "seqlens_q", PROBLEM_LIST, 0,
     "queries of each sequence: 5/0/3, or seed:7 for random ones"},
    {"seqlens_k", "seqlens_k", PROBLEM_LIST, 0, "keys of each sequence; seqlen_k is the largest"},
    {"tq", "total_q", PROBLEM_SIZE, 0, "queries of all sequences; follows from seqlens_q"},
    {"tk", "total_k", PROBLEM_SIZE, 0, "keys of all sequences; follows from seqlens_k"},
    {"page", "page_size", PROBLEM_SIZE, 0, "keys of a page; 0: K and V are not in pages"},
    {"pages", "pages", PROBLEM_SIZE, 0, "columns of the block table; as many as seqlen_k needs"},
    {"pool", "pool_pages", PROBLEM_SIZE, 0, "pages there are; those needed and some spare ones"},
    {"block_table", "block_table", PROBLEM_LIST, 0,
     "the pages of the sequences, row by row: 5/0/3; made up unless given"},
    {"d", "head_dim", PROBLEM_SIZE, 1, "elements of a head"},
    {"dv", "head_dim_v", PROBLEM_SIZE, 1, "elements of a value; head_dim unless given"},
    {"shared", "shared_kv", PROBLEM_FLAG, 0, "v is the first head_dim_v elements of k: one tensor"},
    {"words", "words", PROBLEM_SIZE, 0, "32-bit words of a buffer (ceilings)"},
    {"causal", "causal", PROBLEM_FLAG, 0, "query i sees keys j <= i + seqlen_k - seqlen_q"},
    {"wl", "window_left", PROBLEM_SIZE, -1, "keys before the query's own that it sees; -1: all"},
    {"wr", "window_right", PROBLEM_SIZE, -1, "keys after it, none when causal; -1: all"},
    {"softcap", "softcap", PROBLEM_FLOAT, 0,
     "scores s become softcap tanh(s / softcap); 0: no cap"},
    {"alibi", "alibi", PROBLEM_FLAG, 0, "scores lose slope |i + seqlen_k - seqlen_q - j|"},
    {"sinks", "sinks", PROBLEM_FLAG, 0, "an extra logit for each query head, without a value"},
    {"descale", "descale", PROBLEM_FLAG, 0,
     "q, k and v have a factor for each head (8-bit inputs)"},
    {"chunks", "chunks", PROBLEM_SIZE, 1, "parts the keys are split into (decode)"},
    {"scale", "scale", PROBLEM_FLOAT, 0, "factor of q . k; 1/sqrt(head_dim) unless given"},
    {"dtype", "dtype", PROBLEM_DTYPE, 0, "element type of q, k, v and o"},
    {"dtype_kv", "dtype_kv", PROBLEM_DTYPE, 0, "element type of k and v, where it is another one"},
};
enum { NNAMES = sizeof problem_names / sizeof *problem_names };

const ProblemName *problem_name_find(const char *name) {
  for (int i = 0; i < NNAMES; i++)
    if (!strcmp(problem_names[i].short_name, name) || !strcmp(problem_names[i].name, name))
      return &problem_names[i];
  return NULL;
}

// ---- values ------------------------------------------------------------------------------------
static Value *value_slot(const Problem *p, const char *name) {
  const ProblemName *known = problem_name_find(name);
  if (known) name = known->name;
  for (int i = 0; i < p->n; i++)
    if (!strcmp(p->v[i].name, name)) return &p->v[i];
  return NULL;
}

const Value *problem_value(const Problem *p, const char *name) { return value_slot(p, name); }

int64_t problem_int(const Problem *p, const char *name, int64_t otherwise) {
  const Value *v = problem_value(p, name);
  return v ? v->i : otherwise;
}

double problem_float(const Problem *p, const char *name, double otherwise) {
  const Value *v = problem_value(p, name);
  return v ? v->f : otherwise;
}

static Value *value_set(Problem *p, const char *name) {
  Value *v = value_slot(p, name);
  if (v) return v;
  const ProblemName *known = problem_name_find(name);
  v = arena_push(p->arena, p->v, p->n, p->cap);
  *v = (Value){.name = known ? known->name : arena_strdup(p->arena, name)};
  return v;
}

// Both readings are always there: a whole number is also the float of that value.
void problem_set_int(Problem *p, const char *name, int64_t i) {
  Value *v = value_set(p, name);
  *v = (Value){.name = v->name, .i = i, .f = (double)i};
}

void problem_imply(Problem *p, const char *name, int64_t i) {
  problem_set_int(p, name, i);
  value_slot(p, name)->implied = true;
}

void problem_set_float(Problem *p, const char *name, double f) {
  Value *v = value_set(p, name);
  *v = (Value){.name = v->name, .is_float = true, .f = f, .i = fabs(f) < 0x1p62 ? (int64_t)f : 0};
}

Problem *problem_copy(Arena *a, const Problem *p) {
  Problem *c = arena_new_of(a, Problem);
  c->arena = a;
  c->name = arena_strdup(a, p->name ? p->name : "");
  c->has_dtype = p->has_dtype;
  c->dtype = p->dtype;
  c->has_dtype_kv = p->has_dtype_kv;
  c->dtype_kv = p->dtype_kv;
  for (int i = 0; i < p->n; i++) {
    Value v = p->v[i];
    v.name = arena_strdup(a, v.name);
    if (v.nlist > 0)
      v.list = memcpy(arena_array(a, int64_t, v.nlist), v.list, sizeof *v.list * (size_t)v.nlist);
    *arena_push(a, c->v, c->n, c->cap) = v;
  }
  return c;
}

// ---- text --------------------------------------------------------------------------------------
static Status set_size(Problem *p, const char *name, int64_t min, const char *text, Diag *d) {
  char *end;
  errno = 0;
  long long i = strtoll(text, &end, 10);
  if (end == text || *end)
    return diag_fail(d, ST_INPUT, "%s=%s: %s takes a whole number", name, text, name);
  if (errno == ERANGE) return diag_fail(d, ST_INPUT, "%s=%s: does not fit 64 bits", name, text);
  if (i < min)
    return diag_fail(d, ST_INPUT, "%s=%s: %s is at least %lld", name, text, name, (long long)min);
  problem_set_int(p, name, i);
  return ST_OK;
}

Status problem_check_float(const char *name, double f, Diag *d) {
  if (!isfinite(f)) return diag_fail(d, ST_INPUT, "%s=%g: %s takes a finite number", name, f, name);
  if (!isfinite((float)f)) return diag_fail(d, ST_INPUT, "%s=%g: does not fit f32", name, f);
  if (!strcmp(name, "scale") && fabs(f) > SCALE_MOST)
    return diag_fail(d, ST_INPUT,
                     "%s=%g: %d at most: fp32 has no digits left for the weights of such scores",
                     name, f, SCALE_MOST);
  if (!strcmp(name, "scale") && f != 0 && fabs(f) < SCALE_LEAST)
    return diag_fail(d, ST_INPUT, "%s=%g: 0 or at least 2^-120: kernels hold no smaller ones", name,
                     f);
  return ST_OK;
}

static Status set_float(Problem *p, const char *name, const char *text, Diag *d) {
  char *end;
  double f = number_parse(text, &end);
  if (end == text || *end)
    return diag_fail(d, ST_INPUT, "%s=%s: %s takes a finite number", name, text, name);
  Status st = problem_check_float(name, f, d);
  if (st != ST_OK) return st;
  problem_set_float(p, name, f);
  return ST_OK;
}

static Status set_flag(Problem *p, const char *name, const char *text, Diag *d) {
  bool on = !strcmp(text, "1") || !strcmp(text, "true");
  if (!on && strcmp(text, "0") && strcmp(text, "false"))
    return diag_fail(d, ST_INPUT, "%s=%s: %s is 0 or 1", name, text, name);
  problem_set_int(p, name, on);
  return ST_OK;
}

const Dtype *problem_dtype(const Problem *p, const char *name) {
  bool kv = !strcmp(name, "dtype_kv");
  if (!(kv ? p->has_dtype_kv : p->has_dtype)) return NULL;
  return kv ? &p->dtype_kv : &p->dtype;
}

void problem_set_dtype(Problem *p, const char *name, Dtype t) {
  if (!strcmp(name, "dtype_kv")) p->has_dtype_kv = true, p->dtype_kv = t;
  else p->has_dtype = true, p->dtype = t;
}

static Status set_dtype(Problem *p, const char *name, const char *text, Diag *d) {
  Dtype t;
  if (!dtype_parse(text, &t) || !dtype_mantissa(t))
    return diag_fail(d, ST_INPUT, "%s=%s: not a floating-point element type", name, text);
  problem_set_dtype(p, name, t);
  return ST_OK;
}

static Status unknown_name(Arena *a, const char *name, const char *const *extra, int nextra,
                           Diag *d) {
  const char **all = arena_array(a, const char *, 2 * NNAMES + nextra);
  int n = 0;
  for (int i = 0; i < NNAMES; i++) {
    all[n++] = problem_names[i].name;
    if (strcmp(problem_names[i].name, problem_names[i].short_name))
      all[n++] = problem_names[i].short_name;
  }
  for (int i = 0; i < nextra; i++) all[n++] = extra[i];
  return diag_fail(d, ST_INPUT, "problem: unknown name \"%s\"%s", name,
                   diag_nearest(a, name, all, n));
}

static Status set_text(Problem *p, const char *name, const char *text, const char *const *extra,
                       int nextra, Diag *d) {
  const ProblemName *known = problem_name_find(name);
  if (known) switch (known->kind) {
    case PROBLEM_SIZE: return set_size(p, known->name, known->min, text, d);
    case PROBLEM_FLAG: return set_flag(p, known->name, text, d);
    case PROBLEM_FLOAT: return set_float(p, known->name, text, d);
    case PROBLEM_DTYPE: return set_dtype(p, known->name, text, d);
    case PROBLEM_LIST: return lengths_parse(p, known->name, text, d);
    }
  for (int i = 0; i < nextra; i++)
    if (!strcmp(extra[i], name)) {
      char *end;
      errno = 0;
      long long whole = strtoll(text, &end, 10);
      if (end == text || *end || errno) return set_float(p, name, text, d);
      return problem_set_int(p, name, whole), ST_OK;
    }
  return unknown_name(p->arena, name, extra, nextra, d);
}

bool problem_gives(const Problem *p, const char *name) {
  const ProblemName *known = problem_name_find(name);
  return known && known->kind == PROBLEM_DTYPE ? problem_dtype(p, known->name) != NULL
                                               : problem_value(p, name) != NULL;
}

// Adds "name=value,..." to p.  Names already in p are replaced; twice in one text is a mistake.
static Status add_text(Problem *p, const char *text, const char *const *extra, int nextra,
                       Diag *d) {
  Problem *seen = problem_copy(p->arena, &(Problem){.name = ""});
  int errors = d->errors;
  for (const char *at = text; *at;) {
    size_t n = strcspn(at, ",");
    char *item = arena_strndup(p->arena, at, n);
    at += n + (at[n] == ',');
    while (*item == ' ') item++;
    if (!*item) return diag_fail(d, ST_INPUT, "problem: \"%s\": no name=value at a comma", text);
    char *eq = strchr(item, '=');
    if (!eq || eq == item) {
      diag_fail(d, ST_INPUT, "problem: \"%s\" is not name=value", item);
      continue;
    }
    *eq = 0;
    if (problem_gives(seen, item)) {
      diag_fail(d, ST_INPUT, "problem: %s is given twice", item);
      continue;
    }
    if (set_text(p, item, eq + 1, extra, nextra, d) != ST_OK) continue;
    const ProblemName *known = problem_name_find(item);
    if (known && known->kind == PROBLEM_DTYPE) problem_set_dtype(seen, known->name, DT_F32);
    else problem_set_int(seen, item, 1);
  }
  return d->errors == errors ? ST_OK : ST_INPUT;
}

static Status finish(Problem *p, Problem **out, Diag *d) {
  if (lengths_finish(p, d) != ST_OK) return ST_INPUT;
  if (!problem_value(p, "batch")) problem_imply(p, "batch", 1);
  if (!problem_value(p, "heads_kv") && problem_value(p, "heads_q"))
    problem_imply(p, "heads_kv", problem_int(p, "heads_q", 1));
  Status st = problem_check(p, d);
  if (st == ST_OK) *out = p;
  return st;
}

Status problem_parse_with(Arena *a, const char *text, const char *const *extra, int nextra,
                          Problem **out, Diag *d) {
  *out = NULL;
  Problem *p = problem_copy(a, &(Problem){.name = ""});
  Status st = add_text(p, text, extra, nextra, d);
  return st == ST_OK ? finish(p, out, d) : st;
}

Status problem_parse(Arena *a, const char *text, Problem **out, Diag *d) {
  return problem_parse_with(a, text, NULL, 0, out, d);
}

Status problem_parse_over(Arena *a, const char *text, const char *changes, const char *const *extra,
                          int nextra, Problem **out, Diag *d) {
  *out = NULL;
  Problem *p = problem_copy(a, &(Problem){.name = ""});
  Status st = add_text(p, text, NULL, 0, d);
  if (st == ST_OK) st = add_text(p, changes, extra, nextra, d);
  return st == ST_OK ? finish(p, out, d) : st;
}

static char *float_text(Arena *a, double x) {
  char buf[NUMBER_BYTES];
  number_text(x, buf);
  return arena_strdup(a, buf);
}

static char *value_text(Arena *a, const char *sep, const char *name, const Value *v) {
  if (v->list) return arena_printf(a, "%s%s=%s", sep, name, lengths_text(a, v));
  if (v->is_float) return arena_printf(a, "%s%s=%s", sep, name, float_text(a, v->f));
  return arena_printf(a, "%s%s=%lld", sep, name, (long long)v->i);
}

char *problem_text(Arena *a, const Problem *p) {
  char *text = arena_strdup(a, "");
  for (int i = 0; i < NNAMES; i++) {
    const ProblemName *k = &problem_names[i];
    const char *sep = *text ? "," : "";
    if (k->kind == PROBLEM_DTYPE) {
      const Dtype *t = problem_dtype(p, k->name);
      if (t) text = arena_printf(a, "%s%s%s=%s", text, sep, k->short_name, dtype_name(*t));
      continue;
    }
    const Value *v = problem_value(p, k->name);
    if (v) text = arena_printf(a, "%s%s", text, value_text(a, sep, k->short_name, v));
  }
  for (int i = 0; i < p->n; i++)
    if (!problem_name_find(p->v[i].name))
      text = arena_printf(a, "%s%s", text, value_text(a, *text ? "," : "", p->v[i].name, &p->v[i]));
  return text;
}

// ---- checks ------------------------------------------------------------------------------------
// Bytes of a tensor of the named sizes in the widest element type must fit 63 bits.
static Status check_product(const Problem *p, const char *const names[4], Diag *d) {
  int64_t bytes = 8, values[4];
  bool over = false;
  for (int i = 0; i < 4; i++) {
    values[i] = problem_int(p, names[i], 1);
    // An empty dimension must not hide that the others overflow: sizes are counted as 1 at least.
    over |= __builtin_mul_overflow(bytes, values[i] > 1 ? values[i] : 1, &bytes);
  }
  if (!over) return ST_OK;
  return diag_fail(d, ST_INPUT,
                   "problem: %s x %s x %s x %s = %lld x %lld x %lld x %lld elements overflow",
                   names[0], names[1], names[2], names[3], (long long)values[0],
                   (long long)values[1], (long long)values[2], (long long)values[3]);
}

Status problem_check(const Problem *p, Diag *d) {
  int errors = d->errors;
  for (int i = 0; i < NNAMES; i++) {
    const ProblemName *k = &problem_names[i];
    const Value *v = problem_value(p, k->name);
    if (v && k->kind == PROBLEM_SIZE && v->i < k->min)
      diag_fail(d, ST_INPUT, "problem: %s=%lld: %s is at least %lld", k->name, (long long)v->i,
                k->name, (long long)k->min);
    if (v && k->kind == PROBLEM_FLAG && v->i != 0 && v->i != 1)
      diag_fail(d, ST_INPUT, "problem: %s=%lld: %s is 0 or 1", k->name, (long long)v->i, k->name);
    if (v && k->kind == PROBLEM_FLOAT) problem_check_float(k->name, v->f, d);
  }
  if (d->errors > errors) return ST_INPUT;
  int64_t hq = problem_int(p, "heads_q", 1), hkv = problem_int(p, "heads_kv", 1);
  if (hq % hkv)
    diag_fail(d, ST_INPUT,
              "problem: heads_q=%lld is not a multiple of heads_kv=%lld: every key head serves the "
              "same number of query heads",
              (long long)hq, (long long)hkv);
  const char *const q[4] = {"batch", "seqlen_q", "heads_q", "head_dim"};
  const char *const k[4] = {"batch", "seqlen_k", "heads_kv", "head_dim"};
  const char *const v[4] = {"batch", "seqlen_k", "heads_kv", "head_dim_v"};
  const char *const o[4] = {"batch", "seqlen_q", "heads_q", "head_dim_v"};
  if (problem_float(p, "softcap", 0) < 0)
    diag_fail(d, ST_INPUT, "problem: softcap=%g: softcap is at least 0",
              problem_float(p, "softcap", 0));
  if (problem_int(p, "causal", 0) && problem_int(p, "window_right", 0) > 0)
    diag_fail(d, ST_INPUT,
              "problem: window_right=%lld: under a causal mask no query sees a key after its own",
              (long long)problem_int(p, "window_right", 0));
  lengths_check(p, d);
  check_product(p, q, d);
  check_product(p, k, d);
  if (problem_gives(p, "head_dim_v")) check_product(p, v, d), check_product(p, o, d);
  return d->errors > errors ? ST_INPUT : ST_OK;
}

// ---- rules -------------------------------------------------------------------------------------
int64_t problem_head_dim_v(const Problem *p) {
  return problem_int(p, "head_dim_v", problem_int(p, "head_dim", 1));
}

bool problem_windowed(const Problem *p) {
  return problem_int(p, "window_left", -1) >= 0 || problem_int(p, "window_right", -1) >= 0;
}

bool problem_has_rules(const Problem *p) {
  return problem_windowed(p) || problem_float(p, "softcap", 0) > 0 || problem_int(p, "alibi", 0) ||
         problem_int(p, "sinks", 0) || problem_int(p, "descale", 0) ||
         problem_head_dim_v(p) != problem_int(p, "head_dim", 1);
}

KeyRange visible_range(const Problem *p, int64_t batch, int64_t row) {
  int64_t sq = problem_len_q(p, batch), sk = problem_len_k(p, batch);
  int64_t left = problem_int(p, "window_left", -1), right = problem_int(p, "window_right", -1);
  int64_t own = row + sk - sq; // the key that is the query's own
  KeyRange r = {0, visible_keys(problem_int(p, "causal", 0), row, sq, sk)};
  if (right >= 0 && right < r.to - 1 - own) r.to = own + right + 1;
  if (left >= 0 && own > left) r.from = own - left;
  if (r.to < 0) r.to = 0;
  if (r.from > r.to) r.from = r.to;
  return r;
}

// ---- work figures ------------------------------------------------------------------------------
// Sums of keys over queries: products of two sizes, and windows may be as wide as they like.
typedef __int128 Wide;

static Wide larger(Wide a, Wide b) { return a > b ? a : b; }

// The sum of x, held within [0, most], for x = first .. last.
static Wide clamped_sum(Wide first, Wide last, Wide most) {
  Wide low = larger(first, 0), high = last < most ? last : most - 1;
  Wide above = larger(last - larger(first, most) + 1, 0);
  return (high >= low ? (low + high) * (high - low + 1) / 2 : 0) + above * most;
}

// Query-key pairs of one head of a sequence. A query whose own key is o sees those from o - left on
// and those below o + right + 1 (visible_range), and o goes from sk - sq to sk - 1.
static double visible_pairs(const Problem *p, int64_t batch) {
  Wide sq = problem_len_q(p, batch), sk = problem_len_k(p, batch);
  Wide left = problem_int(p, "window_left", -1), right = problem_int(p, "window_right", -1);
  if (problem_int(p, "causal", 0)) right = 0;
  Wide to = right < 0 ? sq * sk : clamped_sum(sk - sq + right + 1, sk + right, sk);
  return (double)(left < 0 ? to : to - clamped_sum(sk - sq - left, sk - 1 - left, sk));
}

double problem_flops(const Problem *p) {
  int64_t batch = problem_int(p, "batch", 1), alike = problem_varlen(p) ? 1 : batch;
  double pairs = 0;
  for (int64_t b = 0; b < batch; b += alike) pairs += (double)alike * visible_pairs(p, b);
  return 2 * problem_float(p, "heads_q", 1) * pairs *
         (problem_float(p, "head_dim", 1) + (double)problem_head_dim_v(p));
}

Dtype problem_kv_dtype(const Problem *p, Dtype of_q) {
  return p->has_dtype_kv ? p->dtype_kv : of_q;
}

double problem_kv_bytes(const Problem *p) {
  int64_t batch = problem_int(p, "batch", 1), alike = problem_varlen(p) ? 1 : batch;
  double keys = 0;
  for (int64_t b = 0; b < batch; b += alike) keys += (double)alike * (double)problem_len_k(p, b);
  double dim_v = problem_int(p, "shared_kv", 0) ? 0 : (double)problem_head_dim_v(p);
  return problem_float(p, "heads_kv", 1) * keys * (problem_float(p, "head_dim", 1) + dim_v) *
         dtype_bytes(problem_kv_dtype(p, p->has_dtype ? p->dtype : DT_F32));
}
