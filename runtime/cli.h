// Cli: the command line as data.  Two tables, verbs and options, give parsing, validity, help and
// the dispatch of main.c; there is no other list of either.
#ifndef PTXSMITH_CLI_H
#define PTXSMITH_CLI_H

#include "../gen/variant.h"

// id, name, operands as shown, least and most operands (-1: any number), takes name=value
// parameters, shown in help, what it does.  The verb runs as cmd_NAME (see cmd.h).
#define CLI_VERBS(X)                                                                               \
  X(LIST, list, "[TEMPLATE]", 0, 1, false, true,                                                   \
    "templates, or one template's parameters, domains, arguments and constraints")                 \
  X(GEN, gen, "TEMPLATE [name=value ...]", 1, 1, true, true,                                       \
    "write a variant's PTX to standard output or to a file")                                       \
  X(DUMP, dump, "TEMPLATE|FILE.ptx [name=value ...]", 1, 1, true, true,                            \
    "show PTX with its template lines, statistics, machine code or differences")                   \
  X(CHECK, check, "FILE.ptx|- ...", 1, -1, false, true, "parse and check PTX from anywhere")       \
  X(VERIFY, verify, "TEMPLATE [name=value ...]", 1, 1, true, true,                                 \
    "run a variant and hold its answers against the reference")                                    \
  X(BENCH, bench, "TEMPLATE [name=value ...]", 1, 1, true, true,                                   \
    "verify a variant, then time it against its roofline")                                         \
  X(RUN, run, "FILE.ptx", 1, 1, false, true, "launch a kernel of any PTX on arguments of your own")\
  X(COUNTERS, counters, "TEMPLATE|FILE.ptx [name=value ...]", 1, 1, true, true,                    \
    "count what a launch does, line by line, on the interpreter")                                  \
  X(SWEEP, sweep, "NAME|SCRIPT.lua [name=value ...]", 1, 1, true, true,                            \
    "verify, time and rank the variants that a script asks for")                                   \
  X(CAMPAIGN, campaign, "NAME|SCRIPT.lua", 1, 1, false, true,                                      \
    "predict, then measure, rung by rung")                                                         \
  X(PLAN, plan, "PROBLEM [name=value ...]", 0, 1, true, true,                                      \
    "what would run for a problem, and why")                                                       \
  X(INFO, info, "", 0, 0, false, true, "devices, driver, build and host")                          \
  X(WORKER, worker, "", 0, 0, false, false, "one variant of a sweep in a process of its own")      \
  X(HELP, help, "[VERB]", 0, 1, false, true, "this text, or a verb's options")                     \
  X(VERSION, version, "", 0, 0, false, true, "the program's version")

typedef enum CliVerbId {
#define X(id, ...) CLI_##id,
  CLI_VERBS(X)
#undef X
  CLI_VERB_COUNT
} CliVerbId;

enum { // the same as bits, for the table of options
#define X(id, ...) IN_##id = 1 << CLI_##id,
  CLI_VERBS(X)
#undef X
  IN_TIMED = IN_VERIFY | IN_BENCH | IN_SWEEP | IN_CAMPAIGN | IN_WORKER,
  IN_PTX = IN_RUN | IN_COUNTERS, // launch a file's kernel
  IN_DEVICE = IN_TIMED | IN_PLAN | IN_INFO | IN_RUN,
  IN_BUILD = IN_GEN | IN_DUMP | IN_TIMED | IN_COUNTERS,
  IN_COUNTED = IN_VERIFY | IN_BENCH | IN_PTX,
  IN_MODELLED = IN_TIMED & ~IN_VERIFY, // times on sim come from counters
  IN_ALL = (1 << CLI_VERB_COUNT) - 1,
  IN_UNITS = IN_CHECK | IN_SWEEP | IN_CAMPAIGN | IN_WORKER, // ask interrupt_pending() in between
  IN_TEMPLATES = IN_LIST | IN_BUILD | IN_PLAN,
  IN_REPORT = IN_ALL & ~(IN_GEN | IN_HELP),
};

// id, name, letter (0: none), kind, the value as shown, verbs that take it, meaning.
#define CLI_OPTS(X)                                                                                \
  X(PROBLEM, "problem", 'p', TEXT, "NAME|b=1,hq=8,...",                                            \
    IN_VERIFY | IN_BENCH | IN_WORKER | IN_COUNTERS,                                                \
    "a problem by name (see list --problems) or by its values")                                    \
  X(PROBLEMS, "problems", 0, FLAG, "", IN_LIST, "the named problems instead of the templates")     \
  X(DEVICE, "device", 'd', TEXT, "auto|sim|cuda:N", IN_DEVICE,                                     \
    "where to run; auto is a GPU if there is one")                                                 \
  X(GRID, "grid", 0, COUNT, "N", IN_TIMED,                                                         \
    "N blocks, whatever there is to do; by default the template's rule")                           \
  X(SEED, "seed", 0, NUMBER, "N", IN_TIMED | IN_PTX, "seed of the random inputs")                  \
  X(Q, "q", 0, TEXT, "FILE.npy", IN_VERIFY | IN_BENCH, "queries [batch, seqlen_q, heads_q, d]")    \
  X(K, "k", 0, TEXT, "FILE.npy", IN_VERIFY | IN_BENCH, "keys [batch, seqlen_k, heads_kv, d]")      \
  X(V, "v", 0, TEXT, "FILE.npy", IN_VERIFY | IN_BENCH, "values [batch, seqlen_k, heads_kv, dv]")   \
  X(SAVE, "save", 0, TEXT, "DIR", IN_VERIFY | IN_BENCH | IN_RUN,                                   \
    "write the outputs there: o.npy and lse.npy, or argN.npy")                                     \
  X(HOOK, "hook", 0, TEXT, "FILE.hook", IN_BUILD | IN_PLAN,                                        \
    "PTX lines of your own that change scores or mask keys")                                       \
  X(TARGET, "target", 't', TEXT, "sm_NN[a|f]", IN_BUILD | IN_PLAN, "raise the target of the PTX")  \
  X(LOC, "loc", 0, FLAG, "", IN_GEN | IN_DUMP, "write .file and .loc, for profilers")              \
  X(OUTPUT, "output", 'o', TEXT, "FILE", IN_GEN, "write there; nothing is left when it fails")     \
  X(ANNOTATE, "annotate", 0, FLAG, "", IN_DUMP | IN_COUNTED,                                       \
    "each PTX line with its template line; of counters: with its counts")                          \
  X(STATS, "stats", 0, FLAG, "", IN_DUMP, "instruction mix, registers, hot loop")                  \
  X(SASS, "sass", 0, FLAG, "", IN_DUMP, "machine code, by ptxas and a disassembler on the PATH")   \
  X(DIFF, "diff", 0, TEXT, "'[TEMPLATE|FILE.ptx] [name=value ...]'", IN_DUMP,                      \
    "where another variant differs; parameters not given stay")                                    \
  X(KERNEL, "kernel", 'k', TEXT, "NAME", IN_PTX, "which kernel of the file, where it has several") \
  X(GRID3, "grid", 0, TEXT, "X[,Y[,Z]]", IN_PTX, "blocks (of a template: their number)")           \
  X(BLOCK, "block", 0, TEXT, "X[,Y[,Z]]", IN_PTX, "threads of a block")                            \
  X(CLUSTER, "cluster", 0, TEXT, "X[,Y[,Z]]", IN_PTX, "blocks of a cluster")                       \
  X(SMEM, "smem", 0, NUMBER, "BYTES", IN_PTX, "dynamic shared memory of a block")                  \
  X(ARG, "arg", 0, LIST, "SPEC", IN_PTX,                                                           \
    "in:X.npy inout:f32[8]=iota out:f32[4,2] i32:7 tmap:... bytes:...")                            \
  X(EXPECT, "expect", 0, LIST, "FILE.npy", IN_RUN,                                                 \
    "what the next output must hold; - leaves one out")                                            \
  X(TOLERANCE, "tolerance", 0, TEXT, "abs=A,rel=R,ulps=U", IN_RUN,                                 \
    "how far an output may be from what is expected; exact by default")                            \
  X(COUNTERS, "counters", 0, FLAG, "", IN_VERIFY | IN_BENCH | IN_RUN,                              \
    "count one launch on the interpreter, line by line")                                           \
  X(ROOF, "roof", 0, TEXT, "dram=GB/s,f32=GFLOP/s,...", IN_COUNTED,                                \
    "ceilings to hold --counters against; by default an H200's")                                   \
  X(SAMPLES, "samples", 0, COUNT, "N", IN_BENCH | IN_SWEEP | IN_CAMPAIGN | IN_WORKER,              \
    "timed launches; by default as many as fit 200 ms")                                            \
  X(HOT, "hot", 0, FLAG, "", IN_BENCH | IN_SWEEP | IN_WORKER,                                      \
    "leave the L2 cache warm between launches")                                                    \
  X(GRAPH, "graph", 0, FLAG, "", IN_BENCH | IN_SWEEP | IN_WORKER, "time a CUDA graph's replay")    \
  X(OUT, "out", 0, TEXT, "DIR", IN_SWEEP | IN_CAMPAIGN, "folder of the results; out/ by default")  \
  X(FIRST, "first", 0, COUNT, "N", IN_SWEEP, "only the first N variants")                          \
  X(AGAIN, "again", 0, FLAG, "", IN_SWEEP, "measure what the store has already, too")              \
  X(FROM, "from", 0, TEXT, "STORE.jsonl", IN_PLAN,                                                 \
    "rows of the planner's table from a sweep's results")                                          \
  X(INTO, "into", 0, TEXT, "TABLE.txt", IN_PLAN | IN_SWEEP,                                        \
    "put the rows that the results make into this table")                                          \
  X(STEPS, "steps", 0, NUMBER, "N", IN_PTX | IN_TIMED,                                             \
    "sim: at most N warp instructions a launch; 0: any number")                                    \
  X(SANITIZE, "sanitize", 0, FLAG, "", IN_TIMED | IN_RUN,                                          \
    "sim: look for data races, barrier misuse and unfinished copies")                              \
  X(SCHEDULE, "schedule", 0, NUMBER, "SEED", IN_TIMED | IN_RUN,                                    \
    "sim: the order of blocks, warps and completions; 0 is the fixed one")                         \
  X(SCHEDULES, "schedules", 0, COUNT, "N", IN_VERIFY | IN_RUN,                                     \
    "sim: N schedules, from --schedule on; the first that fails is named")                         \
  X(THREADS, "threads", 'j', COUNT, "N", IN_DEVICE | IN_COUNTERS,                                  \
    "host threads; by default all cores")                                                          \
  X(ISA, "isa", 0, TEXT, "baseline|avx2|avx512", IN_DEVICE | IN_COUNTERS,                          \
    "sim's host instructions")                                                                     \
  X(ROWS, "rows", 0, FLAG, "", IN_PLAN, "the rows of the planner's tables: which still hold")      \
  X(TEMPLATES, "templates", 0, TEXT, "DIR", IN_TEMPLATES,                                          \
    "a folder with templates/ and lua/ to use")                                                    \
  X(JSON, "json", 0, FLAG, "", IN_REPORT, "one JSON object a line")                                \
  X(HELP, "help", 'h', FLAG, "", IN_ALL, "the verb's options")

typedef enum CliOptId {
#define X(id, ...) OPT_##id,
  CLI_OPTS(X)
#undef X
  OPT_COUNT
} CliOptId;

typedef enum CliTakes {
  TAKES_FLAG,
  TAKES_TEXT,
  TAKES_LIST,   // text, as often as wanted
  TAKES_COUNT,  // 1 .. 2^31-1
  TAKES_NUMBER, // 0 .. 2^64-1
} CliTakes;

typedef struct CliVerb {
  const char *name, *operands;
  int least, most;
  bool params, shown;
  const char *summary;
} CliVerb;
extern const CliVerb cli_verbs[CLI_VERB_COUNT];

typedef struct CliOpt {
  const char *name;
  char letter;
  CliTakes takes;
  const char *value;
  uint32_t verbs;
  const char *summary;
} CliOpt;
extern const CliOpt cli_opts[OPT_COUNT];

typedef struct CliList { const char **v; int n, cap; } CliList;

typedef struct Cli {
  CliVerbId verb;
  const char **operand; int noperands, operand_cap;
  Params params;                // name=value, in the order given
  const char *text[OPT_COUNT];  // NULL: not given; "" for a flag
  CliList list[OPT_COUNT];      // of options that may be given again
  uint64_t number[OPT_COUNT];   // of options that take one, 0 when not given
} Cli;

// argv[0] is the program.  Options may stand anywhere, as --name VALUE, --name=VALUE or -x VALUE;
// `--` ends them.  One message for the first mistake, with the nearest names.  ST_INPUT then.
Status cli_parse(Arena *a, int argc, const char *const *argv, Cli *out, Diag *d);
static inline bool cli_has(const Cli *c, CliOptId o) { return c->text[o] != NULL; }

// The help text of a verb; of the program for CLI_VERB_COUNT.
char *cli_help(Arena *a, CliVerbId verb);
// CLI_VERB_COUNT and a message when there is no such verb.
CliVerbId cli_verb(Arena *a, const char *name, Diag *d);
// `s` as one word of a POSIX shell's command line, quoted only where it must be.
char *cli_quote(Arena *a, const char *s);

#endif
