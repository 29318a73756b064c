// Every instruction that the table's rows describe: the lane functions exist, their operand widths
// are those of the registers, and every host instruction set gives the same bits as the baseline,
// with the destination apart from the sources and on top of one.
#include <stdlib.h>

#include "lanes_util.h"

enum { MAX_TEXTS = 20000, MAX_TEXT = 160, ROUNDS = 6 };

typedef struct Texts {
  char (*v)[MAX_TEXT]; // "cvt.rn.f16.f32|f16 f32": modifiers, then the types chosen
  int n;
} Texts;

// Appends to `out` every spelling of the pattern at `p`, behind what `so_far` holds.  `types` are
// those of T U V W, four names of eight characters.
static void expand(const char *p, const char *so_far, char types[4][8], Texts *out);

static void with_modifier(const char *m, size_t len, const char *rest, const char *so_far,
                          int slot, char types[4][8], Texts *out) {
  char text[MAX_TEXT], mine[4][8];
  snprintf(text, sizeof text, "%s%.*s", so_far, (int)len, m);
  memcpy(mine, types, sizeof mine);
  if (slot >= 0) snprintf(mine[slot], sizeof mine[slot], "%.*s", (int)len - 1, m + 1);
  expand(rest, text, mine, out);
}

static const char *closing(const char *p, char open, char close) {
  int depth = 0;
  for (;; p++) {
    if (*p == open) depth++;
    if (*p == close && --depth == 0) return p;
  }
}

static void expand(const char *p, const char *so_far, char types[4][8], Texts *out) {
  while (*p == ' ') p++;
  if (!*p) {
    assert_true(out->n < MAX_TEXTS);
    snprintf(out->v[out->n++], MAX_TEXT, "%s|%s|%s", so_far, types[0], types[1]);
    return;
  }
  int slot = -1;
  if (strchr("TUVW", *p)) {
    slot = (int)(strchr("TUVW", *p) - "TUVW");
    for (p++; *p == ' ';) p++;
  }
  if (*p == '{') {
    const char *end = closing(p, '{', '}');
    expand(end + 1, so_far, types, out);
    char inner[1024];
    snprintf(inner, sizeof inner, "%.*s%s", (int)(end - p - 1), p + 1, end + 1);
    expand(inner, so_far, types, out);
  } else if (*p == '(') {
    const char *end = strchr(p, ')');
    for (const char *m = p + 1; m < end;) {
      size_t len = strcspn(m, "|)");
      with_modifier(m, len, end + 1, so_far, slot, types, out);
      m += len + 1;
    }
  } else {
    size_t len = 1 + strcspn(p + 1, ".{( TUVW|");
    with_modifier(p, len, p + len, so_far, slot, types, out);
  }
}

static int bits_named(const char *name) {
  for (int t = 1; t < PTX_T_COUNT; t++)
    if (!strcmp(ptx_type_text((PtxType)t), name)) return ptx_type_bits((PtxType)t);
  fail_msg("no type named %s", name);
  return 0;
}

// One operand of a row ("d:T", "c:pred!?", "a:>U") as text; "" to leave it out.
static void operand(const char *spec, int index, char types[2][8], bool has_bool, bool wide,
                    char *out, size_t cap) {
  char name[16];
  const char *t = strchr(spec, ':') + 1;
  bool wider = *t == '>', twice = *t == '2';
  if (wider || twice) t++;
  snprintf(name, sizeof name, "%.*s", (int)strcspn(t, "|_!?@*# "), t);
  if (!strcmp(name, "T")) snprintf(name, sizeof name, "%s", types[0]);
  if (!strcmp(name, "U")) snprintf(name, sizeof name, "%s", types[1]);
  *out = 0;
  if (strchr(spec, '?') && !has_bool) return;
  int bits = bits_named(name) << twice;
  if (wider && wide) bits = bits < 32 ? 32 : 64;
  const char *reg = bits == 1 ? "p" : bits <= 16 ? "h" : bits == 32 ? "r" : bits == 64 ? "d" : "q";
  if (spec[0] == 'i') snprintf(out, cap, "%s0xE8", index ? "," : "");
  else snprintf(out, cap, "%s%%%s%d", index ? "," : "", reg, index);
}

static void instruction(const PtxForm *f, const char *text, bool wide, char *out, size_t cap) {
  char types[2][8], mods[MAX_TEXT], operand_text[32], spec[32];
  const char *bar = strchr(text, '|');
  snprintf(mods, sizeof mods, "%.*s", (int)(bar - text), text);
  const char *second = strchr(bar + 1, '|');
  snprintf(types[0], 8, "%.*s", (int)(second - bar - 1), bar + 1);
  snprintf(types[1], 8, "%s", second + 1);
  bool has_bool = strstr(mods, ".and") || strstr(mods, ".or") || strstr(mods, ".xor.");
  size_t at = (size_t)snprintf(out, cap, "%s%s ", f->stem, mods);
  int index = 0;
  for (const char *p = f->opnds; *p; index++) {
    size_t len = strcspn(p, " ");
    snprintf(spec, sizeof spec, "%.*s", (int)len, p);
    operand(spec, index, types, has_bool, wide, operand_text, sizeof operand_text);
    at += (size_t)snprintf(out + at, cap - at, "%s", operand_text);
    p += len;
    while (*p == ' ') p++;
  }
  snprintf(out + at, cap - at, ";\n");
}

static uint64_t next_random(uint64_t *s) { // splitmix64
  uint64_t z = (*s += 0x9E3779B97F4A7C15u);
  z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9u;
  z = (z ^ z >> 27) * 0x94D049BB133111EBu;
  return z ^ z >> 31;
}

// Half the operands are values with edges: zeros, subnormals, infinities, NaNs, extremes, halves.
static uint64_t interesting(uint64_t *seed, int bits) {
  static const uint64_t s64[] = {0, 1, 1ull << 63, 0x7FF0000000000000, 0xFFF0000000000000,
                                 0x7FF8000000000001, 0x3FF0000000000000, 0xBFE0000000000000,
                                 ~0ull, 0x7FFFFFFFFFFFFFFF, 0x000FFFFFFFFFFFFF, 64};
  static const uint32_t s32[] = {0, 1, 0x80000000, 0x80000001, 0x7F800000, 0xFF800000, 0x7F800001,
                                 0xFFC00000, 0x3F800000, 0xBF000000, 0x7F7FFFFF, 0x00800000,
                                 0x007FFFFF, 0x4B800001, 0xFFFFFFFF, 32, 31, 0x7E800001,
                                 0x3C007C00, 0x80010001, 0xFC007FFF, 0x7F803F80};
  static const uint16_t s16[] = {0, 1, 0x8000, 0x8001, 0x7C00, 0xFC00, 0x7C01, 0x3C00, 0xBC00,
                                 0x7BFF, 0x0400, 0x03FF, 0x7F80, 0xFF80, 0x7F7F, 0xFFFF, 0x3F80};
  uint64_t r = next_random(seed), pick = next_random(seed);
  if (pick & 1) return bits == 64 ? r : bits == 32 ? (uint32_t)r : (uint16_t)r;
  if (bits == 64) return s64[(pick >> 8) % (sizeof s64 / sizeof *s64)];
  if (bits == 32) return s32[(pick >> 8) % (sizeof s32 / sizeof *s32)];
  return s16[(pick >> 8) % (sizeof s16 / sizeof *s16)];
}

static int operand_bits(const PtxFunc *f, const PtxOperand *o) {
  return o->kind == PTX_O_REG ? ptx_type_bits(f->regs[o->reg].type) : 0;
}

typedef struct Run {
  const LaneIsa *isas[NLANE_SETS];
  int nisas;
  uint64_t seed;
  int accepted, refused;
} Run;

static void same_bits(const Run *r, const LaneOp *ops, const Operand *src, uint64_t more,
                      const char *text) {
  Operand want, got, alias[4];
  lanes_call(&ops[0], &want, src, ops[0].imm | more);
  for (int k = 0; k < r->nisas; k++) {
    for (int over = 0; over < 2; over++) { // over: the destination is also source a
      memcpy(alias, src, sizeof alias);
      Operand *d = over && ops[k].width[0] == ops[k].width[1] ? &alias[0] : &got;
      lanes_call(&ops[k], d, alias, ops[k].imm | more);
      for (int lane = 0; lane < 32; lane++) {
        uint64_t w = lane_get(&want, ops[0].width[0], lane), g = lane_get(d, ops[0].width[0], lane);
        if (w == g) continue;
        fail_msg("%s: %s lane %d (%llx %llx %llx): %llx, baseline %llx%s", r->isas[k]->name, text,
                 lane, (unsigned long long)lane_get(&src[0], ops[0].width[1], lane),
                 (unsigned long long)lane_get(&src[1], ops[0].width[2], lane),
                 (unsigned long long)lane_get(&src[2], ops[0].width[3], lane),
                 (unsigned long long)g, (unsigned long long)w, over ? ", in place" : "");
      }
    }
  }
}

static void one_instruction(Run *r, const PtxFunc *f, const PtxInst *in, const char *text) {
  LaneOp ops[NLANE_SETS];
  bool found = r->isas[0]->find(in, &ops[0]);
  for (int k = 1; k < r->nisas; k++)
    if (r->isas[k]->find(in, &ops[k]) != found) fail_msg("%s: found by some sets only", text);
  if (!found) {
    // Stochastic rounding and 128-bit moves; comparisons that PTX lacks for their type.
    bool known = strstr(text, "cvt.rs.") || strstr(text, "b128") || !strncmp(text, "set", 3) ||
                 (!strncmp(text, "slct.ftz", 8) && strstr(text, ".s32 "));
    if (!known) fail_msg("%s: no lane function", text);
    r->refused++;
    return;
  }
  r->accepted++;
  int bits[4] = {0};
  for (int i = 0; i < in->nopnds && i < 5; i++) {
    int b = operand_bits(f, &in->opnds[i]);
    int width = b == 0 ? 0 : b == 1 ? 1 : b <= 32 ? 4 : 8;
    if (ops[0].width[i] != width)
      fail_msg("%s: operand %d: width %d, register %d bits", text, i, ops[0].width[i], b);
    if (i > 0) bits[i - 1] = b;
  }
  for (int round = 0; round < ROUNDS; round++) {
    Operand src[4];
    memset(src, 0, sizeof src);
    for (int k = 0; k < 4; k++)
      for (int lane = 0; lane < 32; lane++)
        lane_put(&src[k], ops[0].width[k + 1], lane, interesting(&r->seed, bits[k]));
    same_bits(r, ops, src, 0, text);
    if (!strncmp(text, "setp", 4)) same_bits(r, ops, src, LANE_SECOND, text);
  }
}

static void one_form(Run *r, const PtxForm *form, Texts *texts) {
  char types[4][8] = {{0}}, line[MAX_TEXT];
  texts->n = 0;
  expand(form->mods, "", types, texts);
  bool widens = strchr(form->opnds, '>') != NULL;
  Arena *a = arena_new();
  size_t cap = (size_t)texts->n * 2 * MAX_TEXT + 1, at = 0;
  char *body = arena_alloc(a, cap);
  for (int i = 0; i < texts->n; i++)
    for (int wide = 0; wide <= widens; wide++) {
      instruction(form, texts->v[i], wide, line, sizeof line);
      at += (size_t)snprintf(body + at, cap - at, "%s", line);
    }
  const PtxFunc *f;
  const PtxInst *insts = lanes_parse(a, body, &f);
  if (!insts) fail_msg("%s%s does not parse", form->stem, form->mods);
  const char *p = body;
  for (int i = 0; i < f->ninsts - 1; i++) {
    snprintf(line, sizeof line, "%.*s", (int)strcspn(p, "\n"), p);
    p = strchr(p, '\n') + 1;
    one_instruction(r, f, &insts[i], line);
  }
  arena_free(a);
}

static void every_form(void **state) {
  (void)state;
  Run r = {.seed = 1};
  for (int s = 0; s < NLANE_SETS; s++) {
    const LaneIsa *isa = lane_isa(lane_sets[s]);
    if (isa) r.isas[r.nisas++] = isa;
  }
  assert_true(r.nisas >= 1);
  Texts texts = {malloc(sizeof(char[MAX_TEXTS][MAX_TEXT])), 0};
  assert_non_null(texts.v);
  for (int i = 0; i < ptx_nforms; i++) {
    const char *h = ptx_forms[i].handler;
    bool lanes = !strcmp(h, "alu") || !strcmp(h, "setp") || !strcmp(h, "cvt") ||
                 !strcmp(h, "mov") ||
                 (!strcmp(h, "lop3") && !strchr(ptx_forms[i].opnds, '|')); // test_ops has the other
    if (lanes) one_form(&r, &ptx_forms[i], &texts);
  }
  free(texts.v);
  print_message("%d spellings on %d instruction sets; %d that PTX lacks\n", r.accepted, r.nisas,
                r.refused);
  assert_true(r.accepted > 5000);
}

int main(void) {
  const struct CMUnitTest tests[] = {cmocka_unit_test(every_form)};
  return cmocka_run_group_tests(tests, NULL, NULL);
}
