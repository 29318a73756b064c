// Session, Template, Params, Variant: from a template's name and parameters to checked PTX.
#ifndef PTXSMITH_VARIANT_H
#define PTXSMITH_VARIANT_H

#include "dtype.h"
#include "ptx.h"

// ---- Params: name=value pairs, in the order given ----------------------------------------------
typedef struct Param {
  const char *name, *value;
} Param;
typedef struct Params {
  Param *v;
  int n, cap;
} Params;

// Replaces a value that is there.  Copies both strings into `a`.
void params_set(Arena *a, Params *p, const char *name, const char *value);
const char *params_get(const Params *p, const char *name); // NULL when absent
// "a=1" ...; ST_INPUT with a message when there is no '='.
Status params_parse(Arena *a, Params *p, const char *text, Diag *d);

// ---- what a template declares ------------------------------------------------------------------
typedef enum ParamKind { PARAM_INT, PARAM_BOOL, PARAM_DTYPE, PARAM_NAME } ParamKind;

typedef struct ParamDecl {
  const char *name, *doc;
  ParamKind kind;
  const char **values;
  int nvalues;     // legal values as text, in the template's order
  const char *def; // default, as text
} ParamDecl;

typedef enum ArgRole { ARG_VALUE, ARG_IN, ARG_OUT, ARG_INOUT, ARG_WORK } ArgRole;
enum { TENSOR_MAX_RANK = 6 };

// One dimension of a tensor or of the work: ceil(value / div), value a Problem value or a constant.
typedef struct Dim {
  const char *name; // NULL: the constant `n`
  int64_t n;
  int64_t div; // 1 unless written as ceil_div(name, div)
} Dim;

// A tensor map over a tensor Arg, for bulk tensor copies (sm_90): one copy moves `box` elements.
typedef struct MapDecl {
  uint32_t box[TENSOR_MAX_RANK]; // in the order of the Arg's dimensions; 0: the Arg has no map
  uint32_t swizzle;              // bytes: 0, 32, 64 or 128
  uint32_t parts;                // pieces of box's last extent that rows are cut into; 0: none
  uint32_t l2;                   // promotion, as the driver numbers it: 0 none, 1 64, 2 128, 3 256
} MapDecl;
enum { MAP_BYTES = 128, MAP_ALIGN = 64 };

// An Arg.  A value takes one kernel parameter NAME (.s32 .s64 .f32).  A tensor of rank R takes a
// pointer NAME (.u64) and, for R > 1, R-1 strides NAME_stride_0 .. NAME_stride_<R-2> (.s64, bytes);
// the last dimension is contiguous.  With a tensor map, NAME_map follows (128 bytes, aligned to
// 64), which the Plan makes from the tensor that is bound.  A Problem binds tensors and values by
// these names.
typedef struct ArgDecl {
  const char *name, *doc;
  ArgRole role;
  Dtype dtype;
  int rank;
  Dim dim[TENSOR_MAX_RANK];
  MapDecl map;
  uint32_t offset; // of the first parameter in the argument block
  uint32_t map_offset;
  uint32_t zero;   // WORK: 1 when it must be zero before the first launch
  bool sorted;     // IN: numbers do not fall along the last dimension; who makes them up heeds it
  bool optional;   // IN, OUT: may be bound to nothing (pointer 0)
  bool not_negative; // a value: the kernel is right from 0 on
  int multiple;      // a value: the kernel takes multiples of it; 0: any
  const Origin *origin; // of a hook's own: where it says so; NULL for the template's
  bool partial;    // WORK: a launch writes what the problem needs of it, and reads no other part
} ArgDecl;

enum { LAUNCH_MAX_WORK = 6 };
typedef struct LaunchRule {
  Dim work[LAUNCH_MAX_WORK];
  int nwork; // number of work items = product; grid.x <= that
  Dim items[LAUNCH_MAX_WORK]; // what is cut, where work is pieces of all of it; nitems 0: no such
  int nitems;
  uint32_t block[3], cluster[3];
  uint32_t smem_bytes; // dynamic
  uint32_t per_sm;     // blocks that an SM must be able to hold at once; 0: nothing said
  bool persistent;     // grid = min(work, SMs x occupancy), else grid = work
} LaunchRule;

// What a thread of a ceiling computes, where it does: with every factor 1, or the products of 1 and
// -1 that it makes up, out = first + rounds * flops / 2.
typedef struct CeilingRule {
  int64_t flops; // in one of the problem's rounds; 0: it moves data
  int64_t first; // what its sum begins with
} CeilingRule;

// Kinds of template: what an answer means and how it is verified.
typedef enum TemplateKind {
  KIND_PREFILL, // attention: q k v -> o lse
  KIND_DECODE,  // attention in several launches: q k v -> partial rows, then `next`
  KIND_COMBINE, // partial rows -> o lse
  KIND_CEILING, // a roofline: bytes or flops per second
  KIND_ORACLE,  // fp64 attention on the device
  KIND_HELPER,  // everything else (fill, compare ...)
} TemplateKind;

// How the planner divides problems.
typedef enum Regime {
  REGIME_MANY_QUERIES,
  REGIME_FEW_ITEMS,  // few queries; fewer (sequence, KV head)s than SMs
  REGIME_MANY_ITEMS, // few queries
  REGIME_NONE
} Regime;

typedef struct TemplateInfo {
  const char *name, *summary, *path;
  TemplateKind kind;
  int rank;      // among those of its kind, where the planner has no measurement: 1 first; 0 last
  Regime first;  // where it stands before all others of its kind
  const char *group; // a point for more rows on a KV head than tile_q has, "tile_q=8"; "": none
  ParamDecl *params;
  int nparams;
  ArgDecl *args;
  int nargs; // with default parameters, when asked for without any
} TemplateInfo;

// ---- Session: where templates are found, the Lua state, caches; one per thread -----------------
typedef struct Session Session;

// `dir` overrides the built-in templates (a folder that holds templates/ and lua/); NULL: built-in.
Session *session_open(const char *dir, Diag *d);
void session_close(Session *s);
const char *session_folder(const Session *s); // `dir`, NULL for the built-in templates

// All templates, by name, sorted.  Lives as long as the session.
Status session_templates(Session *s, const TemplateInfo ***out, int *n, Diag *d);
Status session_template(Session *s, const char *name, const TemplateInfo **out, Diag *d);
const ParamDecl *template_param(const TemplateInfo *t, const char *name); // NULL: it has none
// A built-in or overridden file ("templates/lib/softmax.inc", "lua/ptxsmith/space.lua").
Status session_file(Session *s, const char *path, const Source **out, Diag *d);

// ---- Variant -----------------------------------------------------------------------------------
typedef struct NextStep { // the Operator's next launch, as the template says
  const char *template_name;
  Params params;
} NextStep;

typedef struct Variant {
  Arena *arena;   // owns everything below
  const char *id; // "decode_splitk head_dim=128 dtype=f16 ...": all params, declared order
  const char *made_of; // the id and what else shaped the text: "ID --hook FILE --target sm_90a"
  char hash[17];  // 64 bits of the PTX text's content hash, hex
  const TemplateInfo *tmpl; // copy in this arena
  TemplateKind kind;
  Params params; // all resolved, in declared order
  ArgDecl *args;
  int nargs;
  uint32_t arg_bytes;
  LaunchRule launch;
  CeilingRule ceiling;
  NextStep *next;    // NULL when this launch makes the answer
  const Source *ptx; // the text: byte for byte what is checked, run, loaded and printed
  LineMap map;
  const char *keys_any_at, *keys_all_at; // "FILE:LINE" of a hook's ranges; NULL: it has none
  PtxModule *module; // NULL unless parsed
  const PtxFunc *entry;
} Variant;

typedef struct VariantOpts {
  int sm;
  char sm_suffix;        // target; 0: the template's own minimum
  bool loc;              // write .file/.loc
  bool no_check;         // expand only
  const char *hook_path; // user's score or mask rule, NULL for none
  uint64_t step_limit;   // Lua instructions; 0 = 20 million
  size_t memory_limit;   // Lua bytes; 0 = 256 MiB
} VariantOpts;

// Expands, parses and checks.  On any diagnostic *out is NULL and no text is kept.
Status variant_build(Session *s, const char *template_name, const Params *given,
                     const VariantOpts *opts, Variant **out, Diag *d);
void variant_free(Variant *v);

// Runs the parameter block only.  ST_OK with *why_not NULL: the combination is legal and `resolved`
// has all parameters; with a text: that constraint fails (sweeps count these).  ST_INPUT: unknown
// names or values, an error in the template.
Status variant_legal(Session *s, const char *template_name, const Params *given,
                     const VariantOpts *opts, Arena *a, Params *resolved, const char **why_not,
                     Diag *d);

uint64_t content_hash(const void *p, size_t n);  // FNV-1a, 64 bits
uint64_t ptx_text_hash(const char *s, size_t n); // the same idea by words: for Variant.hash

#endif
