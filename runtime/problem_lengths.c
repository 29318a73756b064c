// Sequences of different lengths and K and V in pages: what a Problem says of them, and the tensors
// from which a kernel reads it.
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "problem.h"
#include "verify_data.h"

static const struct Side {
  const char *list, *longest, *total, *offsets;
} sides[2] = {{"seqlens_q", "seqlen_q", "total_q", "cu_seqlens_q"},
              {"seqlens_k", "seqlen_k", "total_k", "cu_seqlens_k"}};
typedef struct Side Side;

// Without a list the length is what problem_int gives, 1 query or 0 keys where nobody said.
static int64_t length(const Problem *p, const Side *s, int64_t batch) {
  const Value *v = problem_value(p, s->list);
  return v && v->nlist > batch ? v->list[batch] : problem_int(p, s->longest, s == sides);
}

int64_t problem_len_q(const Problem *p, int64_t batch) { return length(p, &sides[0], batch); }
int64_t problem_len_k(const Problem *p, int64_t batch) { return length(p, &sides[1], batch); }

bool problem_varlen(const Problem *p) {
  return problem_value(p, "seqlens_q") || problem_value(p, "seqlens_k");
}

static bool total(const Problem *p, const Side *s, int64_t *out) {
  const Value *v = problem_value(p, s->list);
  *out = 0;
  for (int i = 0; v && i < v->nlist; i++)
    if (__builtin_add_overflow(*out, v->list[i], out)) return false;
  return v || !__builtin_mul_overflow(problem_int(p, "batch", 1),
                                      problem_int(p, s->longest, s == sides), out);
}

// Pages of one sequence, and of all of them.
static int64_t pages_of(const Problem *p, int64_t keys) {
  int64_t size = problem_int(p, "page_size", 1);
  return keys / size + (keys % size > 0);
}

static int64_t needed_pages(const Problem *p) {
  int64_t n = 0;
  if (!problem_value(p, sides[1].list)) {
    bool over =
        __builtin_mul_overflow(problem_int(p, "batch", 1), pages_of(p, problem_len_k(p, 0)), &n);
    return over ? INT64_MAX : n;
  }
  for (int64_t b = 0; b < problem_int(p, "batch", 1); b++) n += pages_of(p, problem_len_k(p, b));
  return n;
}

bool problem_derived(const Problem *p, const char *name, int64_t *out) {
  int64_t group = problem_int(p, "heads_q", 1) / problem_int(p, "heads_kv", 1);
  for (int i = 0; i < 2; i++)
    if (!strcmp(name, sides[i].total)) return total(p, &sides[i], out);
  if (!strcmp(name, "offsets")) return *out = problem_int(p, "batch", 1) + 1, true;
  if (!strcmp(name, "rows"))
    return !__builtin_mul_overflow(problem_int(p, "seqlen_q", 1), group, out);
  if (problem_int(p, "page_size", 0) < 1) return false;
  if (!strcmp(name, "pages")) return *out = pages_of(p, problem_int(p, "seqlen_k", 0)), true;
  if (strcmp(name, "pool_pages")) return false;
  *out = needed_pages(p);
  if (__builtin_add_overflow(*out, *out / 8 + 1, out)) return false;
  const Value *table = problem_value(p, "block_table");
  if (table && table->i >= *out) *out = table->i + 1; // the last page that it names
  return true;
}

// ---- lists -------------------------------------------------------------------------------------
void problem_set_list(Problem *p, const char *name, const int64_t *list, int n) {
  int64_t most = 0;
  int64_t *own = arena_array(p->arena, int64_t, n + 1); // no list of none
  for (int i = 0; i < n; i++) {
    own[i] = list[i];
    if (list[i] > most) most = list[i];
  }
  problem_set_int(p, name, most);
  Value *v = (Value *)problem_value(p, name);
  v->list = own;
  v->nlist = n;
}

void problem_drop(Problem *p, const char *name) {
  const Value *v = problem_value(p, name);
  if (v) p->v[v - p->v] = p->v[--p->n];
}

void problem_fit_lengths(Problem *p) {
  int64_t batch = problem_int(p, "batch", 1);
  for (int s = 0; s < 2; s++) {
    const Value *v = problem_value(p, sides[s].list);
    if (!v) continue;
    int64_t most = problem_int(p, sides[s].longest, 0);
    int64_t *list = arena_array(p->arena, int64_t, batch + 1);
    for (int64_t b = 0; b < batch; b++)
      list[b] = b < v->nlist && v->list[b] < most ? v->list[b] : most;
    problem_set_list(p, sides[s].list, list, (int)batch);
    problem_drop(p, sides[s].total);
  }
  const Value *table = problem_value(p, "block_table");
  int64_t left = batch * problem_int(p, "pages", 0);
  if (table && left < table->nlist) problem_set_list(p, "block_table", table->list, (int)left);
}

Status lengths_parse(Problem *p, const char *name, const char *text, Diag *d) {
  bool table = !strcmp(name, "block_table"), seed = !table && !strncmp(text, "seed:", 5);
  int64_t *list = arena_array(p->arena, int64_t, (int)strlen(text) + 1);
  int n = 0;
  for (const char *at = seed ? text + 5 : text;; at++) {
    char *end;
    errno = 0;
    long long i = strtoll(at, &end, 10);
    if (end == at || (*end && (*end != '/' || seed)))
      return diag_fail(d, ST_INPUT, "%s=%s: %s takes %s", name, text, name,
                       table ? "numbers of pages, row by row: 5/0/3"
                             : "a length for each sequence, 5/0/3, or seed:7 for random ones");
    if (table && i >= INT32_MIN && i < 0) i = -1; // no page, whichever it is
    if ((i < 0 && !table) || i > INT32_MAX || errno == ERANGE)
      return diag_fail(d, ST_INPUT, "%s=%s: a number is between 0 and 2^31 - 1", name, text);
    list[n++] = i;
    if (!*(at = end)) break;
  }
  problem_set_list(p, name, list, n);
  if (seed) ((Value *)problem_value(p, name))->nlist = -1; // lengths_finish() knows how many
  return ST_OK;
}

// The longest there may be, none, and what the seed gives, in turn from a place that it gives too.
static Status draw(Problem *p, const Side *s, uint64_t seed, Diag *d) {
  int64_t batch = problem_int(p, "batch", 1), most = problem_int(p, s->longest, -1);
  if (most < 0)
    return diag_fail(d, ST_INPUT,
                     "problem: %s=seed:%llu draws lengths up to %s, which is not given", s->list,
                     (unsigned long long)seed, s->longest);
  if (batch > 1 << 20)
    return diag_fail(d, ST_INPUT, "problem: batch=%lld is too long a list", (long long)batch);
  int64_t *list = arena_array(p->arena, int64_t, batch + 1);
  for (int64_t b = 0; b < batch; b++)
    list[b] = (int64_t)(random_bits(seed, (uint64_t)b) % (uint64_t)(most + 1));
  if (batch) list[seed % (uint64_t)batch] = most;
  if (batch > 2) list[(seed + 1) % (uint64_t)batch] = 0;
  problem_set_list(p, s->list, list, (int)batch);
  return ST_OK;
}

Status lengths_finish(Problem *p, Diag *d) {
  for (int s = 0; s < 2; s++) {
    const Value *v = problem_value(p, sides[s].list);
    if (v && v->nlist > 0 && !problem_value(p, "batch")) problem_imply(p, "batch", v->nlist);
  }
  for (int s = 0; s < 2; s++) {
    const Value *v = problem_value(p, sides[s].list);
    if (!v) continue;
    if (v->nlist < 0) {
      Status st = draw(p, &sides[s], (uint64_t)v->i, d);
      if (st != ST_OK) return st;
    } else if (!problem_value(p, sides[s].longest)) {
      problem_imply(p, sides[s].longest, v->i);
    }
  }
  const Value *table = problem_value(p, "block_table");
  int64_t batch = problem_int(p, "batch", 1);
  if (table && batch > 0 && !problem_value(p, "pages"))
    problem_imply(p, "pages", table->nlist / batch);
  return ST_OK;
}

static void check_list(const Problem *p, const Side *s, Diag *d) {
  const Value *v = problem_value(p, s->list), *given = problem_value(p, s->total);
  int64_t batch = problem_int(p, "batch", 1), most = problem_int(p, s->longest, 0), sum;
  if (!v) return;
  if (v->nlist != batch)
    diag_fail(d, ST_INPUT, "problem: %s has %d lengths, batch is %lld", s->list, v->nlist,
              (long long)batch);
  else if (v->i > most)
    diag_fail(d, ST_INPUT, "problem: %s has a sequence of %lld, %s is %lld", s->list,
              (long long)v->i, s->longest, (long long)most);
  else if (!total(p, s, &sum) || sum > INT32_MAX)
    diag_fail(d, ST_INPUT, "problem: %s: offsets are 32-bit numbers, and the sum is 2^31 or more",
              s->list);
  else if (given && given->i != sum)
    diag_fail(d, ST_INPUT, "problem: %s=%lld, the sum of %s is %lld", s->total, (long long)given->i,
              s->list, (long long)sum);
}

// The entries that keys stand behind; no others are read.
static void check_entries(const Problem *p, const Value *table, int64_t columns, Diag *d) {
  int64_t pool;
  if (!problem_whole(p, "pool_pages", &pool)) return;
  for (int64_t b = 0; b < problem_int(p, "batch", 1); b++)
    for (int64_t c = 0; c < pages_of(p, problem_len_k(p, b)); c++) {
      int64_t page = table->list[b * columns + c];
      if (page >= 0 && page < pool) continue;
      diag_fail(
          d, ST_INPUT,
          "problem: block_table: page %lld of sequence %lld is %lld%s, and the pool has %lld pages",
          (long long)c, (long long)b, (long long)page, page < 0 ? ", no page" : "",
          (long long)pool);
      return;
    }
}

void lengths_check(const Problem *p, Diag *d) {
  int errors = d->errors;
  for (int s = 0; s < 2; s++) check_list(p, &sides[s], d);
  const Value *pages = problem_value(p, "pages"), *table = problem_value(p, "block_table");
  int64_t batch = problem_int(p, "batch", 1);
  int64_t size = problem_int(p, "page_size", 0), keys = problem_int(p, "seqlen_k", 0);
  bool ragged = table && pages && table->nlist != batch * pages->i;
  if (ragged)
    diag_fail(d, ST_INPUT,
              "problem: block_table has %d pages, which %lld sequences can't share alike",
              table->nlist, (long long)batch);
  if (!ragged && size > 0 && pages && pages_of(p, keys) > pages->i)
    diag_fail(d, ST_INPUT,
              "problem: %lld keys reach beyond the block table, whose rows have %lld pages of %lld",
              (long long)keys, (long long)pages->i, (long long)size);
  if (table && pages && size > 0 && d->errors == errors) check_entries(p, table, pages->i, d);
}

// What is said of pages where there are none, and tables whose keys 32 bits do not count.
Status lengths_check_pages(const Problem *p, Diag *d) {
  static const char *const of_pages[] = {"pages", "pool_pages", "block_table"};
  int errors = d->errors;
  int64_t size = problem_int(p, "page_size", 0), columns;
  if (size > 0 && problem_whole(p, "pages", &columns) && columns > INT32_MAX / size)
    return diag_fail(d, ST_INPUT,
                     "problem: %lld pages of %lld keys: a sequence has 2147483647 keys at most",
                     (long long)columns, (long long)size);
  if (size > 0) return ST_OK;
  for (int i = 0; i < 3; i++) {
    const Value *v = problem_value(p, of_pages[i]);
    if (v && !v->implied)
      diag_fail(d, ST_INPUT, "problem: %s without page_size, the keys of a page", of_pages[i]);
  }
  return d->errors > errors ? ST_INPUT : ST_OK;
}

static int compare_pages(const void *a, const void *b) {
  int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
  return (x > y) - (x < y);
}

// K and V are made up once for each page.
static Status check_once(const Problem *p, const Value *table, Diag *d) {
  int64_t columns = problem_int(p, "pages", 0),
          *all = arena_array(p->arena, int64_t, table->nlist + 1);
  int n = 0;
  for (int64_t b = 0; b < problem_int(p, "batch", 1); b++)
    for (int64_t c = 0; c < pages_of(p, problem_len_k(p, b)); c++)
      all[n++] = table->list[b * columns + c];
  if (n) qsort(all, (size_t)n, sizeof *all, compare_pages);
  for (int i = 1; i < n; i++)
    if (all[i] == all[i - 1])
      return diag_fail(d, ST_INPUT,
                       "problem: block_table: page %lld stands there twice, and is made up once",
                       (long long)all[i]);
  return ST_OK;
}

Status lengths_check_whole(const Problem *p, Diag *d) {
  static const char *const of_each[] = {"the queries of each sequence",
                                        "the keys of each sequence"};
  int errors = d->errors;
  for (int s = 0; s < 2; s++)
    if (problem_value(p, sides[s].total) && !problem_value(p, sides[s].list))
      diag_fail(d, ST_INPUT, "problem: %s without %s, %s", sides[s].total, sides[s].list,
                of_each[s]);
  lengths_check_pages(p, d);
  const Value *table = problem_value(p, "block_table"), *pool = problem_value(p, "pool_pages");
  if (d->errors == errors && table) check_once(p, table, d);
  if (d->errors == errors && pool && pool->i > INT32_MAX)
    diag_fail(d, ST_INPUT, "problem: pool_pages=%lld: a block table names 2147483647 pages at most",
              (long long)pool->i);
  if (d->errors == errors && !table && pool && pool->i < needed_pages(p))
    diag_fail(d, ST_INPUT, "problem: pool_pages=%lld, the sequences need %lld pages",
              (long long)pool->i, (long long)needed_pages(p));
  return d->errors > errors ? ST_INPUT : ST_OK;
}

char *lengths_text(Arena *a, const Value *v) {
  char *text = arena_alloc(a, (size_t)v->nlist * 13 + 1), *to = text;
  *to = 0;
  for (int i = 0; i < v->nlist; i++) to += snprintf(to, 13, "%s%d", i ? "/" : "", (int)v->list[i]);
  return text;
}

// ---- tensors -----------------------------------------------------------------------------------
bool lengths_tensor(const char *name) {
  return !strcmp(name, sides[0].offsets) || !strcmp(name, sides[1].offsets) ||
         !strcmp(name, sides[1].list) || !strcmp(name, "block_table");
}

static void fill_offsets(const Problem *p, const Side *s, int32_t *out) {
  int64_t at = 0;
  for (int64_t b = 0; b < problem_int(p, "batch", 1); b++) {
    out[b] = (int32_t)at;
    at += length(p, s, b);
  }
  out[problem_int(p, "batch", 1)] = (int32_t)at;
}

// Pages are dealt from a shuffled pool (Fisher and Yates).  An entry that no key stands behind is
// no page at all.
static Status fill_table(const Problem *p, uint64_t seed, int32_t *out, Diag *d) {
  int64_t pool = 0, columns = 0, next = 0;
  const Value *given = problem_value(p, "block_table");
  for (int i = 0; given && i < given->nlist; i++) out[i] = (int32_t)given->list[i];
  if (given) return ST_OK;
  if (!problem_whole(p, "pool_pages", &pool) || !problem_whole(p, "pages", &columns))
    return diag_fail(d, ST_INPUT, "problem: no value for page_size, the keys of a page");
  if (pool < needed_pages(p))
    return diag_fail(d, ST_INPUT, "problem: pool_pages=%lld, the sequences need %lld pages",
                     (long long)pool, (long long)needed_pages(p));
  int32_t *page = malloc(sizeof *page * (size_t)(pool + 1));
  if (!page)
    return diag_fail(d, ST_INPUT, "not enough host memory for %lld pages", (long long)pool);
  for (int64_t i = 0; i < pool; i++) { // page i goes to a place among the first i + 1
    int64_t j = (int64_t)(random_bits(seed ^ 0x9a6e5, (uint64_t)i) % (uint64_t)(i + 1));
    page[i] = page[j];
    page[j] = (int32_t)i;
  }
  for (int64_t b = 0; b < problem_int(p, "batch", 1); b++)
    for (int64_t c = 0; c < columns; c++)
      out[b * columns + c] = c < pages_of(p, problem_len_k(p, b)) ? page[next++] : INT32_MAX;
  free(page);
  return ST_OK;
}

Status lengths_fill(const Problem *p, const char *name, uint64_t seed, int32_t *out, Diag *d) {
  if (!strcmp(name, "block_table")) return fill_table(p, seed, out, d);
  for (int s = 0; s < 2; s++)
    if (!strcmp(name, sides[s].offsets)) return fill_offsets(p, &sides[s], out), ST_OK;
  for (int64_t b = 0; b < problem_int(p, "batch", 1); b++) out[b] = (int32_t)problem_len_k(p, b);
  return ST_OK;
}
