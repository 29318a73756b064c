// The planted faults of tests/faults/: every kernel stands there twice in one text.  Lines that
// begin with `//- ` belong to the faulty one only, lines that begin with `//+ ` to the sound one.
// A line that begins with `//! ` has the kernel's directives.
// The faulty one must be reported in the words below, whatever the schedule; the sound one never.
#include <stdio.h>

#include "sim_kit.h"

typedef struct Fault {
  const char *kind, *file;
  uint32_t grid, block;
  const char *expect; // in an error (after "warning: " in a warning), up to the |, and after it
  const char *fields; // that the report carries:
  // L line, B block, T thread, A the byte, offset or barrier, O the other party with its line and
  // thread (o: unless nobody has come there yet), W who waits, each with a line
} Fault;
static const char some_orders[] = "only in some orders"; // the kind that some schedules don't show

static const Fault faults[] = {
    {"read after write", "raw_neighbour", 1, 64, "data race:|shared memory", "LBTAO"},
    {"read after write", "raw_broadcast", 1, 64,
     "data race:|byte 0 of shared memory", "LBTAO"},
    {"write after read", "war_tile", 1, 64, "data race:|shared memory", "LBTAO"},
    {"write after read", "war_named", 1, 64, "data race:|shared memory", "LBTAO"},
    {"write after write", "waw_sum", 1, 64,
     "data race:|byte 0 of shared memory", "LBTAO"},
    {"write after write", "waw_lanes", 1, 32,
     "data race:|byte 0 of shared memory", "LBTAO"},
    {"write after write", "waw_bytes", 1, 64, "data race:|shared memory", "LBTAO"},
    {"lanes of a warp", "warp_exchange", 1, 32, "data race:|shared memory", "LBTAO"},
    {"lanes of a warp", "warp_half", 1, 32, "data race:|shared memory", "LBTAO"},
    {"lanes of a warp", "warp_shuffle", 1, 32, "data race:|shared memory", "LBTAO"},
    {"between blocks", "blocks_write", 4, 32,
     "data race: writes|\"out\", which another thread wrote", "LBTAO"},
    {"between blocks", "blocks_in_place", 4, 32, "data race:|\"in\"", "LBTAO"},
    {"between blocks", "blocks_sum", 4, 32, "data race:|\"out\"", "LBTAO"},
    {"missing release", "last_acq_rel", 5, 64, "data race:|\"out\"", "LBTAO"},
    {"missing release", "last_fence", 5, 64, "data race:|\"out\"", "LBTAO"},
    {"missing release", "last_barrier", 5, 64, "data race:|\"out\"", "LBTAO"},
    {"missing release", "flag_relaxed", 1, 64, "data race:|byte 0 of shared memory", "LBTAO"},
    {"missing acquire", "last_reader_fence", 5, 64, "data race:|\"out\"", "LBTAO"},
    {"missing acquire", "flag_volatile", 1, 64, "data race:|byte 0 of shared memory", "LBTAO"},
    {"scope", "last_scope", 5, 64, "data race:|\"out\"", "LBTAO"},
    {"scope", "last_atomic_scope", 5, 64, "data race: updates|\"in\"", "LBTAO"},
    {"relaxed and fences", "mp_fence", 2, 32, "data race: reads|\"out\"", "LBTAO"},
    {"relaxed and fences", "mp_reader_fence", 2, 32, "data race: reads|\"out\"", "LBTAO"},
    {"relaxed and fences", "mp_fence_scope", 2, 32, "data race: reads|\"out\"", "LBTAO"},
    {"relaxed and fences", "mp_reader_scope", 2, 32, "data race: reads|\"out\"", "LBTAO"},
    {"relaxed and fences", "mp_flag_scope", 2, 32, "data race:|\"in\"", "LBTAO"},
    {"relaxed and fences", "mp_load_scope", 2, 32, "data race:|\"in\"", "LBTAO"},
    {"relaxed and fences", "mp_atomic", 2, 32, "data race: reads|\"out\"", "LBTAO"},
    {"relaxed and fences", "flag_fence", 1, 64, "data race:|byte 0 of shared memory", "LBTAO"},
    {"strong and weak", "flag_weak", 1, 64, "data race:|shared memory", "LBTAO"},
    {"strong and weak", "atomic_plain", 1, 64, "data race:|shared memory", "LBTAO"},
    {"divergent barrier", "bar_divergent", 1, 32, "deadlock", "LBTW"},
    {"divergent barrier", "bar_skipped", 1, 32, "deadlock", "LBTW"},
    {"barrier count", "bar_count", 1, 64, "barrier 1: a count of", "LBTAO"},
    {"barrier count", "bar_count_odd", 1, 64,
     "barrier 1: a count of 48 is not a multiple of 32", "LBTA"},
    {"barrier reuse", "bar_reuse", 1, 64, "barrier 1: arrived at", "LBTAO"},
    {"barrier reuse", "bar_reuse_reduce", 1, 64,
     "barrier 3: a reduction is mixed with line", "LBTAO"},
    {"deadlock", "deadlock_ids", 1, 64, "deadlock", "LBTW"},
    {"deadlock", "deadlock_missing", 1, 64, "deadlock", "LBTW"},
    {"bounds", "bounds_tail", 1, 64, "out of bounds: writes 4 bytes", "LBTA"},
    {"bounds", "bounds_shared", 1, 64, "out of bounds: writes 4 bytes at offset 256", "LBTA"},
    {"bounds", "bounds_local", 1, 64, "out of bounds: writes 4 bytes at offset 128", "LBTA"},
    {"alignment", "align_vector", 1, 32, "misaligned: reads 8 bytes", "LBTA"},
    {"alignment", "align_shared", 1, 64, "misaligned: writes 16 bytes", "LBTA"},
    {"never written", "unwritten_shared", 1, 64,
     "uninitialised read: byte 128 of shared memory", "LBTA"},
    {"never written", "unwritten_local", 1, 64,
     "uninitialised read: byte 128 of local memory", "LBTA"},
    {"never written", "unwritten_register", 1, 32,
     "register %r5 is read before it is written", "LBT"},
    {"proxy fence", "proxy_store", 1, 64,
     "missing fence.proxy.async: reads|shared memory", "LBTAO"},
    {"proxy fence", "load_over_write", 1, 64,
     "missing fence.proxy.async: writes|shared memory", "LBTAO"},
    {"proxy fence", "proxy_wgmma", 1, 128,
     "missing fence.proxy.async: reads|shared memory", "LBTAO"},
    {"proxy fence, late", "proxy_wgmma_late", 1, 128,
     "warning: late fence.proxy.async: reads", "LBTAO"},
    {"proxy fence, late", "proxy_store_late", 1, 64,
     "warning: late fence.proxy.async: reads", "LBTAO"},
    {"asynchronous race", "proxy_store_barrier", 1, 64, "|", "LBTAo"},
    {"asynchronous race", "store_reuse", 1, 64, "|in flight", "LBTAO"},
    {"unwaited copy", "load_unwaited", 1, 64, "in flight|shared memory", "LBTAO"},
    {"unwaited copy", "load_one_waits", 1, 64, "|of shared memory", "LBTAo"},
    {"unwaited copy", "copy_wait", 1, 64, "in flight|shared memory", "LBTAO"},
    {"unwaited copy", "copy_barrier", 1, 64, "|shared memory", "LBTAO"},
    {"sums of wgmma", "wgmma_sum_read", 1, 128, "register %a0 is in flight|writes it", "LBTO"},
    {"sums of wgmma", "wgmma_sum_uncommitted", 1, 128,
     "register %a0 is in flight|writes it", "LBTO"},
    {"registers of wgmma", "wgmma_a_changed", 1, 128, "register %r9 is in flight|reads it", "LBTO"},
    {"registers of wgmma", "wgmma_a_unfenced", 1, 128, "no wgmma.fence since line", "LBTO"},
    {"tiles of wgmma", "wgmma_tile_reuse", 1, 128, "shared memory in flight|wgmma", "LBTAO"},
    {"tiles of wgmma", "wgmma_tile_other", 1, 128, "shared memory in flight|wgmma", "LBTAO"},
    {"mbarrier phases", "mbar_overrun", 1, 64, "a wait for phase 0|in phase 2", "LBTA"},
    {"mbarrier phases", "mbar_arrivals", 1, 64, "3 arrivals at the mbarrier", "LBTA"},
    {"mbarrier bytes", "mbar_bytes_missing", 1, 64, "deadlock", "LBTW"},
    {"mbarrier bytes", "mbar_bytes_many", 1, 64, "deadlock", "LBTW"},
    {"clusters", "peer_write", 2, 32, "data race:|shared memory", "LBTAO"},
    {"clusters", "peer_ended", 2, 32, "that block has ended", "LBT"},
    {"setmaxnreg", "regs_warp_ended", 1, 128, "of the warpgroup ended without executing", "LBT"},
    {"setmaxnreg", "regs_other_place", 1, 128, "the warpgroup execute the setmaxnreg of", "LBTO"},
    {"mbarrier not fenced", "mbar_init_fence", 1, 64,
     "warning: missing fence.mbarrier_init", "LBTAO"},
    {"mbarrier not fenced", "mbar_init_order", 1, 64,
     "warning: missing fence.mbarrier_init", "LBTAO"},
    {"mbarrier not published", "mbar_init", 1, 64, "|shared memory", "LBTAo"},
    {"mbarrier not published", "mbar_init_wait", 1, 64, "|shared memory", "LBTAo"},
    {some_orders, "flag_overwritten", 1, 96, "data race: reads|byte 0 of shared memory", "LBTAO"},
    {some_orders, "order_fast_path", 1, 64, "data race: reads|byte 0 of shared memory", "LBTAO"},
    {some_orders, "order_last_warp", 1, 64, "data race: reads|byte 0 of shared memory", "LBTAO"},
    {some_orders, "order_locks", 1, 64, "the limit of", "LBT"},
};
enum { FAULTS = sizeof faults / sizeof *faults, WORDS = 1024, SCHEDULES = 6, ORDERS = 16 };

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

static Kernel *load(Kit *k, const Fault *f, bool faulty) {
  const char *text = version(k, f, faulty), *at = strstr(text, "//! ");
  const char *directives = at ? arena_strndup(k->arena, at + 4, strcspn(at + 4, "\n")) : "";
  return kit_body_of(k, 2, directives, text);
}

static Status launch(Kit *k, Kernel *kernel, const Fault *f, uint64_t seed) {
  device_sim_opts(k->dev, &(SimOpts){.sanitize = true, .seed = seed, .step_limit = 300000});
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

static const DiagMsg *told(const Diag *d, const Fault *f) {
  bool warning = is_warning(f);
  for (const DiagMsg *m = d->first; m; m = m->next)
    if (m->severity == (warning ? SEV_WARNING : SEV_ERROR) &&
        says(m->what, f->expect + (warning ? 9 : 0)))
      return m;
  return NULL;
}

static bool has_number(const char *text, const char *word) {
  const char *at = strstr(text, word);
  return at && at[strlen(word)] >= '0' && at[strlen(word)] <= '9';
}

// What a report and its notes carry, in the letters of Fault.fields.
static const char *fields_of(const DiagMsg *m, char out[8]) {
  const char *what = m->what;
  bool place = has_number(what, "byte ") || has_number(what, "offset ") ||
               has_number(what, "barrier ");
  bool party = false, waits = false, all = true;
  for (const DiagMsg *n = m->next; n && n->severity == SEV_NOTE; n = n->next) {
    bool waiter = has_number(n->what, "warp ");
    party |= n->line && strstr(n->what, "the other party") && strstr(n->what, "thread (");
    waits |= waiter;
    all &= !waiter || n->line;
  }
  snprintf(out, 8, "%s%s%s%s%s%s", m->line ? "L" : "", has_number(what, "block (") ? "B" : "",
           has_number(what, "thread (") ? "T" : "", place ? "A" : "", party ? "O" : "",
           waits && all ? "W" : "");
  return out;
}

static bool in_some(const Fault *f) { return f->kind == some_orders; }
static bool has_fields(const DiagMsg *m, const char *want) {
  char got[8], wanted[8];
  bool nobody = strstr(m->what, "never written") || strstr(m->what, "was not initialised");
  snprintf(wanted, sizeof wanted, "%s", want);
  char *either = strchr(wanted, 'o');
  if (either) *either = nobody ? 0 : 'O';
  return !strcmp(fields_of(m, got), wanted);
}

static int schedules_of(const Fault *f) { return in_some(f) ? ORDERS : SCHEDULES; }

// Where only some orders show a fault, one schedule tells it at least, and one is quiet.
static int check_some(const Fault *f, int tell) {
  if (!in_some(f) || (tell > 0 && tell < ORDERS)) return 0;
  print_error("%s: told under %d of %d schedules\n", f->file, tell, ORDERS);
  return 1;
}

static int check_report(const Kit *k, const Fault *f, Status st, uint64_t seed, int *tell) {
  const DiagMsg *m = told(k->diag, f);
  char fields[8];
  *tell += m != NULL;
  if (in_some(f) && st == ST_OK && !k->diag->first) return 0;
  if (st == (is_warning(f) ? ST_OK : ST_FAILED) && m && has_fields(m, f->fields))
    return 0;
  print_error("%s (%s), schedule %d: status %d\nwanted: %s (%s)\ngot:    (%s) %s\n", f->file,
              f->kind, (int)seed, st, f->expect, f->fields, m ? fields_of(m, fields) : "",
              diag_text(k->diag));
  return 1;
}

// `flag` kernels spin: in the fixed order the consumer may wait for a long turn, never for ever.
static void test_faulty(void **state) {
  Kit *k = *state;
  int bad = 0;
  for (int i = 0; i < FAULTS; i++) {
    const Fault *f = &faults[i];
    Kernel *kernel = load(k, f, true);
    int tell = 0;
    for (uint64_t seed = 0; seed < (uint64_t)schedules_of(f); seed++) {
      Status st = launch(k, kernel, f, seed);
      bad += check_report(k, f, st, seed, &tell);
      diag_reset(k->diag);
    }
    bad += check_some(f, tell);
    kernel_free(kernel);
  }
  assert_int_equal(bad, 0);
}

static void test_sound(void **state) {
  Kit *k = *state;
  int bad = 0;
  for (int i = 0; i < FAULTS; i++) {
    Kernel *kernel = load(k, &faults[i], false);
    for (uint64_t seed = 0; seed < (uint64_t)schedules_of(&faults[i]); seed++)
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
  const Fault f = {"", "raw_neighbour", 1, 64, "", ""};
  Kernel *kernel = load(k, &f, true);
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
