#include "ptx_forms.h"

#include <assert.h>
#include <pthread.h>
#include <string.h>

const PtxForm ptx_forms[] = {
#define F(stem, mods, opnds, ptx, sm, pipe, effects, handler)                                      \
  {stem, mods, opnds, effects, ptx, sm, PTX_PIPE_##pipe, #handler, sizeof #handler == 6 &&         \
   #handler[0] == 'L'},
    PTX_FORMS(F)
#undef F
};
enum { NFORMS = sizeof ptx_forms / sizeof *ptx_forms };
const int ptx_nforms = NFORMS;

enum {
  MAX_MODS = 1024,
  MOD_SLOTS = 4096, // hash table, open addressing
  STEM_SLOTS = 1024,
  MAX_ELEMS = 8192,
  MAX_ALTS = 32768,
  MAX_SPECS = 4096,
  MOD_TEXT = 32 * 1024,
};

// One position of a modifier pattern: one of `n` alternatives.
typedef struct Elem {
  uint16_t first, n; // in alts[]
  uint8_t slot;      // 1..4: the modifier is the type of T, U, V, W
  uint8_t optional;  // an optional group of that many elements starts here; 0: mandatory
} Elem;

typedef struct Compiled {
  uint16_t elem, nelems, spec, nspecs;
  int16_t next; // form of the same stem, -1
} Compiled;

static Elem elems[MAX_ELEMS];
static PtxMod alts[MAX_ALTS];
static PtxSpec specs[MAX_SPECS];
static Compiled compiled[NFORMS];
static PtxModInfo mod_infos[MAX_MODS];
static uint16_t mod_slots[MOD_SLOTS];
static int16_t stem_slots[STEM_SLOTS]; // form + 1
static char mod_text[MOD_TEXT];
static int nelems, nalts, nspecs, nmods = 1, nmod_text;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static uint32_t hash(const char *s, size_t n) {
  uint32_t h = 2166136261u;
  for (size_t i = 0; i < n; i++) h = (h ^ (unsigned char)s[i]) * 16777619u;
  return h ^ h >> 15;
}

// ---- modifiers ---------------------------------------------------------------------------------
static PtxMod mod_lookup(const char *text, size_t len, uint32_t *slot) {
  uint32_t at = hash(text, len) % MOD_SLOTS;
  for (; mod_slots[at]; at = (at + 1) % MOD_SLOTS) {
    const PtxModInfo *m = &mod_infos[mod_slots[at]];
    if (m->len == len && !memcmp(m->text, text, len)) return mod_slots[at];
  }
  *slot = at;
  return 0;
}

static bool text_is(const char *s, size_t len, const char *want) {
  return strlen(want) == len && !memcmp(s, want, len);
}

static PtxType type_named(const char *s, size_t len) {
  for (int t = 1; t < PTX_T_COUNT; t++)
    if (text_is(s, len, ptx_type_text((PtxType)t))) return (PtxType)t;
  return PTX_T_NONE;
}

static PtxSpace space_named(const char *s, size_t len) {
  if (text_is(s, len, "shared::cta")) return PTX_S_SHARED;
  for (int i = PTX_S_GLOBAL; i < PTX_S_COUNT; i++)
    if (text_is(s, len, ptx_space_text((PtxSpace)i))) return (PtxSpace)i;
  return PTX_S_GENERIC;
}

static PtxMod mod_intern(const char *text, size_t len) {
  uint32_t slot;
  PtxMod m = mod_lookup(text, len, &slot);
  if (m) return m;
  assert(nmods < MAX_MODS && nmod_text + (int)len < MOD_TEXT);
  char *copy = mod_text + nmod_text;
  memcpy(copy, text, len);
  nmod_text += (int)len + 1;
  m = (PtxMod)nmods++;
  mod_slots[slot] = m;
  PtxModInfo *info = &mod_infos[m];
  info->text = copy;
  info->len = (uint8_t)len;
  info->type = type_named(text, len);
  info->space = space_named(text, len);
  bool digit = len == 2 && text[1] >= '1' && text[1] <= '8';
  if (digit && text[0] == 'v') info->vec = (uint8_t)(text[1] - '0');
  if (digit && text[0] == 'x') info->x = (uint8_t)(text[1] - '0');
  return m;
}

// "m64nNk16" stands for every N the instruction could have: multiples of 8 up to 256.
static int add_shapes(const char *text, size_t len) {
  int n = 0;
  for (int shape_n = 8; shape_n <= 256; shape_n += 8) {
    char name[16] = "m64n";
    size_t at = 4;
    if (shape_n >= 100) name[at++] = (char)('0' + shape_n / 100);
    if (shape_n >= 10) name[at++] = (char)('0' + shape_n / 10 % 10);
    name[at++] = (char)('0' + shape_n % 10);
    memcpy(name + at, text + 5, len - 5);
    PtxMod m = mod_intern(name, at + len - 5);
    mod_infos[m].shape_n = (uint16_t)shape_n;
    alts[nalts++] = m;
    n++;
  }
  return n;
}

// ---- compiling the notation --------------------------------------------------------------------
static bool name_char(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_' ||
         c == ':';
}

// .name, as one alternative; returns what follows.
static const char *compile_name(const char *p, Elem *e) {
  assert(*p == '.');
  const char *start = ++p;
  while (name_char(*p)) p++;
  size_t len = (size_t)(p - start);
  assert(len > 0 && nalts + 40 < MAX_ALTS);
  if (len > 5 && !memcmp(start, "m64nNk", 6)) {
    e->n = (uint16_t)(e->n + add_shapes(start, len));
  } else {
    alts[nalts++] = mod_intern(start, len);
    e->n++;
  }
  return p;
}

static const char *compile_elem(const char *p, int slot) {
  assert(nelems < MAX_ELEMS);
  Elem *e = &elems[nelems++];
  *e = (Elem){.first = (uint16_t)nalts, .slot = (uint8_t)slot};
  if (*p != '(') return compile_name(p, e);
  do p = compile_name(p + 1, e);
  while (*p == '|');
  assert(*p == ')');
  return p + 1;
}

static void compile_mods(const char *p, Compiled *c) {
  int group = -1, slot = 0; // first element of the open optional group; pending T U V W
  c->elem = (uint16_t)nelems;
  for (; *p;) {
    if (*p == ' ') {
      p++;
    } else if (*p == '{') {
      group = nelems;
      p++;
    } else if (*p == '}') {
      assert(group >= 0 && nelems > group);
      elems[group].optional = (uint8_t)(nelems - group);
      group = -1;
      p++;
    } else if (*p >= 'T' && *p <= 'W') {
      slot = *p++ - 'T' + 1;
    } else {
      p = compile_elem(p, slot);
      slot = 0;
    }
  }
  assert(group < 0);
  c->nelems = (uint16_t)(nelems - c->elem);
}

static const char *compile_marks(const char *p, PtxSpec *s) {
  for (; *p && *p != ' '; p++) {
    switch (*p) {
    case '*': s->by_vec = true; break;
    case '#': s->by_x = true; break;
    case '?': s->optional = true; break;
    case '|': s->must_pair = s->pair, s->pair = true; break;
    case '!': s->negatable = true; break;
    case '_': s->sink = true; break;
    case '@': s->special = true; break;
    case '~': s->bare = true; break;
    case '{':
      p++;
      s->count = *p == 'n' ? -1 : (int8_t)(*p - '0');
      p++;
      assert(*p == '}');
      break;
    default: assert(!"unknown mark in an operand pattern");
    }
  }
  return p;
}

static const char *compile_type(const char *p, PtxSpec *s) {
  if (*p == '>') s->wider = true, p++;
  if (*p == '2' && p[1] == 'T') s->twice = true, p++;
  if (*p >= 'T' && *p <= 'W') {
    s->slot = (uint8_t)(*p - 'T' + 1);
    return p + 1;
  }
  const char *start = p;
  while ((*p >= 'a' && *p <= 'z') || (*p >= '0' && *p <= '9')) p++;
  s->type = type_named(start, (size_t)(p - start));
  assert(s->type != PTX_T_NONE);
  return p;
}

static const char *compile_spec(const char *p, PtxSpec *s) {
  size_t len = strcspn(p, " ");
  s->reads = true;
  s->name = p[0];
  if (*p == '[') {
    s->kind = PTX_SPEC_ADDR;
    s->name = p[1];
    assert(p[2] == ']');
    return compile_marks(p + 3, s);
  }
  if (text_is(p, len, "L")) return s->kind = PTX_SPEC_LABEL, p + len;
  if (text_is(p, len, "FN")) return s->kind = PTX_SPEC_CALL, p + len;
  if (text_is(p, len, "TMAP")) return s->kind = PTX_SPEC_TMAP, p + len;
  if (text_is(p, len, "SYM")) return s->kind = PTX_SPEC_TABLE, p + len;
  assert(p[1] == ':');
  s->dest = *p == 'd' || *p == 'D';
  s->reads = *p != 'd';
  s->imm_only = *p == 'i';
  s->reg_only = *p == 'r';
  return compile_marks(compile_type(p + 2, s), s);
}

static void compile_opnds(const char *p, Compiled *c) {
  c->spec = (uint16_t)nspecs;
  while (*p) {
    if (*p == ' ') {
      p++;
      continue;
    }
    assert(nspecs < MAX_SPECS);
    p = compile_spec(p, &specs[nspecs++]);
  }
  c->nspecs = (uint16_t)(nspecs - c->spec);
  assert(c->nspecs <= PTX_MAX_OPERANDS);
}

static uint32_t stem_slot(const char *stem, size_t len) {
  uint32_t at = hash(stem, len) % STEM_SLOTS;
  while (stem_slots[at] && !text_is(stem, len, ptx_forms[stem_slots[at] - 1].stem))
    at = (at + 1) % STEM_SLOTS;
  return at;
}

static void compile_all(void) {
  int16_t last[STEM_SLOTS];
  for (int f = 0; f < NFORMS; f++) {
    Compiled *c = &compiled[f];
    compile_mods(ptx_forms[f].mods, c);
    compile_opnds(ptx_forms[f].opnds, c);
    c->next = -1;
    uint32_t at = stem_slot(ptx_forms[f].stem, strlen(ptx_forms[f].stem));
    if (stem_slots[at]) compiled[last[at]].next = (int16_t)f;
    else stem_slots[at] = (int16_t)(f + 1);
    last[at] = (int16_t)f;
  }
}

static const struct {
  const char *stem, *mod;
  int ptx, sm;
} minima[] = {
#define M(stem, mod, ptx, sm) {stem, mod, ptx, sm},
    PTX_MOD_MINIMA(M)
#undef M
};
enum { NMINIMA = sizeof minima / sizeof *minima };

static void mark_minima(void) {
  for (int i = 0; i < NMINIMA; i++)
    mod_infos[mod_intern(minima[i].mod, strlen(minima[i].mod))].late = true;
}

// Operands that modifiers bring along: the cache policy, the multicast mask, setp's predicate.
static void mark_bringers(void) {
  static const struct { const char *mod; char name;
  } bringers[] = {{"L2::cache_hint", 'h'},
                  {"multicast::cluster", 'x'},
                  {"and", 'q'},
                  {"or", 'q'},
                  {"xor", 'q'}};
  for (size_t i = 0; i < sizeof bringers / sizeof *bringers; i++)
    mod_infos[mod_intern(bringers[i].mod, strlen(bringers[i].mod))].brings = bringers[i].name;
}

static void compile_table(void) {
  compile_all();
  mark_bringers();
  mark_minima();
}

static void ready(void) { pthread_once(&once, compile_table); }

// ---- looking up --------------------------------------------------------------------------------
PtxMod ptx_mod_find(const char *text, size_t len) {
  uint32_t slot;
  ready();
  return mod_lookup(text, len, &slot);
}

const PtxModInfo *ptx_mod_info(PtxMod m) {
  ready();
  assert(m > 0 && m < nmods);
  return &mod_infos[m];
}

const char *ptx_mod_text(PtxMod m) { return ptx_mod_info(m)->text; }

bool ptx_inst_has(const PtxInst *in, const char *mod) {
  PtxMod m = ptx_mod_find(mod, strlen(mod));
  for (int i = 0; m && i < in->nmods; i++)
    if (in->mods[i] == m) return true;
  return false;
}

const PtxSpec *ptx_form_specs(int form, int *n) {
  ready();
  *n = compiled[form].nspecs;
  return &specs[compiled[form].spec];
}

int ptx_stem_first(const char *stem, size_t len) {
  ready();
  return stem_slots[stem_slot(stem, len)] - 1;
}

int ptx_form_next(int form) { return compiled[form].next; }

static PtxType twice(PtxType t) {
  switch (t) {
  case PTX_T_U16: return PTX_T_U32;
  case PTX_T_S16: return PTX_T_S32;
  case PTX_T_U32: return PTX_T_U64;
  case PTX_T_S32: return PTX_T_S64;
  default: return t;
  }
}

PtxType ptx_spec_type(const PtxSpec *s, const PtxInst *in) {
  if (!s->slot) return (PtxType)s->type;
  PtxType t = (PtxType)in->type[s->slot - 1];
  return s->twice ? twice(t) : t;
}

// ---- matching ----------------------------------------------------------------------------------
typedef struct Match {
  const Elem *elem;
  int nelems;
  const PtxMod *mods;
  int nmods;
  uint8_t *type; // may be NULL
  int furthest;  // most modifiers taken on any way
} Match;

static bool elem_takes(const Elem *e, PtxMod m) {
  for (int i = 0; i < e->n; i++)
    if (alts[e->first + i] == m) return true;
  return false;
}

// Elements [e, ..) against modifiers [m, ..); elements below `inside` belong to a group that has
// been entered and are mandatory.
static bool match_from(Match *s, int e, int m, int inside) {
  if (m > s->furthest) s->furthest = m;
  if (e == s->nelems) return m == s->nmods;
  const Elem *el = &s->elem[e];
  bool optional = el->optional && e >= inside;
  if (m < s->nmods && elem_takes(el, s->mods[m])) {
    if (match_from(s, e + 1, m + 1, optional ? e + el->optional : inside)) {
      if (s->type && el->slot) s->type[el->slot - 1] = mod_infos[s->mods[m]].type;
      return true;
    }
  }
  return optional && match_from(s, e + el->optional, m, inside);
}

bool ptx_form_takes(int form, const PtxMod *mods, int n, uint8_t type[4]) {
  const Compiled *c = &compiled[form];
  Match s = {&elems[c->elem], c->nelems, mods, n, type, 0};
  memset(type, 0, 4);
  return match_from(&s, 0, 0, 0);
}

int ptx_form_progress(int form, const PtxMod *mods, int n) {
  const Compiled *c = &compiled[form];
  Match s = {&elems[c->elem], c->nelems, mods, n, NULL, 0};
  match_from(&s, 0, 0, 0);
  return s.furthest;
}

static int inst_x(const PtxInst *in) {
  for (int i = 0; i < in->nmods; i++)
    if (mod_infos[in->mods[i]].x) return mod_infos[in->mods[i]].x;
  return 0;
}

static bool vector_fits(const PtxSpec *s, const PtxInst *in) {
  return s->special || s->count || s->by_vec || (s->by_x && inst_x(in));
}

static bool scalar_fits(const PtxSpec *s, const PtxInst *in) {
  if (s->count) return s->bare;
  if (s->by_vec) return in->vec <= 1;
  if (s->by_x) return inst_x(in) <= 1;
  return true;
}

static bool value_fits(const PtxSpec *s, const PtxInst *in, const PtxOperand *o) {
  bool pred = ptx_spec_type(s, in) == PTX_T_PRED;
  switch (o->kind) {
  case PTX_O_REG:
    if (s->must_pair) return false;
    if (s->imm_only || (o->negate && !s->negatable)) return false;
    return scalar_fits(s, in) && (pred == (o->type == PTX_T_PRED) || o->type == PTX_T_NONE);
  case PTX_O_INT: return !s->dest && !s->reg_only && scalar_fits(s, in);
  case PTX_O_FLOAT: return !s->dest && !s->reg_only && !s->imm_only && !pred && scalar_fits(s, in);
  case PTX_O_SREG: return s->special && !s->dest;
  case PTX_O_SYM: case PTX_O_FUNC: return s->special && !s->dest && !pred;
  case PTX_O_VEC: return vector_fits(s, in) && !s->imm_only;
  case PTX_O_PAIR: return s->pair;
  case PTX_O_SINK: return s->sink;
  default: return false;
  }
}

static bool spec_fits(const PtxSpec *s, const PtxInst *in, const PtxOperand *o) {
  switch (s->kind) {
  case PTX_SPEC_VALUE: return value_fits(s, in, o);
  case PTX_SPEC_ADDR: return o->kind == PTX_O_ADDR;
  case PTX_SPEC_LABEL: return o->kind == PTX_O_LABEL;
  case PTX_SPEC_TMAP: return o->kind == PTX_O_TMAP;
  case PTX_SPEC_TABLE: return o->kind == PTX_O_TABLE;
  default: return true;
  }
}

enum { MUST_NOT, MUST, MAY };

// Some optional operands stand there if and only if a modifier does.
static int wanted(const PtxSpec *s, const PtxInst *in) {
  if (s->name != 'h' && s->name != 'x' && s->name != 'q') return MAY;
  for (int i = 0; i < in->nmods; i++)
    if (mod_infos[in->mods[i]].brings == s->name) return MUST;
  return MUST_NOT;
}

static bool fits_from(const Compiled *c, int s, const PtxInst *in, const PtxOperand *o, int at,
                      int n, bool prefix, uint8_t *slot) {
  // Mandatory operands leave no choice.
  for (; at < n && s < c->nspecs && !specs[c->spec + s].optional; at++, s++) {
    if (!spec_fits(&specs[c->spec + s], in, &o[at])) return false;
    slot[at] = (uint8_t)s;
  }
  if (at == n && prefix) return true;
  if (s == c->nspecs) return at == n;
  const PtxSpec *spec = &specs[c->spec + s];
  int want = spec->optional ? wanted(spec, in) : MUST;
  if (at < n && want != MUST_NOT && spec_fits(spec, in, &o[at]) &&
      fits_from(c, s + 1, in, o, at + 1, n, prefix, slot)) {
    slot[at] = (uint8_t)s;
    return true;
  }
  return want != MUST && fits_from(c, s + 1, in, o, at, n, prefix, slot);
}

bool ptx_form_fits(int form, const PtxInst *in, const PtxOperand *opnds, int n, uint8_t *slot) {
  const Compiled *c = &compiled[form];
  if (c->nspecs == 1 && specs[c->spec].kind == PTX_SPEC_CALL) return true;
  return fits_from(c, 0, in, opnds, 0, n, false, slot);
}

int ptx_form_fitting(int form, const PtxInst *in, const PtxOperand *opnds, int n) {
  uint8_t slot[PTX_MAX_OPERANDS];
  while (n > 0 && !fits_from(&compiled[form], 0, in, opnds, 0, n, true, slot)) n--;
  return n;
}

// ---- messages and minima -----------------------------------------------------------------------
char *ptx_form_text(Arena *a, int form) {
  const PtxForm *f = &ptx_forms[form];
  char *text = arena_alloc(a, strlen(f->stem) + strlen(f->mods) + strlen(f->opnds) * 3 + 8);
  char *p = text + strlen(f->stem);
  memcpy(text, f->stem, strlen(f->stem));
  for (const char *s = f->mods; *s; s++) {
    bool slot = *s >= 'T' && *s <= 'W' && (s[1] == '.' || s[1] == '(');
    if (*s != ' ' && !slot) *p++ = *s;
  }
  const Compiled *c = &compiled[form];
  for (int i = 0; i < c->nspecs; i++) {
    const PtxSpec *s = &specs[c->spec + i];
    *p++ = i ? ',' : ' ';
    if (i) *p++ = ' ';
    if (s->kind == PTX_SPEC_ADDR) *p++ = '[';
    if (s->count || s->by_x) *p++ = '{';
    *p++ = s->name;
    if (s->count || s->by_x) *p++ = '}';
    if (s->kind == PTX_SPEC_ADDR) *p++ = ']';
    if (s->optional) *p++ = '?';
  }
  *p = 0;
  return text;
}

static bool later_target(int sm, int than) { return (sm & 0xfff) > (than & 0xfff); }

void ptx_inst_minimum(const PtxInst *in, int *ptx, int *sm) {
  const PtxForm *f = ptx_inst_form(in);
  *ptx = f->ptx;
  *sm = f->sm;
  for (int k = 0; k < in->nmods; k++) {
    const PtxModInfo *mod = &mod_infos[in->mods[k]];
    for (int i = 0; mod->late && i < NMINIMA; i++) {
      if (strcmp(minima[i].mod, mod->text)) continue;
      if (*minima[i].stem != '*' && strcmp(minima[i].stem, f->stem)) continue;
      if (minima[i].ptx > *ptx) *ptx = minima[i].ptx;
      if (later_target(minima[i].sm, *sm)) *sm = minima[i].sm;
    }
  }
  // Loads and stores of 32 bytes by one thread (ISA 9.7.9.8).
  bool wide = in->vec > 2 && in->vec * ptx_type_bits((PtxType)in->type[0]) > 128;
  if (wide && (f->stem[0] == 'l' || f->stem[0] == 's')) {
    if (*ptx < 88) *ptx = 88;
    if (later_target(100, *sm)) *sm = 100;
  }
}

bool ptx_inst_allowed(const PtxInst *in, int version, int sm, char suffix) {
  int ptx, need;
  ptx_inst_minimum(in, &ptx, &need);
  if (version >= ptx && ptx_sm_satisfies(sm, suffix, need)) return true;
  // Another row may allow the same instruction from another version on for another target.
  PtxInst other = *in;
  uint8_t slot[PTX_MAX_OPERANDS];
  for (int f = ptx_form_next(in->form); f >= 0; f = ptx_form_next(f)) {
    other.form = (uint16_t)f;
    if (!ptx_form_takes(f, in->mods, in->nmods, other.type) ||
        !ptx_form_fits(f, &other, in->opnds, in->nopnds, slot))
      continue;
    ptx_inst_minimum(&other, &ptx, &need);
    if (version >= ptx && ptx_sm_satisfies(sm, suffix, need)) return true;
  }
  return false;
}

bool ptx_sm_satisfies(int sm, char suffix, int need) {
  int chip = need & 0xfff;
  if (need & PTX_SM_ARCH) return suffix && sm == chip;
  if (need & PTX_SM_ARCH_UP) return suffix && sm >= chip;
  return sm >= chip;
}
