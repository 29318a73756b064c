/* ptxsmith: attention kernels as PTX, from templates, with no CUDA compiler in the path.
 *
 * This header is all that a program needs.  docs/embedding.md walks through it, examples/decode.c
 * and examples/embed.c use it.
 *
 * The order of things: a session generates variants and plans operators; a device runs them.
 *
 *   psm_session_open -> psm_device_open (or psm_device_adopt) -> psm_operator_new
 *     -> psm_bind ... -> psm_bind_workspace -> psm_launch -> psm_launch ...
 *
 * Rules that hold everywhere:
 *  - Status.  Every function that can fail returns psm_status; psm_error gives the text of the last
 *    failure on that session, several lines with places where there are places.  On failure an out
 *    parameter is NULL (or left alone where it is no handle), and nothing is half done.
 *  - Ownership.  Who opens closes.  Close operators and variants, then devices, then the session.
 *    Texts returned belong to the object they came from and live as long as it, but psm_error's
 *    lives until the next call on the session.  NULL may be closed.
 *  - Threads.  A session and all that was made from it belong to one thread at a time.  Different
 *    sessions may be used at the same time; there is no shared state.
 *  - Units.  Sizes, shapes and strides are in elements, workspace and buffers in bytes.
 *  - Device pointers are uint64_t: a CUdeviceptr, or what psm_alloc gave.
 *
 * MIT licence. */
#ifndef PTXSMITH_H
#define PTXSMITH_H

#include <stddef.h>
#include <stdint.h>

#if defined(__GNUC__)
#define PSM_API __attribute__((visibility("default")))
#else
#define PSM_API
#endif

#ifdef __cplusplus
extern "C" {
#endif

#define PSM_VERSION "0.1.0"

typedef enum psm_status {
  PSM_OK = 0,
  PSM_FAILED = 1,      /* a check or a verification failed */
  PSM_INPUT = 2,       /* what was asked for is wrong: psm_error says what and where */
  PSM_DEVICE = 3,      /* device or driver not available, out of device memory, a device error */
  PSM_INTERRUPTED = 4
} psm_status;

typedef struct psm_session psm_session;
typedef struct psm_variant psm_variant;
typedef struct psm_device psm_device;
typedef struct psm_problem psm_problem;
typedef struct psm_operator psm_operator;
typedef struct psm_kernel psm_kernel;

/* The library's version: PSM_VERSION of the header it was built with. */
PSM_API const char *psm_version(void);

/* ---- session -------------------------------------------------------------------------------- */

/* `folder` holds templates/ and lua/ that take the place of the built-in ones; NULL: built-in.
 * On failure *out is still a session, good only for psm_error and psm_session_close. */
PSM_API psm_status psm_session_open(const char *folder, psm_session **out);
PSM_API void psm_session_close(psm_session *s);

/* The text of the last failed call, "" after a good one.  Ends in a newline unless empty. */
PSM_API const char *psm_error(const psm_session *s);

/* Names of the templates, sorted; NULL past the last one. */
PSM_API const char *psm_template_name(psm_session *s, int index);

/* ---- generate and check PTX: no device needed ------------------------------------------------- */

/* Expands, parses and checks one variant.  `params` is "name=value name=value ..."; parameters not
 * named take their defaults, NULL or "" all of them.  `target` raises the target ("sm_90a"), NULL:
 * the template's own minimum. */
PSM_API psm_status psm_generate(psm_session *s, const char *template_name, const char *params,
                                const char *target, psm_variant **out);
PSM_API void psm_variant_free(psm_variant *v);

/* The text, byte for byte what is loaded.  NUL-terminated; its length goes to *bytes unless NULL. */
PSM_API const char *psm_variant_ptx(const psm_variant *v, size_t *bytes);
PSM_API const char *psm_variant_id(const psm_variant *v);   /* template and all parameters */
PSM_API const char *psm_variant_hash(const psm_variant *v); /* 16 hex digits of the text */
PSM_API const char *psm_variant_entry(const psm_variant *v); /* the kernel's name */

/* Parses and checks any PTX text; `name` stands in the messages.  PSM_FAILED when it is not good
 * PTX. */
PSM_API psm_status psm_check(psm_session *s, const char *name, const char *ptx, size_t bytes);

/* ---- devices ---------------------------------------------------------------------------------- */

/* "auto" (a GPU if there is one, else the interpreter), "sim", "cuda:N".  PSM_DEVICE when absent. */
PSM_API psm_status psm_device_open(psm_session *s, const char *spec, psm_device **out);

/* The caller's CUcontext and CUstream (NULL: the default stream).  Both stay the caller's: they
 * must outlive the device, and closing the device destroys neither. */
PSM_API psm_status psm_device_adopt(psm_session *s, void *cu_context, void *cu_stream,
                                    psm_device **out);

/* What is queued from now on goes to another CUstream of the adopted context (NULL: the default
 * stream): launches, and psm_write, psm_read, psm_zero and psm_sync.  It only stores the handle, so
 * an engine may call it before every psm_launch.  Order between streams is the caller's (events), as
 * is keeping two launches that share a workspace or an output apart.  PSM_INPUT on a device that
 * was not adopted. */
PSM_API psm_status psm_device_set_stream(psm_device *dev, void *cu_stream);

/* Frees every buffer made by psm_alloc on it. */
PSM_API void psm_device_close(psm_device *dev);
PSM_API const char *psm_device_id(const psm_device *dev);   /* "sim", "cuda:0" */
PSM_API const char *psm_device_name(const psm_device *dev); /* "NVIDIA H200" */

/* Buffers, for callers that have no CUDA of their own.  Reads and writes wait for queued work. */
PSM_API psm_status psm_alloc(psm_device *dev, uint64_t bytes, uint64_t *out);
PSM_API psm_status psm_free(psm_device *dev, uint64_t pointer); /* of psm_alloc; 0 is nothing */
PSM_API psm_status psm_write(psm_device *dev, uint64_t to, const void *from, uint64_t bytes);
PSM_API psm_status psm_read(psm_device *dev, void *to, uint64_t from, uint64_t bytes);
PSM_API psm_status psm_zero(psm_device *dev, uint64_t to, uint64_t bytes); /* multiple of 4 */

/* How the interpreter runs what is launched from now on.  PSM_INPUT on another device. */
typedef struct psm_sim_options {
  int sanitize;      /* look for data races, barrier misuse, missing fences: PSM_FAILED if any */
  uint64_t schedule; /* the order of blocks and warps, and of completions; 0: the fixed one */
  uint64_t limit;    /* warp instructions a launch may take, for loops without end; 0: any number */
  int counters;      /* count: psm_kernel_counters */
  int threads;       /* host threads; 0: all cores */
} psm_sim_options;
PSM_API psm_status psm_device_sim(psm_device *dev, const psm_sim_options *options);

/* Waits for all that was queued.  Errors of a kernel itself appear here at the latest. */
PSM_API psm_status psm_sync(psm_device *dev);

/* ---- problems: the named values of one question ------------------------------------------------ */

/* "b=1,hq=32,hkv=8,sq=1,sk=16384,d=128,dtype=f16,causal=0", or a name known to `ptxsmith list
 * --problems`, or a name and what differs: "llama3-8b/decode-16k,b=4".  Long names (batch, heads_q, heads_kv,
 * seqlen_q, seqlen_k, head_dim) are the same.  scale defaults to 1/sqrt(head_dim), chunks (split-K)
 * to what the planner finds for the problem. */
PSM_API psm_status psm_problem_new(psm_session *s, const char *values, psm_problem **out);
PSM_API void psm_problem_free(psm_problem *p);
PSM_API psm_status psm_problem_set_int(psm_problem *p, const char *name, int64_t value);
PSM_API psm_status psm_problem_set_float(psm_problem *p, const char *name, double value);

/* ---- operators: the launches that make one answer ---------------------------------------------- */

typedef struct psm_options {
  const char *target; /* as in psm_generate; NULL: the template's own */
  const char *hook;   /* file with a score or mask rule; NULL: none */
  uint32_t grid;      /* exactly this many blocks for every launch; 0: the template's rule */
} psm_options;

/* Generates and checks the template's variant and those that follow it (decode: the combine step),
 * loads them on the device and plans the launches for the problem.  The problem is copied.
 * `options` may be NULL.  `template_name` NULL: the template and the parameters that are not given are
 * what `ptxsmith plan` says for the problem on this device (by the built-in table); PSM_INPUT when no
 * template does it, with what is in the way. */
PSM_API psm_status psm_operator_new(psm_device *dev, const char *template_name, const char *params,
                                    const psm_problem *p, const psm_options *options,
                                    psm_operator **out);
PSM_API void psm_operator_free(psm_operator *op);

/* Why this template and these parameters: one sentence, the operator's.  NULL where the template was
 * named by the caller. */
PSM_API const char *psm_operator_why(const psm_operator *op);

/* Plans again for another value (a cache that grew: "seqlen_k") without generating or loading
 * anything.  The workspace's size may change; the workspace and all tensors must be bound again.
 * Values built into the variant (head_dim, causal, ...) can't change: PSM_INPUT, and the operator
 * is as before but for its bindings. */
PSM_API psm_status psm_operator_set_int(psm_operator *op, const char *name, int64_t value);

/* Number of launches and the variant of each; it belongs to the operator. */
PSM_API int psm_operator_steps(const psm_operator *op);
PSM_API const psm_variant *psm_operator_variant(const psm_operator *op, int step);

/* Workspace: `bytes` in all, aligned to 256; its first `zero` bytes must be zero before the first
 * launch, and each launch leaves them so. */
PSM_API uint64_t psm_workspace_bytes(const psm_operator *op);
PSM_API uint64_t psm_workspace_zero_bytes(const psm_operator *op);
PSM_API psm_status psm_bind_workspace(psm_operator *op, uint64_t pointer, uint64_t bytes);

typedef enum psm_dtype {
  PSM_F64, PSM_F32, PSM_F16, PSM_BF16, PSM_E4M3, PSM_E5M2, PSM_I32, PSM_I64, PSM_U8
} psm_dtype;

enum { PSM_MAX_RANK = 6 };

/* A tensor in device memory.  Strides are in elements; the last dimension is contiguous (stride
 * 1).  All strides 0: dense. */
typedef struct psm_tensor {
  uint64_t data;
  psm_dtype dtype;
  int rank;
  int64_t shape[PSM_MAX_RANK];
  int64_t stride[PSM_MAX_RANK];
} psm_tensor;

typedef enum psm_role { PSM_VALUE, PSM_IN, PSM_OUT, PSM_INOUT, PSM_WORK } psm_role;

/* An argument of the operator: a named value (taken from the problem) or a named tensor with the
 * shape it has for this problem.  Attention: q and o [batch, seqlen_q, heads_q, head_dim], k and v
 * [batch, seqlen_k, heads_kv, head_dim], lse [batch, heads_q, seqlen_q] in f32 (natural log). */
typedef struct psm_arg {
  const char *name, *doc;
  psm_role role;
  psm_dtype dtype;
  int rank;
  int64_t shape[PSM_MAX_RANK];
  uint32_t alignment; /* bytes that the pointer and the strides must be multiples of */
  int optional;       /* may stay unbound */
} psm_arg;

/* The arguments one after the other; PSM_INPUT past the last one. */
PSM_API psm_status psm_operator_arg(psm_operator *op, int index, psm_arg *out);

/* Binds a tensor by its argument's name, or nothing to an optional one (`t` NULL); data type, rank, shape, contiguity and alignment are held
 * against the declaration.  Binding again replaces.  The memory must stay valid until the launches
 * that use it are done. */
PSM_API psm_status psm_bind(psm_operator *op, const char *name, const psm_tensor *t);

/* Queues the launches on the device's stream.  Neither allocates nor waits, so it may be captured
 * in a CUDA graph.  Unbound arguments: PSM_INPUT, nothing queued. */
PSM_API psm_status psm_launch(psm_operator *op);

/* ---- kernels: any PTX, launched with a list of arguments ---------------------------------------- */

/* Parses, checks and loads a PTX text; `name` stands in the messages.  `entry` NULL: its only kernel. */
PSM_API psm_status psm_kernel_load(psm_device *dev, const char *name, const char *ptx, size_t bytes,
                                   const char *entry, psm_kernel **out);
PSM_API void psm_kernel_free(psm_kernel *k);
PSM_API const char *psm_kernel_name(const psm_kernel *k);
PSM_API int psm_kernel_params(const psm_kernel *k);
PSM_API uint64_t psm_kernel_param_bytes(const psm_kernel *k, int index); /* 0 past the last one */

/* An argument: the bytes of the value, or of a device pointer (a uint64_t). */
typedef struct psm_kernel_arg {
  const void *data;
  size_t bytes;
} psm_kernel_arg;

/* Blocks, threads of a block, blocks of a cluster (a size of 0 is 1); dynamic shared memory. */
typedef struct psm_shape {
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared_bytes;
} psm_shape;

/* Queues one launch.  Number and sizes of the arguments are held against the kernel's parameters.  On
 * the interpreter it has run when this returns: an access out of bounds, a deadlock and the like are
 * PSM_FAILED with the place in psm_error. */
PSM_API psm_status psm_kernel_launch(psm_kernel *k, const psm_shape *shape,
                                     const psm_kernel_arg *args, int nargs);

/* What its launches did since it was loaded, counted on the interpreter, as one JSON object (those of
 * `ptxsmith counters --json`).  The text lives until the next call for this kernel.  PSM_INPUT when
 * nothing was counted. */
PSM_API psm_status psm_kernel_counters(psm_kernel *k, const char **json);

/* ---- tensor maps: what bulk tensor copies know of a tensor (sm_90) -------------------------------- */

enum { PSM_TENSOR_MAP_BYTES = 128 };

/* Over a tensor in device memory of at most 5 dimensions.  All members are in the tensor's order: the
 * last dimension is the contiguous one.  In PTX, coordinates come the other way round. */
typedef struct psm_tensor_map {
  psm_tensor tensor;
  uint32_t box[PSM_MAX_RANK];  /* elements that one copy covers */
  uint32_t step[PSM_MAX_RANK]; /* every step-th of them; 0 is 1 */
  int swizzle;                 /* bytes: 0, 32, 64 or 128 */
  int nan_fill;                /* what is outside reads as NaN; else as zero */
  int l2_promotion;            /* bytes: 0, 64, 128 or 256 */
} psm_tensor_map;

/* Makes the 128 bytes, which a kernel takes by value (`.param .align 64 .b8 map[128]`: an argument of
 * 128 bytes) or in global memory.  The rules of cuTensorMapEncodeTiled hold on every device. */
PSM_API psm_status psm_tensor_map_encode(psm_device *dev, const psm_tensor_map *m, void *map);

#ifdef __cplusplus
}
#endif

#endif
