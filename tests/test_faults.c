// The planted faults of tests/faults/: every kernel stands there twice in one text.  Lines that
// begin with `//- ` belong to the faulty one only, lines that begin with `//+ ` to the sound one.
// The faulty one must be reported in the words below, whatever the schedule; the sound one never.
#include <stdio.h>

#include "sim_kit.h"

typedef struct Fault {
  const char *kind, *file;
  uint32_t grid, block;
  const char *expect; // in an error (after "warning: " in a warning), up to the |, and after it
} Fault;

static const Fault faults[] = {
    {"read after write", "raw_neighbour", 1, 64, "data race:|shared memory"},
    {"read after write", "raw_broadcast", 1, 64,
     "data race:|byte 0 of shared memory"},
    {"write after read", "war_tile", 1, 64, "data race:|shared memory"},
    {"write after read", "war_named", 1, 64, "data race:|shared memory"},
    {"write after write", "waw_sum", 1, 64,
     "data race:|byte 0 of shared memory"},
    {"write after write", "waw_lanes", 1, 32,
     "data race:|byte 0 of shared memory"},
    {"write after write", "waw_bytes", 1, 64, "data race:|shared memory"},
    {"lanes of a warp", "warp_exchange", 1, 32, "data race:|shared memory"},
    {"lanes of a warp", "warp_half", 1, 32, "data race:|shared memory"},
    {"lanes of a warp", "warp_shuffle", 1, 32, "data race:|shared memory"},
    {"between blocks", "blocks_write", 4, 32,
     "data race: writes|\"out\", which another thread wrote"},
    {"between blocks", "blocks_in_place", 4, 32, "data race:|\"in\""},
    {"between blocks", "blocks_sum", 4, 32, "data race:|\"out\""},
    {"missing release", "last_acq_rel", 5, 64, "data race:|\"out\""},
    {"missing release", "last_fence", 5, 64, "data race:|\"out\""},
    {"missing release", "last_barrier", 5, 64, "data race:|\"out\""},
    {"missing release", "flag_relaxed", 1, 64, "data race:|byte 0 of shared memory"},
    {"missing acquire", "last_reader_fence", 5, 64, "data race:|\"out\""},
    {"missing acquire", "flag_volatile", 1, 64, "data race:|byte 0 of shared memory"},
    {"scope", "last_scope", 5, 64, "data race:|\"out\""},
    {"scope", "last_atomic_scope", 5, 64, "data race: updates|\"in\""},
    {"strong and weak", "flag_weak", 1, 64, "data race:|shared memory"},
    {"strong and weak", "atomic_plain", 1, 64, "data race:|shared memory"},
    {"divergent barrier", "bar_divergent", 1, 32, "deadlock"},
    {"divergent barrier", "bar_skipped", 1, 32, "deadlock"},
    {"barrier count", "bar_count", 1, 64, "barrier 1: a count of"},
    {"barrier count", "bar_count_odd", 1, 64, "barrier 1: a count of 48 is not a multiple of 32"},
    {"barrier reuse", "bar_reuse", 1, 64, "barrier 1: arrived at"},
    {"barrier reuse", "bar_reuse_reduce", 1, 64, "barrier 3: a reduction is mixed with line"},
    {"deadlock", "deadlock_ids", 1, 64, "deadlock"},
    {"deadlock", "deadlock_missing", 1, 64, "deadlock"},
    {"bounds", "bounds_tail", 1, 64, "out of bounds: writes 4 bytes"},
    {"bounds", "bounds_shared", 1, 64, "out of bounds: writes 4 bytes at offset 256"},
    {"alignment", "align_vector", 1, 32, "misaligned: reads 8 bytes"},
    {"alignment", "align_shared", 1, 64, "misaligned: writes 16 bytes"},
    {"never written", "unwritten_shared", 1, 64, "uninitialised read: byte 128 of shared memory"},
    {"never written", "unwritten_register", 1, 32, "register %r5 is read before it is written"},
    {"proxy fence", "proxy_store", 1, 64, "missing fence.proxy.async: reads|shared memory"},
    {"proxy fence", "load_over_write", 1, 64, "missing fence.proxy.async: writes|shared memory"},
    {"proxy fence", "proxy_wgmma", 1, 128, "missing fence.proxy.async: reads|shared memory"},
    {"proxy fence, late", "proxy_wgmma_late", 1, 128, "warning: late fence.proxy.async: reads"},
    {"proxy fence, late", "proxy_store_late", 1, 64, "warning: late fence.proxy.async: reads"},
    {"asynchronous race", "proxy_store_barrier", 1, 64, "|"},
    {"asynchronous race", "store_reuse", 1, 64, "|in flight"},
    {"unwaited copy", "load_unwaited", 1, 64, "in flight|shared memory"},
    {"unwaited copy", "load_one_waits", 1, 64, "|of shared memory"},
    {"unwaited copy", "copy_wait", 1, 64, "in flight|shared memory"},
    {"unwaited copy", "copy_barrier", 1, 64, "|shared memory"},
    {"mbarrier not fenced", "mbar_init_fence", 1, 64, "warning: missing fence.mbarrier_init"},
    {"mbarrier not fenced", "mbar_init_order", 1, 64, "warning: missing fence.mbarrier_init"},
    {"mbarrier not published", "mbar_init", 1, 64, "|shared memory"},
};
enum { FAULTS = sizeof faults / sizeof *faults, WORDS = 1024, SCHEDULES = 6 };

// One of the two kernels, as the lines of a body.
static char *version(Kit *k, const Fault *f, bool faulty) {
  Source *src;
  char *path = arena_printf(k->arena, "%s/faults/%s.ptx", TESTS_DIR, f->file);
  if (source_read(k->arena, path, &src, k->diag) != ST_OK)
    fail_msg("%s", diag_text(k->diag));
  char *text = arena_strndup(k->arena, src->text, src->len);
  for (char *at = text; at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
    if (!strncmp(at, faulty ? "//- " : "//+ ", 4))
      memset(at, ' ', 4);
  return text;
}

static Status launch(Kit *k, Kernel *kernel, const Fault *f, uint64_t seed) {
  device_sim_opts(k->dev, &(SimOpts){.sanitize = true, .seed = seed, .step_limit = 1000000});
  DevPtr args[2] = {kit_fill(k, "in", 0, WORDS), kit_fill(k, "out", 0, WORDS)};
  Status st = kit_try(k, kernel, f->grid, f->block, args, sizeof args);
  for (int i = 0; i < 2; i++)
    device_free(k->dev, args[i]);
  return st;
}

static bool is_warning(const Fault *f) { return !strncmp(f->expect, "warning: ", 9); }

// A race is told from whichever side came second.
static bool says(const char *what, const char *expect) {
  size_t n = strcspn(expect, "|");
  for (const char *at = what; *at; at++)
    if (!strncmp(at, expect, n))
      return !expect[n] || strstr(at + n, expect + n + 1);
  return false;
}

static bool told(const Diag *d, const Fault *f) {
  bool warning = is_warning(f);
  for (const DiagMsg *m = d->first; m; m = m->next)
    if (m->severity == (warning ? SEV_WARNING : SEV_ERROR) &&
        says(m->what, f->expect + (warning ? 9 : 0)))
      return true;
  return false;
}

// `flag` kernels spin: in the fixed order the consumer may wait for a long turn, never for ever.
static void test_faulty(void **state) {
  Kit *k = *state;
  int bad = 0;
  for (int i = 0; i < FAULTS; i++) {
    const Fault *f = &faults[i];
    Kernel *kernel = kit_body(k, 2, version(k, f, true));
    for (uint64_t seed = 0; seed < SCHEDULES; seed++) {
      Status st = launch(k, kernel, f, seed);
      if (st != (is_warning(f) ? ST_OK : ST_FAILED) || !told(k->diag, f))
        bad++, print_error("%s (%s), schedule %d: status %d\nwanted: %s\ngot:    %s\n", f->file,
                           f->kind, (int)seed, st, f->expect, diag_text(k->diag));
      diag_reset(k->diag);
    }
    kernel_free(kernel);
  }
  assert_int_equal(bad, 0);
}

static void test_sound(void **state) {
  Kit *k = *state;
  int bad = 0;
  for (int i = 0; i < FAULTS; i++) {
    Kernel *kernel = kit_body(k, 2, version(k, &faults[i], false));
    for (uint64_t seed = 0; seed < SCHEDULES; seed++)
      if (launch(k, kernel, &faults[i], seed) != ST_OK || k->diag->first)
        bad++, print_error("false alarm: %s, schedule %d\n%s", faults[i].file, (int)seed,
                           diag_text(k->diag)), diag_reset(k->diag);
    kernel_free(kernel);
  }
  assert_int_equal(bad, 0);
}

// Both parties have their line, block and thread, and a pair of lines is told once.
static void test_both_parties(void **state) {
  Kit *k = *state;
  const Fault f = {"", "raw_neighbour", 1, 64, ""};
  Kernel *kernel = kit_body(k, 2, version(k, &f, true));
  assert_int_equal(launch(k, kernel, &f, 0), ST_FAILED);
  const DiagMsg *m = k->diag->first;
  assert_string_equal(m->what,
                      "data race: writes byte 0 of shared memory, which another thread read: "
                      "st.shared.u32 [%r3], %r0; in block (0,0,0) thread (0,0,0)");
  assert_int_equal(m->next->severity, SEV_NOTE);
  assert_string_equal(m->next->what,
                      "the other party: ld.shared.u32 %r5, [%r4]; in block (0,0,0) thread "
                      "(32,0,0); nothing orders the two: no barrier, no release and acquire");
  assert_int_equal(m->next->line, m->line + 4);
  assert_int_equal(k->diag->errors, 1);
}

int main(void) {
#define T(f) cmocka_unit_test_setup_teardown(f, kit_setup, kit_teardown)
  const struct CMUnitTest tests[] = {T(test_faulty), T(test_sound), T(test_both_parties)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
