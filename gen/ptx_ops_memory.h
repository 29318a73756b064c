#ifndef PTXSMITH_PTX_OPS_MEMORY_H
#define PTXSMITH_PTX_OPS_MEMORY_H

// Rows of the opcode-form table: memory, control flow, barriers, asynchronous copies, mbarriers.
// The notation is explained in ptx_ops.h, which puts the table together.

#define PTX_FORMS_MEMORY(F)                                                                        \
  /* memory */                                                                                     \
  F("ld", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                         \
    "}.v8 T(.b32|.u32|.s32|.f32)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                         \
    "}.v4 T(.b64|.u64|.s64|.f64)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", "{.weak}{" SPACE "}{(.ca|.cg|.cs|.lu|.cv)}" LDHINTS VEC "T" MEMT, "d:>T* [a] h:b64?",    \
    10, 10, LSU, "R", ld)                                                                          \
  F("ld", ".volatile{" ATSPACE "}{" L2PRE "}" VEC "T" MEMT, "d:>T* [a]", 10, 10, LSU, "R", ld)     \
  F("ld", "(.relaxed|.acquire)" SCOPE "{" ATSPACE "}" LDHINTS VEC "T" MEMT, "d:>T* [a] h:b64?",    \
    60, 70, LSU, "R", ld)                                                                          \
  F("ld", ".global.nc{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                               \
    "}.v8 T(.b32|.u32|.s32|.f32)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", ".global.nc{" L1HINT "}" L2HINT "{.L2::cache_hint}{" L2PRE                               \
    "}.v4 T(.b64|.u64|.s64|.f64)", "d:>T* [a] h:b64?", 88, 100, LSU, "R", ld)                      \
  F("ld", ".global{(.ca|.cg|.cs)}.nc" LDHINTS VEC "T" MEMT, "d:>T* [a] h:b64?", 31, 32, LSU,       \
    "R", ld)                                                                                       \
  F("ldu",                                                                                         \
    "{.global}{(.v2|.v4)}T(.b8|.b16|.b32|.b64|.u8|.u16|.u32|.u64|.s8|.s16|.s32|.s64|.f32|.f64)",   \
    "d:>T* [a]", 20, 20, LSU, "R", ld)                                                             \
  F("st", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}.v8 T(.b32|.u32|.s32|.f32)",     \
    "[a] b:>T* h:b64?", 88, 100, LSU, "W", st)                                                     \
  F("st", "{.weak}{.global}{" L1HINT "}" L2HINT "{.L2::cache_hint}.v4 T(.b64|.u64|.s64|.f64)",     \
    "[a] b:>T* h:b64?", 88, 100, LSU, "W", st)                                                     \
  F("st", "{.weak}{" STSPACE "}{(.wb|.cg|.cs|.wt)}" STHINTS VEC "T" MEMT, "[a] b:>T* h:b64?",      \
    10, 10, LSU, "W", st)                                                                          \
  F("st", ".volatile{" ATSPACE "}" VEC "T" MEMT, "[a] b:>T*", 10, 10, LSU, "W", st)                \
  F("st", "(.relaxed|.release)" SCOPE "{" ATSPACE "}" STHINTS VEC "T" MEMT, "[a] b:>T* h:b64?",    \
    60, 70, LSU, "W", st)                                                                          \
  F("st",                                                                                          \
    ".async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes.v4 T(.b32|.u32|.s32|.f32)",      \
    "[a] b:T* [m]", 81, 90, LSU, "WA", async_words)                                                \
  F("st",                                                                                          \
    ".async{.weak}{.shared::cluster}.mbarrier::complete_tx::bytes{.v2}"                            \
    "T(.b32|.b64|.u32|.u64|.s32|.s64|.f32|.f64)", "[a] b:T* [m]", 81, 90, LSU, "WA", async_words)  \
  F("prefetch", "{(.global|.local)}(.L1|.L2)", "[a]", 20, 20, LSU, "-", nop)                       \
  F("prefetch", "{(.param|.const)}.tensormap", "[a]", 80, 90, LSU, "-", nop)                       \
  F("prefetch", ".global(.L2::evict_last|.L2::evict_normal)", "[a]", 74, 80, LSU, "-", nop)        \
  F("prefetchu", ".L1", "[a]", 20, 20, LSU, "-", nop)                                              \
  F("applypriority", "{.global}.L2::evict_normal", "[a] i:u32", 74, 80, LSU, "-", nop)             \
  F("discard", "{.global}.L2", "[a] i:u32", 74, 80, LSU, "W", discard)                             \
  F("createpolicy", ".fractional (.L2::evict_last|.L2::evict_normal|.L2::evict_first|"             \
    ".L2::evict_unchanged){(.L2::evict_first|.L2::evict_unchanged)}.b64", "d:b64 a:f32?", 74,      \
    80, ALU, "-", createpolicy)                                                                    \
  F("createpolicy", ".range{.global}(.L2::evict_last|.L2::evict_normal|.L2::evict_first|"          \
    ".L2::evict_unchanged){(.L2::evict_first|.L2::evict_unchanged)}.b64",                          \
    "d:b64 [a] b:u32 c:u32", 74, 80, ALU, "-", createpolicy)                                       \
  F("createpolicy", ".cvt.L2 .b64", "d:b64 a:b64", 74, 80, ALU, "-", createpolicy)                 \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE "}.cas T.b16",           \
    "d:T [a] b:T c:T", 63, 70, LSU, "RW", atom)                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE "}.cas T(.b32|.b64)",    \
    "d:T [a] b:T c:T", 11, 11, LSU, "RW", atom)                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}.sys{" ATSPACE "}.cas T.b128",                 \
    "d:T [a] b:T c:T", 84, 90, LSU, "RW", atom)                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}.sys{" ATSPACE                                 \
    "}.exch{.L2::cache_hint} T.b128", "d:T [a] b:T h:b64?", 84, 90, LSU, "RW", atom)               \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{(.cta|.cluster|.gpu)}{" ATSPACE               \
    "}.cas T.b128", "d:T [a] b:T c:T", 83, 90, LSU, "RW", atom)                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{(.cta|.cluster|.gpu)}{" ATSPACE               \
    "}.exch{.L2::cache_hint} T.b128", "d:T [a] b:T h:b64?", 83, 90, LSU, "RW", atom)               \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.and|.or|.xor|.exch){.L2::cache_hint} T(.b32|.b64)", "d:T_ [a] b:T h:b64?", 11, 11, LSU,    \
    "RW", atom)                                                                                    \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add{.L2::cache_hint} T(.u32|.s32|.u64|.f32)", "d:T_ [a] b:T h:b64?", 11, 11, LSU, "RW",     \
    atom)                                                                                          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add{.L2::cache_hint} T.f64", "d:T_ [a] b:T h:b64?", 50, 60, LSU, "RW", atom)                \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.min|.max){.L2::cache_hint} T(.u32|.s32)", "d:T_ [a] b:T h:b64?", 11, 11, LSU, "RW", atom)  \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.min|.max){.L2::cache_hint} T(.u64|.s64)", "d:T_ [a] b:T h:b64?", 31, 32, LSU, "RW", atom)  \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}(.inc|.dec){.L2::cache_hint} T.u32", "d:T_ [a] b:T h:b64?", 11, 11, LSU, "RW", atom)         \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add.noftz{.L2::cache_hint} T.f16x2", "d:T_ [a] b:T h:b64?", 62, 60, LSU, "RW", atom)        \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add.noftz{.L2::cache_hint} T.f16", "d:T_ [a] b:T h:b64?", 63, 70, LSU, "RW", atom)          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE "}{" ATSPACE                          \
    "}.add.noftz{.L2::cache_hint} T(.bf16|.bf16x2)", "d:T_ [a] b:T h:b64?", 78, 90, LSU, "RW",     \
    atom)                                                                                          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE                                       \
    "}.global.add{.L2::cache_hint}(.v2|.v4) T.f32", "d:T*_ [a] b:T* h:b64?", 81, 90, LSU, "RW",    \
    atom_vec)                                                                                      \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE                                       \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8) T(.f16|.bf16)",                  \
    "d:T*_ [a] b:T* h:b64?", 81, 90, LSU, "RW", atom_vec)                                          \
  F("atom", "{(.relaxed|.acquire|.release|.acq_rel)}{" SCOPE                                       \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4) T(.f16x2|.bf16x2)",                  \
    "d:T*_ [a] b:T* h:b64?", 81, 90, LSU, "RW", atom_vec)                                          \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}(.and|.or|.xor){.L2::cache_hint} T(.b32|.b64)", "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)   \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}.add{.L2::cache_hint} T(.u32|.s32|.u64|.f32)", "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)    \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}.add{.L2::cache_hint} T.f64",             \
    "[a] b:T h:b64?", 50, 60, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}(.min|.max){.L2::cache_hint} T(.u32|.s32)", "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)       \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}(.min|.max){.L2::cache_hint} T(.u64|.s64)", "[a] b:T h:b64?", 31, 32, LSU, "RW", atom)       \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}(.inc|.dec){.L2::cache_hint} T.u32",      \
    "[a] b:T h:b64?", 12, 11, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}.add.noftz{.L2::cache_hint} T.f16x2",     \
    "[a] b:T h:b64?", 62, 60, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE "}.add.noftz{.L2::cache_hint} T.f16",       \
    "[a] b:T h:b64?", 63, 70, LSU, "RW", atom)                                                     \
  F("red", "{(.relaxed|.release)}{" SCOPE "}{" ATSPACE                                             \
    "}.add.noftz{.L2::cache_hint} T(.bf16|.bf16x2)", "[a] b:T h:b64?", 78, 90, LSU, "RW", atom)    \
  F("red", "{(.relaxed|.release)}{" SCOPE "}.global.add{.L2::cache_hint}(.v2|.v4) T.f32",          \
    "[a] b:T* h:b64?", 81, 90, LSU, "RW", atom_vec)                                                \
  F("red", "{(.relaxed|.release)}{" SCOPE                                                          \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4|.v8) T(.f16|.bf16)",                  \
    "[a] b:T* h:b64?", 81, 90, LSU, "RW", atom_vec)                                                \
  F("red", "{(.relaxed|.release)}{" SCOPE                                                          \
    "}.global(.add|.min|.max).noftz{.L2::cache_hint}(.v2|.v4) T(.f16x2|.bf16x2)",                  \
    "[a] b:T* h:b64?", 81, 90, LSU, "RW", atom_vec)                                                \
  F("red",                                                                                         \
    ".async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.inc|.dec) T.u32",      \
    "[a] b:T [m]", 81, 90, LSU, "RWA", async_words)                                                \
  F("red",                                                                                         \
    ".async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.min|.max) T" INT32,    \
    "[a] b:T [m]", 81, 90, LSU, "RWA", async_words)                                                \
  F("red",                                                                                         \
    ".async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes(.and|.or|.xor) T.b32",  \
    "[a] b:T [m]", 81, 90, LSU, "RWA", async_words)                                                \
  F("red",                                                                                         \
    ".async.relaxed.cluster{.shared::cluster}.mbarrier::complete_tx::bytes.add "                   \
    "T(.u32|.s32|.u64|.s64)", "[a] b:T [m]", 81, 90, LSU, "RWA", async_words)                      \
  /* control flow */                                                                               \
  F("bra", "{.uni}", "L", 10, 10, CTRL, "C", bra)                                                  \
  F("brx", ".idx{.uni}", "a:u32 SYM", 60, 30, CTRL, "C", brx)                                      \
  F("call", "{.uni}", "FN", 10, 10, CTRL, "C", call)                                               \
  F("ret", "{.uni}", "", 10, 10, CTRL, "C", ret)                                                   \
  F("exit", "", "", 10, 10, CTRL, "C", exit)                                                       \
  F("trap", "", "", 10, 10, CTRL, "C", trap)                                                       \
  F("brkpt", "", "", 10, 11, CTRL, "-", nop)                                                       \
  F("nanosleep", ".u32", "a:u32", 63, 70, CTRL, "-", nop)                                          \
  F("pmevent", "{.mask}", "i:u32", 14, 10, CTRL, "-", nop)                                         \
  /* barriers, fences, warp collectives */                                                         \
  F("bar", "{.cta}.sync", "a:u32 b:u32?", 10, 10, CTRL, "BS", bar)                                 \
  F("bar", "{.cta}.arrive", "a:u32 b:u32", 20, 20, CTRL, "BS", bar)                                \
  F("bar", "{.cta}.red.popc.u32", "d:u32 a:u32 b:u32? c:pred!", 20, 20, CTRL, "BS", bar)           \
  F("bar", "{.cta}.red(.and|.or).pred", "d:pred a:u32 b:u32? c:pred!", 20, 20, CTRL, "BS", bar)    \
  F("bar", ".warp.sync", "m:b32", 60, 30, CTRL, "BS", barwarp)                                     \
  F("barrier", "{.cta}.sync{.aligned}", "a:u32 b:u32?", 60, 30, CTRL, "BS", bar)                   \
  F("barrier", "{.cta}.arrive{.aligned}", "a:u32 b:u32", 60, 30, CTRL, "BS", bar)                  \
  F("barrier", "{.cta}.red.popc{.aligned}.u32", "d:u32 a:u32 b:u32? c:pred!", 60, 30, CTRL,        \
    "BS", bar)                                                                                     \
  F("barrier", "{.cta}.red(.and|.or){.aligned}.pred", "d:pred a:u32 b:u32? c:pred!", 60, 30,       \
    CTRL, "BS", bar)                                                                               \
  F("barrier", ".cluster.arrive{.aligned}", "", 78, 90, CTRL, "BS", barcluster)                    \
  F("barrier", ".cluster.arrive(.release|.relaxed){.aligned}", "", 80, 90, CTRL, "BS", barcluster) \
  F("barrier", ".cluster.wait{.aligned}", "", 78, 90, CTRL, "BS", barcluster)                      \
  F("barrier", ".cluster.wait.acquire{.aligned}", "", 80, 90, CTRL, "BS", barcluster)              \
  F("membar", "(.cta|.gl|.sys)", "", 14, 10, CTRL, "B", fence)                                     \
  F("fence", "{(.sc|.acq_rel|.acquire|.release)}" SCOPE, "", 60, 70, CTRL, "B", fence)             \
  F("fence", ".proxy.alias", "", 75, 70, CTRL, "B", fence)                                         \
  F("fence", ".proxy.async{(.global|.shared::cta|.shared::cluster)}", "", 80, 90, CTRL, "B",       \
    fence)                                                                                         \
  F("fence", ".proxy.tensormap::generic.release" SCOPE, "", 83, 90, CTRL, "B", fence)              \
  F("fence", ".proxy.tensormap::generic.acquire" SCOPE, "[a] i:u32", 83, 90, CTRL, "B", fence)     \
  F("fence", ".mbarrier_init.release.cluster", "", 80, 90, CTRL, "B", fence)                       \
  F("activemask", ".b32", "d:b32", 62, 30, ALU, "-", activemask)                                   \
  F("vote", ".sync(.all|.any|.uni).pred", "d:pred a:pred! m:b32", 60, 30, ALU, "S", vote)          \
  F("vote", ".sync.ballot.b32", "d:b32 a:pred! m:b32", 60, 30, ALU, "S", vote)                     \
  F("match", ".any.sync T(.b32|.b64)", "d:b32 a:T m:b32", 60, 70, ALU, "S", match)                 \
  F("match", ".all.sync T(.b32|.b64)", "d:b32| a:T m:b32", 60, 70, ALU, "S", match)                \
  F("shfl", ".sync(.up|.down|.bfly|.idx).b32", "d:b32| a:b32 b:u32 c:u32 m:b32", 60, 30, LSU,      \
    "S", shfl)                                                                                     \
  F("redux", ".sync(.add|.min|.max) T(.u32|.s32)", "d:T a:T m:b32", 70, 80, ALU, "S", redux)       \
  F("redux", ".sync(.and|.or|.xor) T.b32", "d:T a:T m:b32", 70, 80, ALU, "S", redux)               \
  F("redux", ".sync(.min|.max){.abs}{.NaN} T.f32", "d:T a:T m:b32", 86, A100, ALU, "S", LATER)     \
  F("elect", ".sync", "d:b32||_ m:b32", 80, 90, ALU, "S", elect)                                   \
  F("griddepcontrol", "(.launch_dependents|.wait)", "", 78, 90, CTRL, "B", griddep)                \
  F("setmaxnreg", "(.inc|.dec).sync.aligned.u32", "i:u32", 80, A90UP, CTRL, "S", setmaxnreg)       \
  /* asynchronous copies */                                                                        \
  F("cp", ".async.ca(.shared|.shared::cta).global{.L2::cache_hint}{" L2PRE "}",                    \
    "[d] [a] i:u32 n:u32? h:b64?", 70, 80, LSU, "RWA", cpasync)                                    \
  F("cp", ".async.cg(.shared|.shared::cta).global{.L2::cache_hint}{" L2PRE "}",                    \
    "[d] [a] i:u32 n:u32? h:b64?", 70, 80, LSU, "RWA", cpasync)                                    \
  F("cp", ".async.ca(.shared|.shared::cta).global{.L2::cache_hint}{" L2PRE "}",                    \
    "[d] [a] i:u32 p:pred! h:b64?", 75, 80, LSU, "RWA", cpasync)                                   \
  F("cp", ".async.cg(.shared|.shared::cta).global{.L2::cache_hint}{" L2PRE "}",                    \
    "[d] [a] i:u32 p:pred! h:b64?", 75, 80, LSU, "RWA", cpasync)                                   \
  F("cp", ".async.commit_group", "", 70, 80, LSU, "A", cpasync_commit)                             \
  F("cp", ".async.wait_group", "i:u32", 70, 80, CTRL, "B", cpasync_wait)                           \
  F("cp", ".async.wait_all", "", 70, 80, CTRL, "B", cpasync_wait)                                  \
  F("cp", ".async.mbarrier.arrive{.noinc}{.shared}.b64", "[a]", 70, 80, LSU, "A", cpasync_arrive)  \
  F("cp", ".async.mbarrier.arrive{.noinc}.shared::cta.b64", "[a]", 78, 80, LSU, "A",               \
    cpasync_arrive)                                                                                \
  F("cp",                                                                                          \
    ".async.bulk.shared::cluster.global.mbarrier::complete_tx::bytes{.multicast::cluster}"         \
    "{.L2::cache_hint}", "[d] [a] n:u32 [m] x:u16? h:b64?", 80, 90, TMA, "RWA", bulk)              \
  F("cp", ".async.bulk.shared::cta.global.mbarrier::complete_tx::bytes{.L2::cache_hint}",          \
    "[d] [a] n:u32 [m] h:b64?", 86, 90, TMA, "RWA", bulk)                                          \
  F("cp", ".async.bulk.shared::cluster.shared::cta.mbarrier::complete_tx::bytes",                  \
    "[d] [a] n:u32 [m]", 80, 90, TMA, "RWA", bulk)                                                 \
  F("cp", ".async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}", "[d] [a] n:u32 h:b64?",    \
    80, 90, TMA, "RWA", bulk)                                                                      \
  F("cp", ".async.bulk.prefetch.L2.global{.L2::cache_hint}", "[a] n:u32 h:b64?", 80, 90, TMA,      \
    "A", nop)                                                                                      \
  F("cp", ".async.bulk.commit_group", "", 80, 90, TMA, "A", bulk_commit)                           \
  F("cp", ".async.bulk.wait_group{.read}", "i:u32", 80, 90, CTRL, "B", bulk_wait)                  \
  F("cp",                                                                                          \
    ".async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).shared::cluster.global{.tile}"                        \
    ".mbarrier::complete_tx::bytes{.multicast::cluster}{.L2::cache_hint}",                         \
    "[d] TMAP [m] x:u16? h:b64?", 80, 90, TMA, "RWA", bulk)                                        \
  F("cp",                                                                                          \
    ".async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).shared::cta.global{.tile}"                            \
    ".mbarrier::complete_tx::bytes{.L2::cache_hint}", "[d] TMAP [m] h:b64?", 86, 90, TMA, "RWA",   \
    bulk)                                                                                          \
  F("cp", ".async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).global.shared::cta{.tile}.bulk_group"           \
    "{.L2::cache_hint}", "TMAP [a] h:b64?", 80, 90, TMA, "RWA", bulk)                              \
  F("cp", ".async.bulk.prefetch.tensor(.1d|.2d|.3d|.4d|.5d).L2.global{.tile}{.L2::cache_hint}",    \
    "TMAP h:b64?", 80, 90, TMA, "A", nop)                                                          \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.and|.or|.xor)"             \
    " T(.b32|.b64)", "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", bulk)                             \
  F("cp", ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.inc|.dec) T.u32",    \
    "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", bulk)                                              \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}"                            \
    ".add T(.u32|.s32|.u64|.f32|.f64)", "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", bulk)          \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}(.min|.max)"                 \
    " T(.u32|.s32|.u64|.s64|.f16|.bf16)", "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", bulk)        \
  F("cp",                                                                                          \
    ".reduce.async.bulk.global.shared::cta.bulk_group{.L2::cache_hint}.add.noftz T(.f16|.bf16)",   \
    "[d] [a] n:u32 h:b64?", 80, 90, TMA, "RWA", bulk)                                              \
  F("cp", ".reduce.async.bulk.tensor(.1d|.2d|.3d|.4d|.5d).global.shared::cta"                      \
    "(.add|.min|.max|.inc|.dec|.and|.or|.xor){.tile}.bulk_group{.L2::cache_hint}",                 \
    "TMAP [a] h:b64?", 80, 90, TMA, "RWA", bulk)                                                   \
  /* mbarrier */                                                                                   \
  F("mbarrier", ".init{(.shared|.shared::cta)}.b64", "[a] n:u32", 70, 80, LSU, "W", mbar_init)     \
  F("mbarrier", ".inval{(.shared|.shared::cta)}.b64", "[a]", 70, 80, LSU, "W", mbar_inval)         \
  F("mbarrier",                                                                                    \
    ".expect_tx{.relaxed(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",            \
    "[a] n:u32", 80, 90, LSU, "WB", mbar_tx)                                                       \
  F("mbarrier",                                                                                    \
    ".complete_tx{.relaxed(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",          \
    "[a] n:u32", 80, 90, LSU, "WB", mbar_tx)                                                       \
  F("mbarrier",                                                                                    \
    ".arrive.expect_tx{.release(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",     \
    "d:b64_ [a] n:u32", 80, 90, LSU, "WB", mbar_arrive)                                            \
  F("mbarrier",                                                                                    \
    ".arrive.expect_tx.relaxed(.cta|.cluster){(.shared|.shared::cta|.shared::cluster)}.b64",       \
    "d:b64_ [a] n:u32", 86, 90, LSU, "WB", mbar_arrive)                                            \
  F("mbarrier", ".arrive.noComplete{(.shared|.shared::cta)}.b64", "d:b64_ [a] n:u32", 70, 80,      \
    LSU, "WB", mbar_arrive)                                                                        \
  F("mbarrier", ".arrive.noComplete.release.cta{(.shared|.shared::cta)}.b64",                      \
    "d:b64_ [a] n:u32", 80, 80, LSU, "WB", mbar_arrive)                                            \
  F("mbarrier", ".arrive{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 70, 80, LSU, "WB",            \
    mbar_arrive)                                                                                   \
  F("mbarrier", ".arrive{(.shared|.shared::cta)}.b64", "d:b64_ [a] n:u32", 78, 90, LSU, "WB",      \
    mbar_arrive)                                                                                   \
  F("mbarrier", ".arrive.release.cta{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 80, 80, LSU,      \
    "WB", mbar_arrive)                                                                             \
  F("mbarrier", ".arrive{.release(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",   \
    "d:b64_ [a] n:u32?", 80, 90, LSU, "WB", mbar_arrive)                                           \
  F("mbarrier", ".arrive.relaxed(.cta|.cluster){(.shared|.shared::cta|.shared::cluster)}.b64",     \
    "d:b64_ [a] n:u32?", 86, 90, LSU, "WB", mbar_arrive)                                           \
  F("mbarrier", ".arrive_drop{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 70, 80, LSU, "WB",       \
    mbar_arrive)                                                                                   \
  F("mbarrier", ".arrive_drop{(.shared|.shared::cta)}.b64", "d:b64_ [a] n:u32", 78, 90, LSU,       \
    "WB", mbar_arrive)                                                                             \
  F("mbarrier", ".arrive_drop.release.cta{(.shared|.shared::cta)}.b64", "d:b64_ [a]", 80, 80,      \
    LSU, "WB", mbar_arrive)                                                                        \
  F("mbarrier",                                                                                    \
    ".arrive_drop{.release(.cta|.cluster)}{(.shared|.shared::cta|.shared::cluster)}.b64",          \
    "d:b64_ [a] n:u32?", 80, 90, LSU, "WB", mbar_arrive)                                           \
  F("mbarrier",                                                                                    \
    ".arrive_drop.relaxed(.cta|.cluster){(.shared|.shared::cta|.shared::cluster)}.b64",            \
    "d:b64_ [a] n:u32?", 86, 90, LSU, "WB", mbar_arrive)                                           \
  F("mbarrier", ".test_wait{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64", 70, 80, LSU, "RB",   \
    mbar_wait)                                                                                     \
  F("mbarrier", ".test_wait.acquire.cta{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64", 80,      \
    80, LSU, "RB", mbar_wait)                                                                      \
  F("mbarrier", ".test_wait.acquire.cluster{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64",      \
    80, 90, LSU, "RB", mbar_wait)                                                                  \
  F("mbarrier", ".test_wait.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",                   \
    "d:pred [a] s:b64", 86, 90, LSU, "RB", mbar_wait)                                              \
  F("mbarrier", ".test_wait.parity{(.shared|.shared::cta)}.b64", "d:pred [a] s:u32", 71, 80,       \
    LSU, "RB", mbar_wait)                                                                          \
  F("mbarrier", ".test_wait.parity.acquire.cta{(.shared|.shared::cta)}.b64", "d:pred [a] s:u32",   \
    80, 80, LSU, "RB", mbar_wait)                                                                  \
  F("mbarrier", ".test_wait.parity.acquire.cluster{(.shared|.shared::cta)}.b64",                   \
    "d:pred [a] s:u32", 80, 90, LSU, "RB", mbar_wait)                                              \
  F("mbarrier", ".test_wait.parity.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",            \
    "d:pred [a] s:u32", 86, 90, LSU, "RB", mbar_wait)                                              \
  F("mbarrier", ".try_wait{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64 t:u32?", 78, 90, LSU,   \
    "RB", mbar_wait)                                                                               \
  F("mbarrier", ".try_wait.acquire.cta{(.shared|.shared::cta)}.b64", "d:pred [a] s:b64 t:u32?",    \
    80, 90, LSU, "RB", mbar_wait)                                                                  \
  F("mbarrier", ".try_wait.acquire.cluster{(.shared|.shared::cta)}.b64",                           \
    "d:pred [a] s:b64 t:u32?", 80, 90, LSU, "RB", mbar_wait)                                       \
  F("mbarrier", ".try_wait.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",                    \
    "d:pred [a] s:b64 t:u32?", 86, 90, LSU, "RB", mbar_wait)                                       \
  F("mbarrier", ".try_wait.parity{(.shared|.shared::cta)}.b64", "d:pred [a] s:u32 t:u32?", 78,     \
    90, LSU, "RB", mbar_wait)                                                                      \
  F("mbarrier", ".try_wait.parity.acquire.cta{(.shared|.shared::cta)}.b64",                        \
    "d:pred [a] s:u32 t:u32?", 80, 90, LSU, "RB", mbar_wait)                                       \
  F("mbarrier", ".try_wait.parity.acquire.cluster{(.shared|.shared::cta)}.b64",                    \
    "d:pred [a] s:u32 t:u32?", 80, 90, LSU, "RB", mbar_wait)                                       \
  F("mbarrier", ".try_wait.parity.relaxed(.cta|.cluster){(.shared|.shared::cta)}.b64",             \
    "d:pred [a] s:u32 t:u32?", 86, 90, LSU, "RB", mbar_wait)                                       \
  F("mbarrier", ".pending_count.b64", "d:u32 a:b64", 70, 80, ALU, "-", mbar_pending)

#endif
