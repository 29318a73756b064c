// The kernels' own mutants: a template with one line changed, in one of the ways that attention
// kernels go wrong, is expanded, run on the interpreter and rejected by verify().  The unchanged
// copy passes at the same problem, so it is the line that is found.
#include <errno.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

#include "timer.h"

typedef struct Mutant {
  const char *what;
  const char *file; // below templates/: the line stands there once
  const char *line, *instead;
  const char *name; // the template that is verified
  const char *params, *problem;
} Mutant;

#define PREFILL "prefill_thread", "head_dim=32"
#define DECODE "decode_splitk", "head_dim=32"
#define MMA "prefill_mma", "head_dim=32 tile_q=32 tile_k=16 warps=2 dtype=f16"
#define HOPPER "prefill_wgmma", "head_dim=64 tile_q=64 tile_k=64"
#define BYTES "b=1,hq=4,hkv=2,sq=40,sk=75,dtype=e4m3,descale=1"
#define SPLIT "prefill_mma", "head_dim=32 tile_q=32 tile_k=16 warps=2 dtype=f32"
#define TILES "b=1,hq=2,hkv=1,sq=40,sk=75"
#define ROWS "b=2,hq=4,hkv=2,sq=5,sk=37"
#define CHUNKS "b=1,hq=4,hkv=2,sq=1,sk=300,chunks=3" // of 128, 128 and 44 keys

static const Mutant mutants[] = {
    {"mask aligned top-left", "prefill_thread.ptx.in",
     "        sub.s32         %keys, ${len_k}, ${len_q};\n",
     "        mov.s32         %keys, 0;\n", PREFILL, ROWS ",causal=1"},
    {"mask aligned top-left", "decode_splitk.ptx.in",
     "        sub.s32         %past, %seqlen_k, %seqlen_q;\n",
     "        mov.s32         %past, 0;\n", DECODE, "b=1,hq=4,hkv=2,sq=3,sk=300,chunks=3,causal=1"},
    {"last key dropped", "prefill_thread.ptx.in", "        mov.s32         %keys, ${len_k};\n",
     "        sub.s32         %keys, ${len_k}, 1;\n", PREFILL, ROWS},
    {"last key dropped", "decode_splitk.ptx.in", "        cvt.s64.s32     %limit64, %seqlen_k;\n",
     "        cvt.s64.s32     %limit64, %seqlen_k;\n        sub.s64 %limit64, %limit64, 1;\n",
     DECODE, CHUNKS},
    {"key 1 counted twice", "prefill_thread.ptx.in", "        ex2.approx.f32  %weight, %weight;\n",
     "        ex2.approx.f32  %weight, %weight;\n        setp.eq.s32 %writes_lse, %j, 1;\n"
     "        @%writes_lse add.rn.f32 %weight, %weight, %weight;\n",
     PREFILL, ROWS},
    {"key 1 counted twice", "decode_splitk.ptx.in",
     "        ex2.approx.f32  %weight${u}, %weight${u};\n",
     "        ex2.approx.f32  %weight${u}, %weight${u};\n        setp.eq.s32 %visible, %j${u}, 1;\n"
     "        @%visible add.rn.f32 %weight${u}, %weight${u}, %weight${u};\n",
     DECODE, CHUNKS},
    {"KV heads swapped", "prefill_thread.ptx.in", "        div.s32         %h_kv, %h, %group;\n",
     "        div.s32         %h_kv, %h, %group;\n        xor.b32 %h_kv, %h_kv, 1;\n", PREFILL,
     ROWS},
    {"V of the other head", "decode_splitk.ptx.in",
     "|   address(\"%v_at\", \"%v\", { \"%b\", \"%next\", \"%h_kv\" })\n",
     "        xor.b32 %j0, %h_kv, 1;\n"
     "|   address(\"%v_at\", \"%v\", { \"%b\", \"%next\", \"%j0\" })\n",
     DECODE, CHUNKS},
    {"LSE not written", "prefill_thread.ptx.in", "        st.global.f32   [%lse_at], %out_lse;\n",
     "", PREFILL, ROWS},
    {"LSE not written", "combine.ptx.in", "        @%leads st.global.f32 [%out_at], %out_lse;\n",
     "", DECODE, CHUNKS},
    {"no rescale of acc", "prefill_thread.ptx.in",
     "        mul.rn.f32      %acc${e}, %acc${e}, %rescale;\n", "", PREFILL, ROWS},
    {"no rescale of sum", "prefill_thread.ptx.in",
     "        mul.rn.f32      %sum, %sum, %rescale;\n", "", PREFILL, ROWS},
    {"no rescale of acc", "decode_splitk.ptx.in",
     "        mul.rn.f32      %acc${acc}, %acc${acc}, %rescale;\n", "", DECODE, CHUNKS},
    {"lane groups merged without their maxima", "decode_splitk.ptx.in",
     "        sub.rn.f32      %m, %m, %all_max;\n", "        mov.f32         %m, 0f00000000;\n",
     DECODE, CHUNKS},
    {"a chunk ends one key early", "decode_splitk.ptx.in",
     "        add.s64         %key64, %key64, %len;\n",
     "        add.s64         %key64, %key64, %len;\n        sub.s64 %key64, %key64, 1;\n", DECODE,
     CHUNKS},
    {"a chunk ends one key late", "decode_splitk.ptx.in",
     "        add.s64         %key64, %key64, %len;\n",
     "        add.s64         %key64, %key64, %len;\n        add.s64 %key64, %key64, 1;\n", DECODE,
     CHUNKS},
    {"diagonal one key late", "lib/mask.inc", "        add.s32         %high, %high, 1;\n",
     "        add.s32         %high, %high, 2;\n", MMA, TILES ",causal=1"},
    {"a cut tile taken for a whole one", "lib/mask.inc",
     "        add.s32         ${all_to}, ${from}, ${shift};\n        add.s32         ${all_to}, "
     "${all_to}, 1;\n",
     "        add.s32         ${all_to}, ${from}, ${shift};\n        add.s32         ${all_to}, "
     "${all_to}, 2;\n",
     MMA, "b=1,hq=2,hkv=1,sq=45,sk=75,causal=1"},
    {"no rescale of O", "lib/mma.inc",
     "        mul.rn.f32      ${o}, ${o}, %rescale${2 * m + e // 2};\n", "", MMA, TILES},
    {"small products of S left out", "lib/mma_tf32.inc",
     "        add.rn.f32      %s${e}, %s${e}, %s_small${e};\n", "", SPLIT, TILES},
    {"the second half of P left out", "lib/mma_tf32.inc",
     "|         split(\"%pf0\", \"%p_hi\" .. p, \"%p_lo\" .. p)\n",
     "|         split(\"%pf0\", \"%p_hi\" .. p, \"%p_lo\" .. p)\n"
     "        mov.b32 %p_lo${p}, 0;\n",
     SPLIT, TILES},
    {"no rescale of O", "prefill_fma.ptx.in",
     "        mul.rn.f32      ${o_at(i, c)}, ${o_at(i, c)}, %rescale${i};\n", "", "prefill_fma",
     "head_dim=32 tile_q=64 tile_k=32", TILES},
    {"rows of a lane one apart", "prefill_fma.ptx.in",
     "| mask_apart = function(r) return dealt(r, lanes_q, 4) end\n",
     "| mask_apart = function(r) return r end\n", "prefill_fma", "head_dim=32 tile_k=32",
     TILES ",causal=1"},
    {"the stage that was read last", "prefill_tile.ptx.in",
     "        add.u32         %k_row, %k_row, %ring;\n", "", "prefill_tile",
     "head_dim=32 tile_k=16 block=64", TILES},
    {"K awaited too late", "prefill_mma.ptx.in", "        cp.async.wait_group ${stages - 2};\n",
     "        cp.async.wait_group ${stages - 1};\n", MMA " stages=2", TILES},
    {"K and V swapped in the ring", "prefill_mma.ptx.in",
     "        add.u32         %v_turn0, %v_lane, %ring_in;\n",
     "        mov.b32         %v_turn0, %v_lane;\n", MMA " stages=2", TILES},
    {"two keys of V exchanged", "lib/wgmma_transpose.inc",
     "        prmt.b32        %t${k}, %r${k}, %r${k + 1}, 0x6420;\n",
     "        prmt.b32        %t${k}, %r${k}, %r${k + 1}, 0x6402;\n", HOPPER, BYTES},
    {"columns of V in the order of memory", "lib/wgmma_transpose.inc",
     "        and.b32         %some, ${lane}, 15;\n", "        xor.b32         %some, ${lane}, 8;\n"
     "        and.b32         %some, %some, 15;\n", HOPPER, BYTES},
    {"k's factor left out", "prefill_wgmma.ptx.in",
     "|       wg_descale(\"%scale\", \"%descale_k\", \"%b\", \"%h_kv\")\n", "", HOPPER, BYTES},
    {"v's factor of the query head", "lib/wgmma_rows.inc",
     "        div.s32         %h_kv, %o_h, %share;\n", "        and.b32         %h_kv, %o_h, 1;\n",
     HOPPER, BYTES},
    {"a work item told before it is known", "lib/prefill_item.inc",
     "        st.shared.v2.b32 [%at+${item.at + 8}], {%q0, %n};\n",
     "        st.shared.v2.b32 [%at+${item.at + 8}], {%i_end, %n};\n", HOPPER,
     "b=1,hq=4,hkv=2,sq=150,sk=150,causal=1"},
};

// ---- a folder with one template in it
// ---------------------------------------------------------------
static void write_template(const char *top, const Mutant *m, bool changed, Arena *a, Diag *d) {
  Source *src;
  const char *from = arena_printf(a, SOURCE_DIR "/templates/%s", m->file);
  if (source_read(a, from, &src, d)) fail_msg("%s", diag_text(d));
  const char *at = strstr(src->text, m->line);
  if (!at || strstr(at + 1, m->line)) fail_msg("%s: does not stand once in %s", m->line, m->file);
  const char *to = arena_printf(a, "%s/templates/%s", top, m->file);
  FILE *f = fopen(to, "wb");
  if (!f) fail_msg("%s: %s", to, strerror(errno));
  fprintf(f, "%.*s%s%s", (int)(at - src->text), src->text, changed ? m->instead : m->line,
          at + strlen(m->line));
  fclose(f);
}

// ---- verifying it
// -----------------------------------------------------------------------------------
static Status judge(const char *top, Device *sim, const Mutant *m, bool changed) {
  Arena *a = arena_new();
  Diag *d = diag_new();
  Params params = {0};
  Problem *p;
  Verdict v = {0};
  VerifyOpts opts = {.seed = 3, .threads = 2};
  write_template(top, m, changed, a, d);
  Session *s = session_open(top, d);
  Status st = s ? ST_OK : ST_INPUT;
  char *rest = arena_strdup(a, m->params);
  for (char *word; !st && (word = strtok_r(rest, " ", &rest));)
    st = params_parse(a, &params, word, d);
  if (!st) st = problem_parse(a, m->problem, &p, d);
  if (!st) st = verify(s, sim, m->name, &params, p, &opts, &v, a, d);
  // A wrong address may also leave its tensor: a trap rejects as well as a gate does.
  bool trapped = changed && st == ST_FAILED;
  if (d->errors && !trapped) fail_msg("%s, %s: %s", m->file, m->what, diag_text(d));
  assert_int_equal(v.passed, st == ST_OK);
  session_close(s);
  diag_free(d);
  arena_free(a);
  return st;
}

static void every_mutant_is_rejected(void **state) {
  (void)state;
  char top[] = "/tmp/ptxsmith-mutants-XXXXXX";
  Diag *d = diag_new();
  Device *sim;
  assert_non_null(mkdtemp(top));
  const char *folder = arena_printf(d->arena, "%s/templates", top);
  const char *lib = arena_printf(d->arena, "%s/lib", folder);
  assert_int_equal(mkdir(folder, 0777), 0);
  assert_int_equal(mkdir(lib, 0777), 0);
  assert_int_equal(device_open("sim", &sim, d), ST_OK);
  for (size_t i = 0; i < sizeof mutants / sizeof *mutants; i++) {
    const Mutant *m = &mutants[i];
    Status as_is = judge(top, sim, m, false), mutant = judge(top, sim, m, true);
    unlink(arena_printf(d->arena, "%s/%s", folder, m->file));
    if (as_is != ST_OK) fail_msg("%s as it is: rejected (%s)", m->file, m->problem);
    if (mutant != ST_FAILED) fail_msg("%s, %s: not rejected", m->file, m->what);
  }
  rmdir(lib);
  rmdir(folder);
  rmdir(top);
  device_close(sim);
  diag_free(d);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_mutant_is_rejected)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
