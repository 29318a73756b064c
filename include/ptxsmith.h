/* ptxsmith: attention kernels as PTX, from templates, with no CUDA compiler in the path.
 *
 * This header is all that a program needs.  docs/embedding.md walks through it and has the tables
 * of arguments; the programs in examples/ use it.
 *
 * The order of things: a session generates variants and plans operators; a device runs them.
 *
 *   psm_session_open -> psm_device_open (or psm_device_adopt) -> psm_operator_new
 *     -> psm_bind ... -> psm_bind_workspace -> psm_launch -> psm_launch ...
 *
 * Rules that hold everywhere:
 *  - Status.  Every function that can fail returns psm_status; psm_error gives the text of the
 *    last failure on that session, several lines with places where there are places.  On failure
 *    an out parameter is NULL (or left alone where it is no handle), and nothing is half done.
 *  - Ownership.  Who opens closes.  Close operators, kernels and variants, then devices, then the
 *    session; problems at any time.  Texts passed in are copied.  Texts returned belong to the
 *    object they came from and live as long as it, but psm_error's lives until the next call on
 *    the session.  NULL may be closed; other handles may not be NULL.
 *  - Threads.  A session and all that was made from it belong to one thread at a time.  Different
 *    sessions may be used at the same time; there is no shared state.  Each call on a GPU makes
 *    the device's context current and restores the one before.
 *  - Units.  Shapes and strides are in elements, workspace and buffers in bytes.
 *  - Device pointers are uint64_t: a CUdeviceptr, or what psm_alloc gave.
 *  - Waiting.  Launches are queued; psm_read, psm_sync and closing a device wait for them.  What
 *    else waits says so.  An error of a kernel may come with any later call on that device
 *    (PSM_DEVICE).
 *  - Memory of the host for small objects: running out ends the process with a message.
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

/* A Lua state and the templates: no device is touched.  `folder` holds templates/ and lua/ whose
 * files take the place of the built-in ones; NULL: built-in.  PSM_INPUT when it can't be read;
 * *out is still a session then, good only for psm_error and psm_session_close. */
PSM_API psm_status psm_session_open(const char *folder, psm_session **out);

/* After all that was made from it. */
PSM_API void psm_session_close(psm_session *s);

/* The text of the last failed call on the session or on what was made from it, "" after a good one.
 * Ends in a newline unless empty.  Warnings of a good call stand there, too. */
PSM_API const char *psm_error(const psm_session *s);

/* Names of the templates, sorted, from index 0 on; NULL past the last one, or when a template
 * can't be read (psm_error).  The session's. */
PSM_API const char *psm_template_name(psm_session *s, int index);

/* ---- generate and check PTX: no device needed ------------------------------------------------ */

/* Expands, parses and checks one variant, in milliseconds.  `params` is "name=value name=value
 * ..."; parameters not named take their defaults, NULL or "" all of them.  `target` raises the
 * target ("sm_90a"), NULL: the template's own minimum.  PSM_INPUT: no such template, parameter,
 * value or target, a combination that a constraint forbids, an error in the template, or text that
 * is not good PTX. */
PSM_API psm_status psm_generate(psm_session *s, const char *template_name, const char *params,
                                const char *target, psm_variant **out);
PSM_API void psm_variant_free(psm_variant *v); /* not of psm_operator_variant's */

/* The text, byte for byte what is loaded.  NUL-terminated; its length goes to *bytes unless NULL.
 */
PSM_API const char *psm_variant_ptx(const psm_variant *v, size_t *bytes);
PSM_API const char *psm_variant_id(const psm_variant *v);   /* template and all parameters */
PSM_API const char *psm_variant_hash(const psm_variant *v); /* 16 hex digits of the text */
PSM_API const char *psm_variant_entry(const psm_variant *v); /* the kernel's name */

/* Blocks, threads of a block, blocks of a cluster (a size of 0 is 1); bytes of dynamic shared
 * memory. */
typedef struct psm_shape {
  uint32_t grid[3], block[3], cluster[3];
  uint32_t shared_bytes;
} psm_shape;

/* How the variant must be launched, by whoever does it: block, cluster, dynamic shared memory.  The
 * grid is left at 0: any number of blocks that the cluster divides makes the whole answer.  The
 * parameters are the text's: docs/embedding.md says what they hold. */
PSM_API void psm_variant_shape(const psm_variant *v, psm_shape *out);

/* Parses and checks any PTX text, `bytes` long (256 MiB at most: PSM_INPUT); `name` stands in the
 * messages.  PSM_FAILED when it is not good PTX. */
PSM_API psm_status psm_check(psm_session *s, const char *name, const char *ptx, size_t bytes);

/* ---- devices --------------------------------------------------------------------------------- */

/* "auto" or NULL (a GPU if there is one, else the interpreter), "sim", "cuda:N".  A GPU's primary
 * context is retained, and a stream of its own made.  PSM_DEVICE: no driver, one too old, no such
 * GPU; PSM_INPUT: no such spec. */
PSM_API psm_status psm_device_open(psm_session *s, const char *spec, psm_device **out);

/* The caller's CUcontext and CUstream (NULL: the default stream).  Both stay the caller's: they
 * must outlive the device, and closing the device destroys neither.  PSM_INPUT: the context is NULL
 * or none; PSM_DEVICE: no driver. */
PSM_API psm_status psm_device_adopt(psm_session *s, void *cu_context, void *cu_stream,
                                    psm_device **out);

/* What is queued from now on goes to another CUstream of the adopted context (NULL: the default
 * stream): launches, and psm_write, psm_read, psm_zero and psm_sync.  It only stores the handle,
 * so an engine may call it before every psm_launch.  Order between streams is the caller's
 * (events), as is keeping two launches that share a workspace or an output apart.  PSM_INPUT on a
 * device that was not adopted. */
PSM_API psm_status psm_device_set_stream(psm_device *dev, void *cu_stream);

/* Waits for what is queued on its stream, and frees every buffer made by psm_alloc on it.  Streams
 * that were set before are not waited for. */
PSM_API void psm_device_close(psm_device *dev);
PSM_API const char *psm_device_id(const psm_device *dev);   /* "sim", "cuda:0" */
PSM_API const char *psm_device_name(const psm_device *dev); /* "NVIDIA H200" */

/* Buffers, for callers that have no CUDA of their own: aligned to 256 bytes, their contents
 * undefined (the interpreter traps reads of what was never written).  Reading and writing wait for
 * queued work; on a GPU a stream that is being captured allows neither, nor psm_alloc.
 * PSM_DEVICE: out of device memory, or an error of the device. */
PSM_API psm_status psm_alloc(psm_device *dev, uint64_t bytes, uint64_t *out);
PSM_API psm_status psm_free(psm_device *dev, uint64_t pointer); /* of psm_alloc; 0 is nothing */
PSM_API psm_status psm_write(psm_device *dev, uint64_t to, const void *from, uint64_t bytes);
PSM_API psm_status psm_read(psm_device *dev, void *to, uint64_t from, uint64_t bytes);
PSM_API psm_status psm_zero(psm_device *dev, uint64_t to, uint64_t bytes); /* multiple of 4 */

/* How the interpreter runs what is launched from now on; all 0 is how it begins.  A launch that
 * traps (a stray address, a deadlock, a finding of `sanitize`, the limit) is PSM_FAILED, with the
 * place in psm_error.  PSM_INPUT on another device. */
typedef struct psm_sim_options {
  int sanitize;      /* look for data races, barrier misuse, missing fences: PSM_FAILED if any */
  uint64_t schedule; /* the order of blocks and warps, and of completions; 0: the fixed one */
  uint64_t limit;    /* warp instructions a launch may take, for loops without end; 0: any number */
  int counters;      /* count: psm_kernel_counters */
  int threads;       /* host threads; 0: all cores */
} psm_sim_options;
PSM_API psm_status psm_device_sim(psm_device *dev, const psm_sim_options *options);

/* Waits for all that was queued on the device's stream.  Errors of a kernel itself appear here at
 * the latest: PSM_DEVICE; most of them leave the CUDA context unusable, and the device with it. */
PSM_API psm_status psm_sync(psm_device *dev);

/* ---- problems: the named values of one question ---------------------------------------------- */

/* "b=1,hq=32,hkv=8,sq=1,sk=16384,d=128,dtype=f16,causal=0", or a name known to `ptxsmith list
 * --problems`, or a name and what differs: "llama3-8b/decode-16k,b=4".  Long names (batch, heads_q,
 * heads_kv, seqlen_q, seqlen_k, head_dim) are the same; docs/usage.md has all of them.  scale
 * defaults to 1/sqrt(head_dim), chunks (split-K) to what the planner finds for the problem.
 * PSM_INPUT: unknown names, values out of range, heads_q no multiple of heads_kv. */
PSM_API psm_status psm_problem_new(psm_session *s, const char *values, psm_problem **out);
PSM_API void psm_problem_free(psm_problem *p);

/* Changes or adds one value, a hook's own among them, by its short or long name.  PSM_INPUT when
 * the name takes no such number, and the problem is as before. */
PSM_API psm_status psm_problem_set_int(psm_problem *p, const char *name, int64_t value);
PSM_API psm_status psm_problem_set_float(psm_problem *p, const char *name, double value);

/* ---- operators: the launches that make one answer -------------------------------------------- */

typedef struct psm_options {
  const char *target; /* as in psm_generate; NULL: the template's own */
  const char *hook;   /* path of a file with a score or mask rule; NULL: none */
  uint32_t grid;      /* exactly this many blocks for every launch; 0: the template's rule */
  int tuned;          /* 1: parameters that are not given are those that `ptxsmith plan` has for the
                         named template and this device, its defaults where it has none */
} psm_options;

/* Generates and checks the template's variant and those that follow it (decode: the combine step),
 * loads them on the device and plans the launches for the problem.  Takes milliseconds on the
 * interpreter, and what the driver's compiler takes on a GPU (a second for the largest): not for a
 * step of serving.  The problem is copied.  `params` as in psm_generate; what the problem says
 * (dtype, head_dim, causal, rules) need not be repeated.  `options` may be NULL.  PSM_INPUT: as
 * psm_generate, or a problem that the template does not take; PSM_DEVICE: the target is not this
 * GPU's, or the driver refuses it.  `template_name` NULL: the template and the parameters that are
 * not given are what `ptxsmith plan` says for the problem on this device (by the built-in table);
 * PSM_INPUT when no template does it, with what is in the way. */
PSM_API psm_status psm_operator_new(psm_device *dev, const char *template_name, const char *params,
                                    const psm_problem *p, const psm_options *options,
                                    psm_operator **out);
PSM_API void psm_operator_free(psm_operator *op);

/* "TEMPLATE: why it and these parameters", one sentence, the operator's.  NULL where the template
 * was named by the caller, without `tuned`. */
PSM_API const char *psm_operator_why(const psm_operator *op);

/* Plans again for another value (a cache that grew: "seqlen_k") without generating or loading
 * anything.  The workspace's size may change; the workspace and all tensors must be bound again.
 * Values built into the variant (head_dim, causal, ...) can't change: PSM_INPUT, and the operator
 * is as before but for its bindings. */
PSM_API psm_status psm_operator_set_int(psm_operator *op, const char *name, int64_t value);

/* Number of launches, and the variant of each from step 0 on (NULL past the last one); it belongs
 * to the operator. */
PSM_API int psm_operator_steps(const psm_operator *op);
PSM_API const psm_variant *psm_operator_variant(const psm_operator *op, int step);

/* Workspace: `bytes` in all (0: none, nothing to bind), aligned to 256; its first `zero` bytes
 * must be zero before the first launch, and each launch leaves them so.  It is the operator's
 * between a launch and its end; the rest of it holds nothing that a later launch needs.
 * PSM_INPUT: too small, or not aligned. */
PSM_API uint64_t psm_workspace_bytes(const psm_operator *op);
PSM_API uint64_t psm_workspace_zero_bytes(const psm_operator *op);
PSM_API psm_status psm_bind_workspace(psm_operator *op, uint64_t pointer, uint64_t bytes);

typedef enum psm_dtype {
  PSM_F64, PSM_F32, PSM_F16, PSM_BF16, PSM_E4M3, PSM_E5M2, PSM_I32, PSM_I64, PSM_U8
} psm_dtype;

enum { PSM_MAX_RANK = 6 };

/* A tensor in device memory.  Strides are in elements and not negative; the last dimension is
 * contiguous (stride 1).  A stride of 0 repeats an input; all strides 0: dense. */
typedef struct psm_tensor {
  uint64_t data; /* device pointer of element [0, 0, ...] */
  psm_dtype dtype;
  int rank; /* 1 .. PSM_MAX_RANK; shapes and strides from there on are not looked at */
  int64_t shape[PSM_MAX_RANK];
  int64_t stride[PSM_MAX_RANK];
} psm_tensor;

typedef enum psm_role { PSM_VALUE, PSM_IN, PSM_OUT, PSM_INOUT, PSM_WORK } psm_role;

/* An argument of the operator: a named value (taken from the problem) or a named tensor with the
 * shape it has for this problem.  Attention: q [batch, seqlen_q, heads_q, head_dim], k [batch,
 * seqlen_k, heads_kv, head_dim], v [batch, seqlen_k, heads_kv, head_dim_v], o [batch, seqlen_q,
 * heads_q, head_dim_v], lse [batch, heads_q, seqlen_q] in f32 (natural log); docs/embedding.md has
 * those of sequences of different lengths, pages, factors and rules. */
typedef struct psm_arg {
  const char *name, *doc; /* the operator's */
  psm_role role; /* PSM_WORK: part of the workspace, which is bound whole */
  psm_dtype dtype;
  int rank;
  int64_t shape[PSM_MAX_RANK];
  uint32_t alignment; /* bytes that the pointer and the strides must be multiples of */
  int optional;       /* may stay unbound */
} psm_arg;

/* The arguments one after the other, from index 0 on; PSM_INPUT past the last one. */
PSM_API psm_status psm_operator_arg(psm_operator *op, int index, psm_arg *out);

/* Binds a tensor by its argument's name, or nothing to an optional one (`t` NULL).  *t is copied;
 * the memory stays yours and must be valid until the launches that use it are done.  Binding again
 * replaces, for launches from then on.  PSM_INPUT: no tensor of that name, another data type, rank
 * or shape, a last dimension that is not contiguous, strides or an address that are no multiple of
 * the alignment, an output whose strides overlap.  Whether tensors overlap each other is not
 * looked at. */
PSM_API psm_status psm_bind(psm_operator *op, const char *name, const psm_tensor *t);

/* Queues the launches on the device's stream, in order.  Neither allocates nor waits, so it may be
 * captured in a CUDA graph; the graph keeps the addresses and values of that moment.  On the
 * interpreter it has run when this returns.  Launches of one operator must not overlap: they share
 * its workspace.  PSM_INPUT: an argument is not bound, nothing queued; PSM_DEVICE: the driver
 * refuses; PSM_FAILED: the interpreter trapped. */
PSM_API psm_status psm_launch(psm_operator *op);

/* ---- kernels: any PTX, launched with a list of arguments ------------------------------------- */

/* Parses, checks and loads a PTX text, `bytes` long, which is copied; `name` stands in the
 * messages. `entry` NULL: its only kernel.  PSM_INPUT: no such kernel, or PTX that is
 * not good; PSM_DEVICE: the driver refuses it. */
PSM_API psm_status psm_kernel_load(psm_device *dev, const char *name, const char *ptx, size_t bytes,
                                   const char *entry, psm_kernel **out);
PSM_API void psm_kernel_free(psm_kernel *k);
PSM_API const char *psm_kernel_name(const psm_kernel *k);
PSM_API int psm_kernel_params(const psm_kernel *k); /* how many */
PSM_API uint64_t psm_kernel_param_bytes(const psm_kernel *k, int index); /* 0 past the last one */

/* An argument: the bytes of the value, or of a device pointer (a uint64_t). */
typedef struct psm_kernel_arg {
  const void *data;
  size_t bytes;
} psm_kernel_arg;

/* Queues one launch; the bytes of the arguments are copied.  Their number and sizes must be those
 * of the kernel's parameters (PSM_INPUT).  On the interpreter it has run when this returns: an
 * access out of bounds, a deadlock and the like are PSM_FAILED with the place in psm_error. */
PSM_API psm_status psm_kernel_launch(psm_kernel *k, const psm_shape *shape,
                                     const psm_kernel_arg *args, int nargs);

/* What its launches did since it was loaded, counted on the interpreter, as one JSON object (those
 * of `ptxsmith counters --json`).  The text lives until the next call for this kernel.  PSM_INPUT
 * when nothing was counted. */
PSM_API psm_status psm_kernel_counters(psm_kernel *k, const char **json);

/* ---- tensor maps: what bulk tensor copies know of a tensor (sm_90) --------------------------- */

enum { PSM_TENSOR_MAP_BYTES = 128 };

/* Over a tensor in device memory of at most 5 dimensions; 8-bit floating-point types are copied as
 * bytes.  All members are in the tensor's order: the last dimension is the contiguous one.  In
 * PTX, coordinates come the other way round. */
typedef struct psm_tensor_map {
  psm_tensor tensor;
  uint32_t box[PSM_MAX_RANK];  /* elements that one copy covers */
  uint32_t step[PSM_MAX_RANK]; /* every step-th of them; 0 is 1 */
  int swizzle;                 /* bytes: 0, 32, 64 or 128 */
  int nan_fill;                /* what is outside reads as NaN; else as zero */
  int l2_promotion;            /* bytes: 0, 64, 128 or 256 */
} psm_tensor_map;

/* Makes the 128 bytes, which a kernel takes by value (`.param .align 64 .b8 map[128]`: an argument
 * of 128 bytes) or in global memory.  `map` is host memory.  The rules of
 * cuTensorMapEncodeTiled hold on every device: PSM_INPUT names the one that is broken. */
PSM_API psm_status psm_tensor_map_encode(psm_device *dev, const psm_tensor_map *m, void *map);

#ifdef __cplusplus
}
#endif

#endif
