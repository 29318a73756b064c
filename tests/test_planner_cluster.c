// Rows of clusters: for equal lengths, and for as many items as run at once.
#include "cu_kit.h"

#include "planner.h"

#define SHAPE "dtype=bf16 d=64 group=4 causal=0 sq=1 sk=1024 work=8"
#define EIGHT "dtype=bf16 d=64 group=8 causal=0 sq=1 sk=1024 work=8"

typedef struct Setup {
  Diag *d;
  Session *s;
  FakeCuda *f;
  Device *dev;
  PlannerTable table;
} Setup;

// A row with clusters before one without and, of different lengths, one with before none.
static Setup make_setup(void) {
  Setup u = {.d = diag_new(), .f = fresh(FAKE)};
  u.s = session_open(NULL, u.d);
  u.f->clusters = 15;
  u.f->driver_version = 13000; // takes the PTX of clusters
  u.dev = opened(FAKE, u.d);
  const DeviceInfo *info = device_info(u.dev);
  const char *form = "%s | %s | 0123456789abcdef | decode_span | %s | %s | 9 us\n", *text = "";
  static const char *const rows[][2] = {{SHAPE, "cluster=8 tile_q=4 stages=5"},
                                        {SHAPE, "stages=4"},
                                        {SHAPE " varlen=1", "cluster=2"},
                                        {EIGHT, "cluster=4 tile_q=4"}};
  for (int i = 0; i < 4; i++)
    text = arena_printf(u.d->arena, "%s%s", text, arena_printf(u.d->arena, form, info->name,
                                                               info->driver, rows[i][0],
                                                               rows[i][1]));
  if (planner_parse(u.d->arena, source_new(u.d->arena, "p.txt", text, strlen(text)), &u.table, u.d))
    fail_msg("%s", diag_text(u.d));
  return u;
}

static void close_setup(Setup *u) {
  device_close(u->dev);
  assert_nothing_left(u->f);
  session_close(u->s);
  diag_free(u->d);
}

static PlannerChoice choose(Setup *u, const char *problem, const char *given, Device *dev) {
  Problem *p;
  Params params = {0};
  PlannerChoice c;
  if (problem_parse(u->d->arena, problem, &p, u->d)) fail_msg("%s", diag_text(u->d));
  if (*given && params_parse(u->d->arena, &params, given, u->d)) fail_msg("%s", diag_text(u->d));
  const PlannerAsk ask = {.template_name = "decode_span", .given = &params, .device = dev};
  if (planner_choose(u->s, u->d->arena, &u->table, &ask, p, device_info(u->dev), &c, u->d))
    fail_msg("%s", diag_text(u->d));
  return c;
}

#define OF "hkv=1,hq=4,sq=1,sk=1500,d=64,dtype=bf16"

// Items are batch x heads x tiles of rows; the bucket holds 8 to 15 of them.
static void a_row_holds_for_as_many_items_as_run_at_once(void **state) {
  (void)state;
  Setup u = make_setup();
  static const struct { int items, at_once; unsigned line; const char *passed; } cases[] = {
      {8, 15, 1, NULL}, {12, 15, 1, NULL}, {15, 15, 1, NULL}, {8, 8, 1, NULL},
      {9, 8, 2, "p.txt:1: 9 clusters of 8 blocks, of which 8 run at once on Fake GPU"},
      {15, 14, 2, "p.txt:1: 15 clusters of 8 blocks, of which 14 run at once on Fake GPU"},
      {8, 0, 2, "p.txt:1: can't be loaded: cuda:0: no cluster of 8 blocks of "
                "decode_span fits this GPU"},
  };
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    u.f->clusters = cases[i].at_once;
    PlannerChoice c = choose(&u, arena_printf(u.d->arena, "b=%d," OF, cases[i].items), "", u.dev);
    if (!c.row || c.row->line != cases[i].line) fail_msg("%zu: %s", i, c.why);
    assert_int_equal(c.npassed, cases[i].passed != NULL);
    if (c.npassed) assert_string_equal(c.passed[0], cases[i].passed);
    assert_int_equal(u.f->asked_cluster, 8);
    assert_int_equal(u.f->asked_threads, 256); // 4 warps and 4 that merge
    assert_int_equal(u.f->modules, 0); // what was loaded to ask is gone
  }
  u.f->clusters = 15; // 8 rows in tiles of 4 are 2 items
  PlannerChoice c = choose(&u, "b=8,hkv=1,hq=8,sq=1,sk=1500,d=64,dtype=bf16", "", u.dev);
  assert_null(c.row);
  assert_string_equal(c.passed[0],
                      "p.txt:4: 16 clusters of 4 blocks, of which 15 run at once on Fake GPU");
  u.f->clusters = 16;
  c = choose(&u, "b=8,hkv=1,hq=8,sq=1,sk=1500,d=64,dtype=bf16", "", u.dev);
  assert_int_equal(c.row->line, 4);
  // Without a device nobody can say.
  assert_int_equal(choose(&u, "b=15," OF, "", NULL).row->line, 1);
  close_setup(&u);
}

// Lengths that the problem lists and those that the device alone knows: one item is the longest.
static void no_cluster_row_holds_for_different_lengths(void **state) {
  (void)state;
  Setup u = make_setup();
  static const char *const asked[][2] = {{"hkv=1,hq=4,sq=1,d=64,dtype=bf16,"
                                          "seqlens_k=1500/9/9/9/9/9/9/9", ""},
                                         {"b=8," OF, "varlen=1"}};
  for (int i = 0; i < 2; i++) {
    PlannerChoice c = choose(&u, asked[i][0], asked[i][1], u.dev);
    assert_string_equal(c.shape, SHAPE " varlen=1"); // not the shape of equal lengths
    assert_null(c.row);
    assert_int_equal(c.npassed, 1);
    assert_string_equal(c.passed[0],
                        "p.txt:3: clusters of 2 blocks wait for the longest of different lengths");
  }
  close_setup(&u);
}

// Its kernels are loaded once: what was asked of them keeps them.
static void the_chosen_operator_is_loaded_once(void **state) {
  (void)state;
  Setup u = make_setup();
  Problem *p;
  PlannerChoice c;
  Operator *op;
  const PlannerAsk ask = {.template_name = "decode_span", .device = u.dev, .op = &op};
  if (problem_parse(u.d->arena, "b=8," OF, &p, u.d)) fail_msg("%s", diag_text(u.d));
  assert_int_equal(planner_choose(u.s, u.d->arena, &u.table, &ask, p, device_info(u.dev), &c, u.d),
                   ST_OK);
  assert_int_equal(u.f->loads, 1);
  assert_int_equal(operator_load(op, u.dev, u.d), ST_OK);
  assert_int_equal(u.f->loads, 1);
  assert_int_equal(kernel_info(op->step[0].kernel)->clusters, 15);
  operator_free(op);
  close_setup(&u);
}

int main(void) {
  const struct CMUnitTest tests[] = {
      cmocka_unit_test(a_row_holds_for_as_many_items_as_run_at_once),
      cmocka_unit_test(no_cluster_row_holds_for_different_lengths),
      cmocka_unit_test(the_chosen_operator_is_loaded_once),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
