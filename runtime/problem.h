// Problem: named values and tensor bindings for the Args a template declares.
#ifndef PTXSMITH_PROBLEM_H
#define PTXSMITH_PROBLEM_H

#include "device.h"

// A list (the length of each sequence) has its largest member in i and f.
typedef struct Value {
  const char *name;
  bool is_float;
  bool implied; // nobody gave it: batch and heads_kv, and what a list says of others
  int64_t i;
  double f;
  const int64_t *list;
  int nlist;
} Value;

// Values by their long names: batch heads_q heads_kv seqlen_q seqlen_k head_dim causal window_left
// ..., dtype as text in `dtype`, and any name that a hook declares.
typedef struct Problem {
  Arena *arena;
  const char *name; // "llama3-8b/decode-16k", or "" when made by hand
  Value *v; int n, cap;
  bool has_dtype; Dtype dtype;
  bool has_dtype_kv; Dtype dtype_kv; // of k and v; dtype unless given
} Problem;

// The names a Problem knows, in canonical order.  The only list of them.
typedef enum ProblemKind {
  PROBLEM_SIZE,
  PROBLEM_FLAG,
  PROBLEM_FLOAT,
  PROBLEM_DTYPE,
  PROBLEM_LIST
} ProblemKind;
typedef struct ProblemName {
  const char *short_name, *name; // equal in every place where a user writes one
  ProblemKind kind;
  int64_t min;                   // SIZE: least legal value
  const char *doc;
} ProblemName;
const ProblemName *problem_name_find(const char *name); // short or long; NULL when not a name

// "b=1,hq=32,...".  Unknown names, values that are not numbers, negative or overflowing sizes,
// heads_q not a multiple of heads_kv: ST_INPUT, one message each.  batch is 1 and heads_kv is
// heads_q where they are not given.
Status problem_parse(Arena *a, const char *text, Problem **out, Diag *d);
// The same, and the names in `extra` (those a hook declares) are numbers too.
Status problem_parse_with(Arena *a, const char *text, const char *const *extra, int nextra,
                          Problem **out, Diag *d);
// "b=1,...", and what `changes` says otherwise, checked together.
Status problem_parse_over(Arena *a, const char *text, const char *changes, const char *const *extra,
                          int nextra, Problem **out, Diag *d);
Status problem_check(const Problem *p, Diag *d);
Problem *problem_copy(Arena *a, const Problem *p);
const Value *problem_value(const Problem *p, const char *name);        // NULL when absent
int64_t problem_int(const Problem *p, const char *name, int64_t otherwise);
double problem_float(const Problem *p, const char *name, double otherwise);
bool problem_gives(const Problem *p, const char *name);                // dtype included
// A whole number by name, given or derived (problem_lengths.c): rows = seqlen_q heads_q / heads_kv,
// the query rows that share a key head; total_q, total_k: of all sequences; offsets: batch + 1;
// pages: columns of the block table; pool_pages.
bool problem_whole(const Problem *p, const char *name, int64_t *out);
void problem_set_int(Problem *p, const char *name, int64_t i);
void problem_set_float(Problem *p, const char *name, double f);
// ST_INPUT where no kernel can take the number: they take it as f32, and a scale beyond SCALE_MOST
// makes scores in which fp32 has no digits left for weights.
enum { SCALE_MOST = 4096, SCORE_MOST = 1 << 22 };
#define SCALE_LEAST 0x1p-120 // several kernels take log2(e) |scale| as at least that
Status problem_check_float(const char *name, double f, Diag *d);
void problem_imply(Problem *p, const char *name, int64_t i); // what follows where it is not given
char *problem_text(Arena *a, const Problem *p); // canonical "b=1,hq=32,..."; parses back

// Named problems, from lua/ptxsmith/problem.lua.  A spec is "b=1,...", a name, or a name and what
// differs from it: "llama3-8b/decode-16k,b=4".
typedef struct NamedProblem { const char *name, *text, *doc; } NamedProblem;
Status problem_list(Session *s, Arena *a, NamedProblem **out, int *n, Diag *d); // in file order
Status problem_open(Session *s, Arena *a, const char *spec, Problem **out, Diag *d);
Status problem_open_with(Session *s, Arena *a, const char *spec, const char *const *extra,
                         int nextra, Problem **out, Diag *d);
// The same where a hook's values are names too.  hook_path NULL: none.
Status problem_open_hooked(Session *s, Arena *a, const char *spec, const char *hook_path,
                           Problem **out, Diag *d);
// The same for whoever makes no tensors up: totals may come without the lists that make them.
Status problem_open_planned(Session *s, Arena *a, const char *spec, const char *hook_path,
                            Problem **out, Diag *d);

// What a Problem may ask for that a template must have a parameter for (problem_params.c).
typedef struct ProblemRule {
  const char *param, *what; // the parameter; what it is, in messages
  bool (*asked)(const Problem *p);
  bool flag;                // 1 says that there is one, and the Problem which; else it has a value
  const char *least;        // of a flag: a problem's values that ask for it; NULL: lists of lengths
} ProblemRule;
extern const ProblemRule problem_rules[];
extern const int problem_nrules;

// The template's Params that the Problem fixes (head_dim, causal, dtype): fills in those that are
// not given, ST_INPUT when a given one disagrees or the template can't do what the Problem asks.
Status problem_fix_params(Arena *a, const Problem *p, const TemplateInfo *t, Params *params,
                          Diag *d);
// The other way: what the Problem leaves open is what the variant was built with.
void problem_fill_from_params(Problem *p, const Params *params);

// Standard work figures (see ../docs/measurements.md): FLOPs 4 B Hq (visible query-key pairs) D;
// KV bytes 2 B Hkv Sk D sizeof(dtype).
double problem_flops(const Problem *p);
double problem_kv_bytes(const Problem *p);

// Keys that query `row` sees: [0, visible).  Causal is bottom-right: j <= row + seqlen_k -
// seqlen_q.
static inline int64_t visible_keys(bool causal, int64_t row, int64_t seqlen_q, int64_t seqlen_k) {
  int64_t n = causal ? row + seqlen_k - seqlen_q + 1 : seqlen_k;
  return n < 0 ? 0 : n > seqlen_k ? seqlen_k : n;
}

// Keys [from, to) that query `row` sees under the Problem's causal mask and window.  With shift =
// len_k - len_q of the sequence:  row + shift - window_left <= j <= row + shift + window_right.
typedef struct KeyRange { int64_t from, to; } KeyRange;
KeyRange visible_range(const Problem *p, int64_t batch, int64_t row);
bool problem_windowed(const Problem *p);      // a side of the window is bounded
// The type of a name of kind PROBLEM_DTYPE; NULL where it is not given.
const Dtype *problem_dtype(const Problem *p, const char *name);
void problem_set_dtype(Problem *p, const char *name, Dtype t);
Dtype problem_kv_dtype(const Problem *p, Dtype of_q);
int64_t problem_head_dim_v(const Problem *p); // head_dim unless given
bool problem_has_rules(const Problem *p);     // window, softcap, alibi, sinks, descale, head_dim_v

// ---- lengths and pages (problem_lengths.c) ------------------------------------------------------
// seqlens_q and seqlens_k: a length for each sequence, seqlen_q and seqlen_k are the largest.
bool problem_varlen(const Problem *p);                  // either list is there
int64_t problem_len_q(const Problem *p, int64_t batch); // seqlen_q where there is no list
int64_t problem_len_k(const Problem *p, int64_t batch);
void problem_set_list(Problem *p, const char *name, const int64_t *list, int n);
void problem_drop(Problem *p, const char *name);
// After batch, seqlen_q or seqlen_k were changed: lists of that many members, none of them longer.
void problem_fit_lengths(Problem *p);
bool problem_derived(const Problem *p, const char *name, int64_t *out);
// For problem.c: a list from its text ("5/0/3", "seed:7"), what was left open, and what is wrong.
Status lengths_parse(Problem *p, const char *name, const char *text, Diag *d);
Status lengths_finish(Problem *p, Diag *d);
void lengths_check(const Problem *p, Diag *d);
char *lengths_text(Arena *a, const Value *v);
// What a kernel reads of them: the contents of the i32 tensor cu_seqlens_q, cu_seqlens_k, seqlens_k
// or block_table (pages in an order drawn from `seed`; what no sequence needs lies far out of the
// pool).
bool lengths_tensor(const char *name);
// For whoever has no pages: pages, pool_pages, block_table without page_size.
Status lengths_check_pages(const Problem *p, Diag *d);
// For whoever makes the tensors up, and knows nothing but the Problem: that, totals without the
// lists that make them, a page twice in the block table, a pool that is too small.
Status lengths_check_whole(const Problem *p, Diag *d);
Status lengths_fill(const Problem *p, const char *name, uint64_t seed, int32_t *out, Diag *d);

// Tensor: a binding.  Strides in elements; the last dimension is contiguous (stride 1).
typedef struct Tensor {
  Dtype dtype;
  int rank;
  int64_t shape[TENSOR_MAX_RANK], stride[TENSOR_MAX_RANK];
  DevPtr data;
} Tensor;

// Evaluates a declared dimension or shape with the Problem's values.  ST_INPUT when a value lacks.
Status dim_eval(const Dim *dim, const Problem *p, int64_t *out, Diag *d);
Status arg_shape(const ArgDecl *arg, const Problem *p, int64_t shape[], Diag *d);
// Contiguous strides; bytes of the span a strided tensor covers (0 for an empty one).
void tensor_dense(Tensor *t);
uint64_t tensor_span_bytes(const Tensor *t);
int64_t tensor_elements(const Tensor *t); // product of the shape

#endif
