// Planner: what to run for a Problem, from a readable text table.
//
//   device | driver | hash | template | shape | params | measured
//   NVIDIA H200 | 580.95.05 | 7f3a... | decode_splitk |
//       dtype=f32 d=128 group=1 causal=0 sq=1 sk=16384 work=8 |
//       vec=4 chunks=64 | 18.20 us, 3687.0 GB/s, 82.1 % of roof, 2026-11-29T20:00:00Z
//
// (one line each; # begins a comment.)  A row counts for the device and driver it was measured on.
// `hash` is that of the first step's text: where the generator makes another one by now, the row's
// parameters are still the best known and are taken while they can be built, and that is said.  The
// shape is a bucket: dtype, head size, queries per KV head, causal and whether there is one query
// are exact; lengths and batch * heads_kv are rounded down to powers of two.  What a problem asks
// for besides (window, softcap, alibi, sinks, varlen, paged, shared, dv, dtype_kv) stands behind.
// A window says how many keys its sides have, the query's own among them (window=1 left=256: 256 to
// 511), sequences of several queries and different lengths how long they are on average
// (varlen=mean: sq and sk are means; varlen=1: the longest), pages how many keys they have
// (paged=1 page=16: 16 to 31).  A row that does not say one of these is of any width, mean or page
// size, and stands behind those that do.
//
// A row need not do for every problem of its shape (boxes of 32 keys in pages of 48): it is passed
// over for the next one.  So is a row whose launch has clusters where lengths differ, or where
// there are more of them than run at once (planner_cluster.c).
//
// Without a row the templates are asked in an order that they declare (template { rank, first })
// for the regime of the problem (planner_order.c), and the first that declares all that the problem
// asks for, and whose defaults fit the device, is taken.
#ifndef PTXSMITH_PLANNER_H
#define PTXSMITH_PLANNER_H

#include "plan.h"
#include "script.h"

typedef struct PlannerRow {
  const char *device, *driver, *hash, *template_name, *shape, *params, *measured;
  const char *file; uint32_t line;
} PlannerRow;

typedef struct PlannerTable {
  PlannerRow *v; int n, cap;
} PlannerTable;

// Adds a text's rows.  A row that can't be read is an error with its line; the others are kept.
// The text may begin with a byte order mark.
enum { BOM_BYTES = 3 };
size_t planner_bom(const Source *src); // its bytes, 0 or BOM_BYTES
Status planner_parse(Arena *a, const Source *src, PlannerTable *out, Diag *d);

// ---- planner_shape.c ----------------------------------------------------------------------------
int64_t planner_bucket(int64_t n); // the power of two below or at it; 0 for none
char *planner_shape(Arena *a, const Problem *p); // the bucket, canonical
// Of a problem as the variant with these parameters has it: lengths that are on the device and not
// in the problem are varlen=1 there.
char *planner_shape_of(Arena *a, const Problem *p, const Params *built);
// All shapes whose rows are of the problem: the bucket, then without what a row need not say.
typedef struct ShapeForm {
  char *text;
  bool widths, pages, means; // says them
} ShapeForm;
enum { SHAPE_FORMS = 8 };
int planner_shape_forms(Arena *a, const Problem *p, const Params *built,
                        ShapeForm out[SHAPE_FORMS]);
// What the bucket's rounded sizes stand for ("sk=256 is 256 to 511") and what is not known; "":
// nothing.
const char *planner_shape_note(Arena *a, const Problem *p, const Params *built);
// The least problem of a shape: one of its forms is that text again.
Status planner_shape_problem(Arena *a, const char *shape, Problem **out, Diag *d);

typedef struct PlannerChoice {
  const char *template_name;
  Params params;          // of the template
  Problem *problem;       // with the row's values (chunks)
  const char *shape;      // the bucket that rows were looked up by
  const PlannerRow *row;  // NULL: no row holds, these are the template's defaults
  bool older;             // the row's text is another than the generator makes now
  const char *without;    // what is given, changes the arguments, and the row was measured without
  const char *why;        // one sentence
  int built;              // which of the question's
  const char **passed;
  int npassed, passed_cap; // rows of this shape and templates that do not do, and why
} PlannerChoice;
// What the asker has settled already.
typedef struct PlannerAsk {
  const char *template_name; // NULL: whichever the problem asks for
  const Params *given;       // a row holds only when it was measured with these; may be NULL
  VariantOpts build;         // a hook or a target: a template must take it
  Device *device; // says how many clusters run at once; NULL: nobody does
  Operator **op; // not NULL: gets what the choice was found out by building, else NULL; the asker's
} PlannerAsk;
// Never fails for want of a row.  ST_INPUT: no template does the problem on this device, and what
// is in the way of the nearest one.
Status planner_choose(Session *s, Arena *a, const PlannerTable *t, const PlannerAsk *ask,
                      const Problem *p, const DeviceInfo *dev, PlannerChoice *out, Diag *d);
// "tuned" or "default": where a choice's parameters came from.
const char *planner_source(const PlannerChoice *c);

// How far a template came on the way to a launch, and what stopped it.
typedef enum FitStep { FIT_RULES, FIT_PARAMS, FIT_TEXT, FIT_DEVICE, FIT_DONE } FitStep;
typedef struct Fit {
  FitStep step;
  int reasons;      // how many; `why` is the first
  const char *why;  // NULL for FIT_DONE
  const char *hash; // of the first step's text, where there is one
  Params resolved;  // of the first step
  const char *args; // what a caller must give: values and tensors but workspace and chunks
  bool has_given;   // the template declares all parameters that are given
  bool too_large;   // it stops at the device's shared memory, and there alone
  const char *point;   // what was changed in the defaults, NULL for nothing,
  const char *changed; // and why: "with ... to ..."
  int64_t pieces, piece_bytes; // plan_pieces
  int64_t clusters; // of the first step; 0: it launches blocks
  bool lengths;     // each sequence has its own, read on the device
} Fit;

// What became of a row's text.
typedef enum PlannerText { TEXT_SAME, TEXT_OTHER, TEXT_NONE } PlannerText;
// Builds what the row says for the least problem of its shape, on any device.  TEXT_NONE: it can't
// be built any more, *why.
PlannerText planner_row_text(Session *s, Arena *a, const PlannerRow *r, const char **why);
Fit planner_row_fit(Session *s, Arena *a, const PlannerRow *r); // of that problem

// ---- planner_rows.c: rows from results ----------------------------------------------------------

// Why a result makes no row, or none that is taken.
typedef enum PlannerLeft {
  LEFT_MODELLED,
  LEFT_FAILED,
  LEFT_BUILD,
  LEFT_GRID,
  LEFT_CLUSTERS,
  LEFT_TEMPLATE,
  LEFT_UNREADABLE,
  LEFT_UNBUILT,
  LEFT_OLDER,
  LEFT_WARM,
  LEFT_EAGER,
  LEFT_UNIT,
  LEFT_SLOWER,
  LEFT_DAMAGED,
  LEFT_COUNT
} PlannerLeft;
const char *planner_left_text(Arena *a, PlannerLeft why, int n); // "3 results of a fixed grid"
// All of them in a line; NULL where nothing was left out.
const char *planner_left_all(Arena *a, const int left[LEFT_COUNT]);
static inline const char *plural(int n) { return n == 1 ? "" : "s"; }

bool planner_takes(Session *s, const char *template_name); // it is prefill or decode
// The row that the best of a sweep's rows makes, NULL when none was measured (sim's are modelled).
const char *planner_row_of(Session *s, Arena *a, const Run *r, const Params *rows, int nrows);

// Of a store's results the best that passed verification for each device, driver, template and
// shape, in the order in which these first stand there; one of clusters, where that is faster,
// before the best of all others.
typedef struct PlannerRows {
  const char **v; int n, cap; // rows as text
  int left[LEFT_COUNT];       // how many results make none, and why
} PlannerRows;
// ST_INPUT where there is none.
Status planner_rows_from(Session *s, Arena *a, const char *store, PlannerRows *out, Diag *d);

// ---- planner_merge.c: which rows compete, and where they stand ----------------------------------

// A row with what it competes by.
typedef struct PlannerRated {
  const char *text;
  PlannerRow row;
  double rate;    // 0: not said
  bool by_bytes, warm, graph;
  PlannerText made;
  Fit least; // what it makes of the least problem of its shape
} PlannerRated;
bool planner_rate(Session *s, Arena *a, const char *text, PlannerRated *out); // false: no row
bool planner_same_key(const PlannerRow *x, const PlannerRow *y);
// Of one key, and both of clusters or neither: one takes the other's place.
bool planner_rivals(const PlannerRated *x, const PlannerRated *y);
// Why x stands behind y, LEFT_COUNT where it does not.  The present text stands before any older
// one; of one condition the faster; a cold L2 before a warm one, graph replay before single
// launches, whatever the rates.
PlannerLeft planner_behind(const PlannerRated *x, const PlannerRated *y);

typedef struct PlannerMerge {
  int added, replaced, kept; // kept: the row that was there is faster and still of the present text
  int left[LEFT_COUNT];      // rows that stand behind the one that was there for another reason
} PlannerMerge;
// The table with the rows in it, all other bytes as they were.  Rows of one shape stand with the
// fastest in front, as far as their rates are said and compare.
Status planner_merge(Session *s, Arena *a, const Source *table, const PlannerRows *rows,
                     Source **out, PlannerMerge *done, Diag *d);
// Into the file, which need not be there; others who do the same wait.
Status planner_put(Session *s, Arena *a, const char *path, const PlannerRows *rows,
                   PlannerMerge *done, Diag *d);

// ---- planner_fit.c: templates for a problem -----------------------------------------------------

// What the point (a row's parameters, "" for the defaults) with those given makes of the template.
Fit planner_fit(Session *s, Arena *a, const char *point, const PlannerAsk *ask, const Problem *p,
                const DeviceInfo *dev, const char *template_name, PlannerChoice *out);

// One question, and what was built to answer it: nothing is built twice.
typedef struct PlannerBuilt {
  const char *name, *point;
  bool whole;
  Operator *op;
  Params params;
  Problem *problem;
  Fit fit;
} PlannerBuilt;
typedef struct PlannerQuestion {
  Session *session;
  Arena *arena;
  const PlannerAsk *ask;
  Problem *problem;  // a copy; what it leaves open is filled in once a template is known
  const DeviceInfo *dev;
  Params of_shape;   // of those given: what makes the shape (varlen=1), which a row has, too
  bool plain;        // nothing else is asked for
  const char *candidate; // what would run without a row; NULL: a template was named
  ShapeForm form[SHAPE_FORMS]; int nforms; // once a template is known; the first is the bucket
  const char *note;
  PlannerBuilt *built; int nbuilt, built_cap;
} PlannerQuestion;
// Frees what was built, but the one that is kept (-1: none): that is the asker's.
void planner_close(PlannerQuestion *q, int keep);
// `whole`: with all that is asked; else with what makes the shape alone, as rows are measured.
Fit planner_fit_once(PlannerQuestion *q, const char *name, const char *point, bool whole,
                     PlannerChoice *out);
// What a fit has and nobody asked for: a rule ("shared_kv=1, and the problem does not say so"), or
// other arguments than the defaults (`plain`, may be NULL).  NULL: nothing.
const char *planner_unasked(const PlannerQuestion *q, const Fit *fit, const Fit *plain);
// The arguments of the defaults with this point; NULL where they can't be built.
const char *planner_args(PlannerQuestion *q, const char *name, const char *point);
// The first template of the regime's order that fits; those before it go to out->passed.
Status planner_candidate(PlannerQuestion *q, PlannerChoice *out, Fit *fit, Diag *d);

// ---- planner_cluster.c --------------------------------------------------------------------------
bool planner_lengths_differ(const Operator *op);
// Clusters that a step launches for the operator's problem, 0 where it launches blocks.
Status planner_clusters(const Operator *op, Step *step, int64_t *n, Diag *d);
// Why the operator's clusters would wait for each other or for the longest of different lengths;
// NULL: they do not, or nobody can say.
const char *planner_crowded(Arena *a, Operator *op, Device *dev);
// Whether a row measured on `p` holds for the least problem of its shape, whose fit is `least`:
// with clusters it does for as many or more items, not for fewer, and for equal lengths alone.
bool planner_row_clusters(Session *s, Arena *a, const PlannerRow *r, const Fit *least,
                          const Problem *p);

// ---- planner_order.c ----------------------------------------------------------------------------
// Every attention template in the regime's order; those that stand alike by name.
Status planner_order(PlannerQuestion *q, const TemplateInfo ***out, int *n, Diag *d);
// Whether a template stands before another one by rank or, in a regime of the question's bucket, by
// its order: a bucket's problems may be on both sides of a limit, and its rows are of all of them.
bool planner_stands_before(const PlannerQuestion *q, const char *name, const char *other);

// ---- planner_change.c ---------------------------------------------------------------------------
bool planner_declares_given(const PlannerQuestion *q, const TemplateInfo *info);
// The defaults' fit, or a better one with some of them changed.
Fit planner_change(PlannerQuestion *q, const TemplateInfo *info, PlannerChoice *out, Fit fit);

#endif
