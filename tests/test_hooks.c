// The hooks of examples/hooks/ on the interpreter: through the gates on both tensor-core templates,
// the tiles that a mask's ranges leave out, and what the user hears of a mistake.
#include <stdlib.h>
#include <unistd.h>

#include "dense.h"
#include "hook.h"
#include "verify_hook.h"
#include "verify_kit.h"

static const char *example(Fixture *f, const char *name) {
  return arena_printf(f->a, "%s/examples/hooks/%s.hook", SOURCE_DIR, name);
}

static void pass(Fixture *f, const char *variant, const char *hook, const char *problem) {
  fixture_hooked(f, variant, hook, problem, ST_OK);
}

static void examples_pass(void **state) {
  static const char *const names[] = {"bias", "document", "cap", "causal"};
  static const char *const templates[] = {"prefill_mma", "prefill_wgmma"};
  Fixture *f = *state;
  for (int i = 0; i < 4; i++)
    for (int t = 0; t < 2; t++) {
      const char *more = i == 2 ? ",cap=3" : "";
      pass(f, templates[t], example(f, names[i]),
           arena_printf(f->a, "hq=4,hkv=2,sq=150,sk=333,d=64,dtype=f16%s", more));
      pass(f, templates[t], example(f, names[i]),
           arena_printf(f->a, "hq=2,seqlens_q=140/0/9,seqlens_k=300/8/0,d=128,dtype=bf16%s", more));
    }
}

// Where every score goes through the hook.
static void other_templates(void **state) {
  static const char *const names[] = {"document", "causal"};
  Fixture *f = *state;
  for (int i = 0; i < 2; i++) {
    const char *path = example(f, names[i]);
    pass(f, "prefill_fma", path, "hq=2,sq=40,sk=70,d=32");
    pass(f, "prefill_thread", path, "hq=2,seqlens_q=20/0/12,seqlens_k=40/30/64,d=32");
    pass(f, "prefill_tile", path, "hq=2,seqlens_q=20/0/12,seqlens_k=40/30/64,d=32");
    pass(f, "decode_splitk", path, "hq=4,hkv=2,sq=3,sk=90,d=64,chunks=2");
    pass(f, "decode_fma", path, "hq=4,hkv=2,sq=3,seqlens_k=50/0/90,d=64,chunks=2,page=16");
    pass(f, "decode_mma", path, "hq=4,hkv=2,sq=3,sk=90,d=64,dtype=f16,chunks=2");
    pass(f, "decode_span", path,
         "hq=4,hkv=2,sq=3,seqlens_k=90/0/33,d=64,dtype=f16,chunks=5,page=16");
    pass(f, "oracle_f64", path, "hq=2,sq=6,sk=33,d=32");
  }
}

// With the template's own rules, and sanitized.
static void with_other_rules(void **state) {
  Fixture *f = *state;
  const char *shape = "hq=2,sq=100,sk=300,d=64,dtype=f16";
  device_sim_opts(f->sim, &(SimOpts){.threads = 1, .sanitize = true, .seed = 2});
  pass(f, "prefill_wgmma", example(f, "document"), arena_printf(f->a, "%s,causal=1", shape));
  pass(f, "prefill_mma", example(f, "bias"), arena_printf(f->a, "%s,wl=40,wr=9,softcap=9", shape));
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
  pass(f, "prefill_wgmma", example(f, "causal"),
       arena_printf(f->a, "%s,wl=40,alibi=1,sinks=1", shape));
}

// ---- ranges -------------------------------------------------------------------------------------
static char *hook_of(Fixture *f, const char *text) {
  char *path = arena_strdup(f->a, "/tmp/hook_XXXXXX");
  int fd = mkstemp(path);
  assert_true(fd >= 0);
  assert_int_equal(write(fd, text, strlen(text)), strlen(text));
  close(fd);
  return path;
}

#define CAUSAL                                                                                     \
  "| function visible()\n  .reg .s32 %own;\n  sub.s32 %own, ${len_k}, ${len_q};\n"                 \
  "  add.s32 %own, %own, ${i};\n  setp.le.s32 ${sees}, ${j}, %own;\n| end\n"
#define END_AT(row, more)                                                                          \
  "  .reg .s32 %end;\n  sub.s32 %end, ${len_k}, ${len_q};\n  add.s32 %end, %end, ${" row "};\n"    \
  "  add.s32 %end, %end, " more ";\n  min.s32 ${to}, ${to}, %end;\n| end\n"

#define TO(end) "  min.s32 ${to}, ${to}, " end ";\n| end\n"
#define ANY "| function keys_any()\n"
#define ALL "| function keys_all()\n"
// Keys below 100 have weight; those from 40 on by visible() alone.
#define BELOW "| function visible()\n  setp.lt.s32 ${sees}, ${j}, "

// A range that leaves out a key which is seen, or takes one for seen that is not, is found whatever
// the template's tiles are, if it uses ranges or not; one that is too careful only costs time.
static const struct RangeCase {
  const char *text, *told; // behind the file's name; NULL: it is right
} range_cases[] = {
    {CAUSAL, NULL},
    {CAUSAL ANY END_AT("last", "1"), NULL},
    {CAUSAL ALL END_AT("first", "1"), NULL},
    {CAUSAL ALL END_AT("first", "-100"), NULL},
    {BELOW "100;\n| end\n" ANY TO("100") ALL TO("100"), NULL},
    // queries 0 and 1 are the first block of two
    {CAUSAL ANY END_AT("first", "1"),
     ":7: key 11 of query 1 (batch 0, head 0) is outside keys_any() of queries 0 .. 1 but has "
     "weight"},
    {CAUSAL ANY END_AT("last", "0"),
     ":7: key 10 of query 0 (batch 0, head 0) is outside keys_any() of queries 0 .. 0 but has "
     "weight"},
    {CAUSAL ALL END_AT("last", "1"),
     ":7: key 11 of query 0 (batch 0, head 0) is inside keys_all() of queries 0 .. 1 but visible() "
     "masks it"},
    {BELOW "20;\n| end\n" ANY TO("19"),
     ":4: key 19 of query 0 (batch 0, head 0) is outside keys_any() of queries 0 .. 0"},
    {BELOW "20;\n| end\n" ANY TO("20") ALL TO("21"),
     ":7: key 20 of query 0 (batch 0, head 0) is inside keys_all() of queries 0 .. 0"},
    // the range is empty, and ends before it begins
    {BELOW "20;\n| end\n" ANY "  mov.s32 ${from}, 60;\n" TO("9"),
     ":4: key 0 of query 0 (batch 0, head 0) is outside keys_any()"},
    // head 1 alone
    {BELOW "20;\n| end\n" ANY "  .reg .s32 %n;\n  sub.s32 %n, 20, ${h};\n" TO("%n"),
     ":4: key 19 of query 0 (batch 0, head 1) is outside keys_any()"},
};

static void wrong_ranges(void **state) {
  static const char *const on[] = {"prefill_mma",  "prefill_wgmma", "prefill_thread",
                                   "prefill_tile", "decode_mma",    "oracle_f64"};
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof range_cases / sizeof *range_cases; i++) {
    const char *told = range_cases[i].told;
    char *path = hook_of(f, range_cases[i].text);
    bool on_all = i == 1 || i == 2 || i == 5 || i == 7;
    for (int t = 0; t < (on_all ? 6 : 1); t++) {
      Verdict v = fixture_hooked(f, on[t], path, "hq=2,sq=70,sk=80,d=64,dtype=f16",
                                 told ? ST_FAILED : ST_OK);
      const char *text = verdict_text(f->a, &v);
      if (told && !strstr(text, arena_printf(f->a, "%s%s", path, told))) fail_msg("%s", text);
    }
    unlink(path);
  }
}

// A key that the problem's own mask hides, that the hook's lines have made -inf, or that no query
// is there to see may be in any range.
static void ranges_that_do_not_count(void **state) {
  static const char lines[] = "  .reg .pred %p;\n  setp.lt.s32 %p, ${j}, 30;\n"
                              "  @!%p mov.f32 ${s}, 0fFF800000;\n";
  Fixture *f = *state;
  char *path = hook_of(f, BELOW "60;\n| end\n" ANY END_AT("last", "1"));
  fixture_hooked(f, "prefill_mma", path, "hq=1,sq=60,sk=80,d=64,dtype=f16,causal=1", ST_OK);
  fixture_hooked(f, "prefill_mma", path, "hq=1,sq=60,sk=80,d=64,dtype=f16", ST_FAILED);
  unlink(path);
  path = hook_of(f, arena_printf(f->a, "%s%s", lines, BELOW "60;\n| end\n" ANY TO("30") ALL
                                                      TO("70")));
  Verdict v = fixture_hooked(f, "prefill_mma", path, "hq=1,sq=9,sk=80,d=64,dtype=f16", ST_OK);
  assert_int_equal(verdict_ran(&v), 4); // hook-ranges, reference, unseen, grid
  unlink(path);
  path = hook_of(f, CAUSAL ANY END_AT("last", "1") ALL END_AT("first", "1"));
  fixture_hooked(f, "prefill_mma", path,
                 "hq=2,seqlens_q=9/0/70,seqlens_k=0/20/33,d=64,dtype=f16", ST_OK);
  unlink(path);
}

// Scores in which fp32 has no digits left are refused by the oracle, -FLT_MAX and -1e9 for -inf
// among them; -inf masks every key (O = 0, LSE = -inf), and four million are still right.
static void scores_of_any_size(void **state) {
  static const struct {
    const char *score, *told;
  } cases[] = {
      {"0fFF7FFFFF", "the hook makes scores of 3.4e+38: beyond 4194304 fp32 has no digits left for "
                     "their weights; a masked key's score is -inf"},
      {"0fCE6E6B28", "the hook makes scores of 1e+09"},
      {"0f7F7FFFFF", "the hook makes scores of 3.4e+38"},
      {"0f7FC00000", "the hook makes NaN or +inf of a finite score"},
      {"0f7F800000", "the hook makes NaN or +inf of a finite score"},
      {"0fCA800000", NULL}, // -2^22
      {"0f4A800000", NULL},
      {"0fFF800000", NULL},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    char *path = hook_of(f, arena_printf(f->a, "  mov.f32 ${s}, %s;\n", cases[i].score));
    const char *names[] = {"prefill_wgmma", "prefill_mma", "prefill_thread"};
    for (int t = 0; t < 3; t++) {
      fixture_hooked(f, names[t], path, "hq=1,sq=3,sk=20,d=64,dtype=f16",
                     cases[i].told ? ST_INPUT : ST_OK);
      if (cases[i].told) assert_non_null(strstr(diag_text(f->d), cases[i].told));
    }
    unlink(path);
  }
}

// A sequence without keys: the hook is not asked about any: its tensor of keys may be empty.
static void sequences_without_keys(void **state) {
  static const char *const cases[][2] = {
      {"decode_span", "hq=2,hkv=1,d=64,dtype=f16,seqlens_k=65/0,sq=1"},
      {"decode_span", "hq=2,hkv=1,d=64,dtype=f16,sq=3,sk=0"},
      {"decode_latent", "hq=2,hkv=1,d=576,dv=512,shared=1,dtype=f16,seqlens_k=0/65,sq=1"},
      {"decode_latent_few", "hq=2,hkv=1,d=576,dv=512,shared=1,dtype=f16,seqlens_k=0/65,sq=1"},
      {"decode_mma", "hq=2,hkv=1,d=64,dtype=f16,seqlens_k=65/0,sq=1"},
      {"decode_fma", "hq=2,hkv=1,d=64,seqlens_k=0/65,sq=1"},
      {"prefill_wgmma", "hq=2,hkv=1,d=64,dtype=f16,seqlens_q=3/4,seqlens_k=65/0"},
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
    fixture_hooked(f, cases[i][0], SOURCE_DIR "/examples/hooks/bias.hook", cases[i][1], ST_OK);
}

// Operations of the tensor cores in one launch.
static uint64_t products(Fixture *f, const char *name, const char *path, const char *problem) {
  Problem *p;
  Operator *op;
  Dense buffers = {0};
  Counters n;
  PlanOpts opts = {.build.hook_path = path};
  device_sim_opts(f->sim, &(SimOpts){.counters = true});
  Status st = problem_open_hooked(f->s, f->a, problem, path, &p, f->d);
  if (!st) st = operator_make(f->s, name, NULL, p, &opts, &op, f->d);
  if (!st) st = operator_load(op, f->sim, f->d);
  if (!st) st = operator_plan(op, f->sim, NULL, f->d);
  if (!st) st = dense_bind(f->sim, op, 1, &buffers, f->d);
  device_counters(f->sim, &n, true);
  if (!st) st = operator_launch(op, f->sim, f->d);
  if (!st) st = device_sync(f->sim, f->d);
  if (st) fail_msg("%s", diag_text(f->d));
  device_counters(f->sim, &n, true);
  dense_free(f->sim, &buffers);
  operator_free(op);
  device_sim_opts(f->sim, &(SimOpts){.threads = 0});
  return n.flops_by_kind[FLOP_TENSOR_F16];
}

// The hook's ranges leave out the very tiles that the built-in mask leaves out.
static void tiles_left_out(void **state) {
  Fixture *f = *state;
  for (int t = 0; t < 2; t++) {
    const char *name = t ? "prefill_wgmma" : "prefill_mma";
    const char *shape = "hq=1,sq=512,sk=600,d=64,dtype=f16";
    uint64_t all = products(f, name, NULL, shape);
    uint64_t built_in = products(f, name, NULL, arena_printf(f->a, "%s,causal=1", shape));
    uint64_t hook = products(f, name, example(f, "causal"), shape);
    assert_true(built_in > 0 && built_in < all);
    assert_int_equal(hook, built_in);
  }
}

// ---- mistakes -----------------------------------------------------------------------------------
#define ADD "  add.f32 ${s}, ${s}, ${s};\n"
#define BIAS "| arg { \"bias\", \"in\", \"f32\", { 64 }, \"x\" }\n"
static const struct Mistake {
  const char *text;
  int line;
  const char *what;
} mistakes[] = {
    {"| function visible()\n  setp.le.s32 ${sees}, ${j}, %nothing;\n| end\n", 2,
     "%nothing\" is not declared"},
    {"| function visible()\n  setp.le.s32 ${sees}, ${jj}, 1;\n| end\n", 2,
     "undefined name 'jj'"},
    {"| function visible()\n  setp.le.s32 ${sees}, ${j}, 9;\n| end\n| function keys_any()\n\n"
     "  min.s32 ${to}, ${to}, ${s};\n| end\n",
     6, "undefined name 's'"},
    {"  add.f32 ${s}, ${s}, ${first};\n", 1, "undefined name 'first'"},
    {"  add.f32 ${s}, ${s}, ${s};\n  @${sees} mov.f32 ${s}, 0f00000000;\n", 2,
     "undefined name 'sees'"},
    // what no point calls
    {"\n| function keys_any()\n  min.s32 ${to}, ${to}, 5;\n| end\n", 2,
     "2:12: error: keys_any() without visible()"},
    {"  add.f32 ${s}, ${s}, ${s};\n| function keys_all()\n| end\n", 2,
     "2:12: error: keys_all() without visible()"},
    {"| function visble()\n  setp.le.s32 ${sees}, ${j}, 9;\n| end\n", 1,
     "1:12: error: no point calls the hook's visble (did you mean \"visible\"?)"},
    {"  add.f32 ${s}, ${s}, ${s};\n| local function visible()\n| end\n", 2,
     "2:18: error: visible is local"},
    {"  add.f32 ${s}, ${s}, ${s};\n| keys_any = 3\n", 2,
     "2:3: error: keys_any is not a function"},
    {"// nothing\n| local x = 3\n", 0, "the hook changes nothing"},
    {"", 0, "the hook changes nothing"},
    // what changes nothing that counts
    {"| function visible()\n  .reg .pred %p;\n  setp.le.s32 %p, ${j}, ${i};\n| end\n", 1,
     "1:12: error: visible() never changes ${sees}"},
    {"\n  .reg .f32 %t;\n  add.f32 %t, ${s}, ${s};\n", 2, "the hook's lines never change ${s}"},
    // what would change the template around it
    {"  add.f32 ${s}, ${s}, ${s};\n  add.s32 ${j}, ${j}, 1;\n", 2,
     "the hook's lines may change ${s} only"},
    {"| function visible()\n  setp.le.s32 ${sees}, ${j}, ${i};\n"
     "  mov.f32 ${s}, 0f00000000;\n| end\n",
     3, "visible() may change ${sees} only"},
    {"| function visible()\n  setp.le.s32 ${sees}, ${j}, ${i};\n| end\n| function keys_any()\n"
     "  add.s32 ${last}, ${last}, 1;\n  min.s32 ${to}, ${to}, ${last};\n| end\n",
     5, "keys_any() may change ${from} and ${to} only"},
    {"  add.f32 ${s}, ${s}, ${s};\n  ret;\n", 2, "ret in a hook ends the template's thread"},
    {"  add.f32 ${s}, ${s}, ${s};\n  bra L_next;\n", 2, "jumps to the template's label L_next"},
    {"  add.f32 ${s}, ${s}, ${s};\n  }\n  {\n", 2, "a closing brace without one"},
    {"  add.f32 ${s}, ${s}, ${s};\n  {\n", 2, "an opening brace that the hook does not close"},
    {"\n  add.f32 ${s}, ${s}, ${s}; }  {\n", 2, "a closing brace without one"},
    {"  { add.f32 ${s}, ${s}, ${s}; } /* } { */ } {\n", 1, "a closing brace without one"},
    {"| local brace = \"}\"\n  add.f32 ${s}, ${s}, ${s};\n  ${brace} {\n", 3,
     "a closing brace without one"},
    {"  /* a */ add.f32 ${s}, ${s}, ${s};\n  /* b\n  c\n", 2,
     "a comment that the hook does not close"},
    {"  add.f32 ${s}, ${s}, ${s};\n  add.f32\n  ${s}, ${s}\n", 2,
     "a statement that the hook does not end"},
    // what has another effect than a score
    {BIAS "  add.f32 ${s}, ${s}, ${s};\n  st.global.f32 [%bias], ${s};\n", 3,
     "st writes memory: a hook is a rule for one score"},
    {BIAS "| function visible()\n  setp.gt.f32 ${sees}, ${s}, 0f00000000;\n"
          "  @${sees} red.global.add.f32 [%bias], ${s};\n| end\n",
     4, "red writes memory"},
    {BIAS "  atom.global.add.f32 ${s}, [%bias], ${s};\n", 2, "atom writes memory"},
    {BIAS "  ld.global.f32 ${s}, [%bias];\n  discard.global.L2 [%bias], 128;\n", 3,
     "discard writes memory"},
    {"  add.f32 ${s}, ${s}, ${s};\n  bar.sync 0;\n", 2, "bar waits for other threads"},
    {"  add.f32 ${s}, ${s}, ${s};\n  membar.gl;\n", 2, "membar waits for other threads"},
    {"  add.f32 ${s}, ${s}, ${s};\n  cp.async.wait_all;\n", 2, "cp waits for other threads"},
    {"  .reg .b32 %t;\n  mov.b32 %t, ${s};\n  shfl.sync.idx.b32 %t, %t, 0, 31, -1;\n"
     "  mov.b32 ${s}, %t;\n",
     3, "shfl works on a whole warp"},
    {"  add.f32 ${s}, ${s}, ${s};\n  pmevent 3;\n", 2, "pmevent is an event that others count"},
    {ADD "  trap;\n", 2, "trap ends the launch"},
    {ADD "  brkpt;\n", 2, "brkpt stops the thread"},
    {ADD "  nanosleep.u32 9;\n", 2, "nanosleep waits"},
    // what is no function of the score's own inputs
    {"  .reg .b32 %t;\n  activemask.b32 %t;\n  mov.b32 ${s}, %t;\n", 2,
     "activemask tells which threads run together"},
    {"  .reg .u32 %t, %z;\n  mov.u32 %z, 1;\n  addc.u32 %t, %z, %z;\n  mov.b32 ${s}, %t;\n", 3,
     "addc uses the carry that the template's instructions have, too"},
    {"  .reg .u32 %t;\n  mov.u32 %t, 1;\n  add.cc.u32 %t, %t, %t;\n  mov.b32 ${s}, %t;\n", 3,
     "add uses the carry"},
    {BIAS "  ld.acquire.gpu.global.f32 ${s}, [%bias];\n", 2,
     "ld reads memory as if others wrote it meanwhile"},
    {BIAS "  ld.relaxed.cta.f32 ${s}, [%bias];\n", 2, "ld reads memory as if others wrote it"},
    {BIAS "  ld.volatile.global.f32 ${s}, [%bias];\n", 2, "ld reads memory as if others wrote it"},
    {BIAS "  ld.shared.f32 ${s}, [%bias];\n", 2, "ld goes to memory that is not global"},
    {BIAS "  ld.local.f32 ${s}, [%bias];\n", 2, "ld goes to memory that is not global"},
    {"  ld.param.f32 ${s}, [scale];\n", 1, "ld goes to memory that is not global"},
    {"  ld.global.f32 ${s}, [64];\n", 1, "ld reads an address that no Arg has"},
    {"  .reg .u64 %at;\n  cvta.shared.u64 %at, 0;\n  ld.f32 ${s}, [%at];\n", 2,
     "cvta goes to memory that is not global"},
    {BIAS "| function visible()\n  isspacep.global ${sees}, %bias;\n| end\n", 3,
     "isspacep tells where memory lies"},
    {"  .shared .f32 kept;\n  ld.f32 ${s}, [kept];\n", 1,
     "kept is a .shared variable: a hook declares registers only"},
    {"  .local .f32 kept;\n" ADD, 1, "kept is a .local variable"},
    {"  .reg .u32 %t;\n  mov.u32 %t, dynamic_smem;\n  mov.b32 ${s}, %t;\n", 2,
     "mov takes the address of what the template declares"},
    {"  ld.f32 ${s}, [dynamic_smem];\n", 1, "ld reads what the template declares"},
    {"  .reg .u64 %t;\n  mov.u64 %t, %clock64;\n  cvt.rn.f32.u64 ${s}, %t;\n", 2,
     "mov reads %clock64, which is no input of a rule"},
    {"  .reg .u32 %t;\n  mov.u32 %t, %tid.x;\n  mov.b32 ${s}, %t;\n", 2, "mov reads %tid"},
    {"  .reg .b64 %t;\n  mov.b64 %t, {%laneid, %nctaid.x};\n  cvt.rn.f32.u64 ${s}, %t;\n", 2,
     "mov reads %laneid"},
    {"  mul.f32 ${s}, ${s}, %scale;\n", 1,
     "%scale is the template's: a hook knows its part's ${names}"},
    {BIAS "| function visible()\n  setp.gt.s64 ${sees}, %q_stride_0, 3;\n| end\n", 3,
     "%q_stride_0 is the template's"},
    // names of Args that the templates have which check a hook
    {"\n| arg { \"samples\", \"f32\", \"x\" }\n  add.f32 ${s}, ${s}, %samples;\n", 2,
     "arg 'samples': hook_eval has one of that name; a hook's own needs another"},
    {"| arg { \"every\", \"f32\", \"x\" }\n  add.f32 ${s}, ${s}, %every;\n", 1,
     "arg 'every': hook_eval has one"},
    {"| arg { \"scores\", \"in\", \"f32\", { 1 }, \"x\" }\n  add.f32 ${s}, ${s}, ${s};\n", 1,
     "arg 'scores': hook_eval has one"},
    {"| arg { \"sinks\", \"in\", \"f32\", { 1 }, \"x\" }\n  add.f32 ${s}, ${s}, ${s};\n", 1,
     "arg 'sinks': oracle_f64 has one"},
    {"| arg { \"lse\", \"f32\", \"x\" }\n  add.f32 ${s}, ${s}, %lse;\n", 1,
     "arg 'lse': prefill_mma has one"},
    {"| entry_begin()\n", 1, "no entry_begin() in it"},
    {"| arg { \"saved\", \"out\", \"f32\", { \"heads_q\" }, \"x\" }\n"
     "  add.f32 ${s}, ${s}, ${s};\n",
     1, "arg 'saved': a hook's tensors are inputs"},
};

static void mistakes_point_into_the_file(void **state) {
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof mistakes / sizeof *mistakes; i++) {
    char *path = hook_of(f, mistakes[i].text);
    Variant *v;
    VariantOpts opts = {.hook_path = path};
    diag_reset(f->d);
    const char *template_name = strstr(mistakes[i].text, "L_next") ? "hook_eval" : "prefill_mma";
    assert_int_equal(variant_build(f->s, template_name, NULL, &opts, &v, f->d), ST_INPUT);
    const char *place = mistakes[i].line ? arena_printf(f->a, "%s:%d", path, mistakes[i].line)
                                         : arena_printf(f->a, "%s: error", path);
    const char *at = strstr(diag_text(f->d), place);
    if (!at || !strstr(diag_text(f->d), mistakes[i].what))
      fail_msg("no %s:%d with \"%s\" in\n%s", path, mistakes[i].line, mistakes[i].what,
               diag_text(f->d));
    unlink(path);
  }
}

// Every instruction is decided: one that is new in the table of forms changes this list or not.
static void instructions_of_a_rule(void **state) {
  Fixture *f = *state;
  static const char want[] =
      "abs add and applypriority bfe bfi bfind bmsk bra brev brx clz cnot copysign cos "
      "createpolicy cvt cvta div dp2a dp4a ex2 exit fma fns ld ldu lg2 lop3 mad mad24 max min mov "
      "mul mul24 neg not or popc prefetch prefetchu prmt rcp rem ret rsqrt sad selp set setp shf "
      "shl shr sin slct sqrt sub szext tanh testp xor";
  const char *stems[512];
  int n = 0;
  for (int i = 0; i < ptx_nforms; i++) {
    if (hook_form_effect(&ptx_forms[i])) continue;
    int at = 0;
    while (at < n && strcmp(stems[at], ptx_forms[i].stem) < 0) at++;
    if (at < n && !strcmp(stems[at], ptx_forms[i].stem)) continue;
    memmove(stems + at + 1, stems + at, (size_t)(n++ - at) * sizeof *stems);
    stems[at] = ptx_forms[i].stem;
  }
  char *got = "";
  for (int i = 0; i < n; i++) got = arena_printf(f->a, "%s%s%s", got, i ? " " : "", stems[i]);
  assert_string_equal(got, want); // exit and ret are refused as leaving the thread
}

// What reads no more than its Args may do so in every way: generic, through a cache, by a branch.
static void reads_of_its_args(void **state) {
  Fixture *f = *state;
  char *path = hook_of(
      f, "| arg { \"bias\", \"in\", \"f32\", { \"heads_q\", 4 }, \"x\" }\n"
         "  .reg .u64 %at;\n  .reg .s64 %h;\n  .reg .f32 %x<2>;\n  .reg .pred %odd;\n"
         "  cvt.s64.s32 %h, ${h};\n  mad.lo.s64 %at, %h, %bias_stride_0, %bias;\n"
         "  prefetch.global.L2 [%at];\n  ld.f32 %x0, [%at];\n  cvta.to.global.u64 %at, %at;\n"
         "  ldu.global.f32 %x1, [%at+4];\n  add.f32 %x0, %x0, %x1;\n"
         "  ld.global.nc.f32 %x1, [%at+8];\n"
         "  setp.gt.s32 %odd, ${len_k}, 20;\n  @%odd bra L_end;\n  add.f32 %x0, %x0, %x1;\n"
         "L_end:\n  add.f32 ${s}, ${s}, %x0;\n");
  pass(f, "prefill_thread", path, "hq=2,hkv=1,sq=3,sk=20,d=64");
  pass(f, "prefill_mma", path, "hq=2,hkv=1,sq=3,sk=21,d=64,dtype=f16");
  unlink(path);
}

// Locals, labels, braces and a helper of its own are the hook's; both of lines and mask at one
// point.
static void what_is_its_own(void **state) {
  Fixture *f = *state;
  char *path = hook_of(
      f, "| function helper(to) -- a global, near none of the names\n"
         "  mov.f32 ${to}, 0f3F000000;\n| end\n"
         "  {\n  .reg .f32 %half;\n  .reg .s32 %i;\n  .reg .pred %odd;\n  mov.s32 %i, ${j};\n"
         "  and.b32 %i, %i, 1;\n  setp.ne.s32 %odd, %i, 0;\n  @%odd bra L_end;\n"
         "|   helper(\"%half\")\n  mul.f32 ${s}, ${s}, %half;\nL_end:\n  }\n" CAUSAL);
  pass(f, "prefill_mma", path, "hq=1,sq=40,sk=70,d=64,dtype=f16");
  pass(f, "decode_splitk", path, "hq=1,sq=1,sk=70,d=64,dtype=f16");
  unlink(path);
}

// Args may have the names of a template's registers: %row and %cap in lib/mask.inc, %first at the
// point keys_any, %hook_i0 and %j behind ${i} and ${j}.
static void args_named_as_registers(void **state) {
  static const char *const names[] = {"row", "cap", "j", "first", "hook_i0"};
  Fixture *f = *state;
  for (int i = 0; i < 5; i++) {
    const char *n = names[i];
    char *path = hook_of(
        f, arena_printf(f->a,
                        "| arg { \"%s\", \"in\", \"i32\", { \"seqlen_q\" }, \"end of its keys\","
                        " sorted = true }\n| function visible()\n  .reg .u64 %%at;\n"
                        "  .reg .s32 %%end;\n  mad.wide.s32 %%at, ${i}, 4, %%%s;\n"
                        "  ld.global.s32 %%end, [%%at];\n  setp.lt.s32 ${sees}, ${j}, %%end;\n"
                        "| end\n| function keys_any()\n  .reg .u64 %%at;\n  .reg .s32 %%end;\n"
                        "  mad.wide.s32 %%at, ${last}, 4, %%%s;\n  ld.global.s32 %%end, [%%at];\n"
                        "  min.s32 ${to}, ${to}, %%end;\n| end\n",
                        n, n, n));
    pass(f, "prefill_mma", path, "hq=1,sq=40,sk=150,d=64,dtype=f16,softcap=5");
    unlink(path);
  }
}

// So may its own: ${len_k} is %seqlen_k in many templates, ${i} is %i in hook_eval, %f<2> is two.
static void own_registers_named_as_the_templates(void **state) {
  static const char *const rules[] = {
      "| function visible()\n  { .reg .s32\n  %seqlen_k; mov.s32 %seqlen_k, 3;\n"
      "  sub.s32 %seqlen_k, ${len_k}, %seqlen_k;\n"
      "  setp.lt.s32 ${sees}, ${j}, %seqlen_k; }\n| end\n",
      "  .reg .s32 %i, %j;\n  .reg .f32 %s<2>;\n  mov.s32 %i, 7;\n  add.s32 %i, ${i}, %i;\n"
      "  sub.s32 %j, %i, ${j};\n  cvt.rn.f32.s32 %s1, %j;\n"
      "  fma.rn.f32 ${s}, ${s}, 0f3D800000, %s1;\n"};
  Fixture *f = *state;
  for (int i = 0; i < 2; i++) {
    char *path = hook_of(f, rules[i]);
    pass(f, "prefill_thread", path, "hq=2,hkv=1,sq=3,sk=20,d=64");
    pass(f, "prefill_mma", path, "hq=2,hkv=1,sq=3,sk=20,d=64,dtype=f16");
    unlink(path);
  }
  // a verdict alone does not tell: the check's own kernels are expanded with the same hook
  char *path = hook_of(f, rules[0]);
  Variant *v;
  VariantOpts opts = {.hook_path = path};
  Params params = {0};
  assert_int_equal(variant_build(f->s, "prefill_thread", &params, &opts, &v, f->d), ST_OK);
  assert_non_null(strstr(v->ptx->text, "sub.s32 %user_seqlen_k, %seqlen_k, %user_seqlen_k;"));
  variant_free(v);
  unlink(path);
}

// A template that writes into a hook's tensor is found out, like one that writes to q.
static void the_hooks_tensors_stay(void **state) {
  Fixture *f = *state;
  Problem *p;
  Operator *op;
  Extras extras = {0};
  Outputs out = {0};
  const char *path = example(f, "bias");
  PlanOpts opts = {.build.hook_path = path};
  Status st = problem_open_hooked(f->s, f->a, "hq=2,sq=3,sk=5,d=64,dtype=f16", path, &p, f->d);
  if (!st) st = operator_make(f->s, "prefill_mma", NULL, p, &opts, &op, f->d);
  if (!st) st = operator_load(op, f->sim, f->d);
  if (!st) st = operator_plan(op, f->sim, NULL, f->d);
  if (!st) st = extras_bind(op, f->sim, 1, &extras, f->d);
  assert_int_equal(st, ST_OK);
  assert_int_equal(extras.n, 1);
  assert_int_equal(extras_check(&extras, f->sim, &out, f->d), ST_OK);
  assert_false(out.damaged);
  char last = extras.v[0].host[119];
  last ^= 1;
  assert_int_equal(device_write(f->sim, extras.v[0].at + 119, &last, 1, f->d), ST_OK);
  assert_int_equal(extras_check(&extras, f->sim, &out, f->d), ST_OK);
  assert_true(out.damaged);
  assert_string_equal(out.note, "input overwritten: bias at byte 119");
  extras_free(&extras, f->sim);
  operator_free(op);
}

// What shaped the text stands in its first line.
static void the_text_names_its_hook(void **state) {
  Fixture *f = *state;
  char *path = hook_of(f, CAUSAL);
  Variant *v;
  VariantOpts opts = {.hook_path = path, .sm = 90, .sm_suffix = 'a'};
  assert_int_equal(variant_build(f->s, "prefill_thread", NULL, &opts, &v, f->d), ST_OK);
  size_t len;
  const char *line = source_line(v->ptx, 1, &len);
  const char *want = arena_printf(f->a, "// ptxsmith %s --hook %s --target sm_90a", v->id, path);
  assert_string_equal(arena_strndup(f->a, line, len), want);
  variant_free(v);
  unlink(path);
}

// Where the hook's own Args are without a value, its line is named.
static void args_without_a_value(void **state) {
  static const char problem[] = "hq=1,sq=4,sk=7,d=64,dtype=f16";
  Fixture *f = *state;
  char *path = hook_of(f, "\n| arg { \"bias\", \"in\", \"f32\", { \"heads_x\" }, \"x\" }\n"
                          "  add.f32 ${s}, ${s}, ${s};\n");
  fixture_hooked(f, "prefill_mma", path, problem, ST_INPUT);
  assert_non_null(strstr(diag_text(f->d),
                         arena_printf(f->a, "%s:2: error: problem: no value for heads_x", path)));
  unlink(path);
  path = hook_of(f, "| arg { \"much\", \"f32\", \"x\" }\n  add.f32 ${s}, ${s}, %much;\n");
  fixture_hooked(f, "prefill_mma", path, problem, ST_INPUT);
  assert_non_null(strstr(diag_text(f->d), arena_printf(f->a, "%s:1: error: ", path)));
  assert_non_null(strstr(diag_text(f->d), "gives no value for much"));
  unlink(path);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(examples_pass),    cmocka_unit_test(other_templates),
      cmocka_unit_test(with_other_rules), cmocka_unit_test(wrong_ranges),
      cmocka_unit_test(ranges_that_do_not_count),
      cmocka_unit_test(scores_of_any_size),
      cmocka_unit_test(sequences_without_keys),
      cmocka_unit_test(tiles_left_out),   cmocka_unit_test(mistakes_point_into_the_file),
      cmocka_unit_test(instructions_of_a_rule),
      cmocka_unit_test(reads_of_its_args),
      cmocka_unit_test(what_is_its_own),  cmocka_unit_test(args_without_a_value),
      cmocka_unit_test(args_named_as_registers),
      cmocka_unit_test(own_registers_named_as_the_templates),
      cmocka_unit_test(the_text_names_its_hook),
      cmocka_unit_test(the_hooks_tensors_stay),
  };
  return cmocka_run_group_tests(tests, fixture_setup, fixture_teardown);
}
