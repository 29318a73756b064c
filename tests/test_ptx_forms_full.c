// The opcode-form table against ptxas: for every row, its variants (each alternative and each
// option once) are made from the row itself.  Our parser and checker must take them at the least
// .version and .target the table gives; so must ptxas; and ptxas must refuse one version or one
// target less where the row claims to need more than its target does.
//
// Skips with a message when ptxas is absent.  It prints every disagreement.
#include "ptx_forms.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { MAX_ELEMS = 40, MAX_ALTS = 40, LEAST_SM = 75 };

typedef struct Elem {
  const char *alt[MAX_ALTS];
  int n;
  int group; // optional group, -1: mandatory
} Elem;

typedef struct Variant {
  char *text; // the instruction
  int ptx, sm;
  int form;
  int line; // in the file made last
  bool refused;
  bool skip;
  bool twice; // another row has it too, with another minimum
  const char *why; // ptxas's words
} Variant;

typedef struct Test {
  Arena *arena;
  Variant *v; int n, cap;
  char dir[64];
  int failures;
} Test;

// ---- variants of a row --------------------------------------------------------------------------
static const char *read_name(Arena *a, const char *p, Elem *e) {
  const char *from = ++p;
  while (*p && !strchr(".|){} (", *p)) p++;
  e->alt[e->n++] = arena_strndup(a, from, (size_t)(p - from));
  return p;
}

static int read_elems(Arena *a, const char *p, Elem *e) {
  int n = 0, group = -1, groups = 0;
  while (*p) {
    if (*p == '{') group = groups++, p++;
    else if (*p == '}') group = -1, p++;
    else if (*p == '.' || *p == '(') {
      Elem *x = &e[n++];
      *x = (Elem){.group = group};
      if (*p == '.') p = read_name(a, p, x);
      else {
        do p = read_name(a, p + 1, x);
        while (*p == '|');
        p++;
      }
    } else p++;
  }
  return n;
}

// ---- operands -----------------------------------------------------------------------------------
static const char *reg_of(Arena *a, PtxType t, int i) {
  if (t == PTX_T_PRED) return arena_printf(a, "%%p%d", i);
  int bits = ptx_type_bits(t);
  if (bits <= 16) return arena_printf(a, "%%h%d", i);
  if (bits == 32) return arena_printf(a, "%%%c%d", t == PTX_T_F32 ? 'f' : 'r', i);
  if (bits == 64) return arena_printf(a, "%%%c%d", t == PTX_T_F64 ? 'e' : 'd', i);
  return arena_printf(a, "%%q%d", i);
}

static const char *vector_of(Arena *a, PtxType t, int n, int first) {
  const char *s = "{";
  for (int i = 0; i < n; i++)
    s = arena_printf(a, "%s%s%s", s, i ? ", " : "", reg_of(a, t, first + i));
  return arena_printf(a, "%s}", s);
}

static PtxSpace space_at(const PtxInst *in, int n) {
  int seen = 0;
  PtxSpace last = PTX_S_GENERIC;
  for (int i = 0; i < in->nmods; i++) {
    PtxSpace s = (PtxSpace)ptx_mod_info(in->mods[i])->space;
    if (!s) continue;
    last = s;
    if (seen++ == n) return s;
  }
  return seen && !strcmp(ptx_inst_form(in)->stem, "cp") ? PTX_S_SHARED : last;
}

static const char *address_of(PtxSpace s) {
  switch (s) {
  case PTX_S_GLOBAL: return "[g]";
  case PTX_S_SHARED: return "[s]";
  case PTX_S_CLUSTER: return "[%r0]";
  case PTX_S_LOCAL: return "[l]";
  case PTX_S_CONST: return "[c]";
  case PTX_S_PARAM: return "[kp]";
  default: return "[%d0]";
  }
}

static const char *immediate_of(const PtxInst *in) {
  const char *stem = ptx_inst_form(in)->stem;
  if (!strcmp(stem, "setmaxnreg")) return "32";
  if (!strcmp(stem, "cp")) return ptx_inst_has(in, "wait_group") ? "0" : "16";
  if (!strcmp(stem, "discard") || !strcmp(stem, "applypriority") || !strcmp(stem, "fence"))
    return "128";
  return "1";
}

static int dims_of(const PtxInst *in) {
  for (int i = 0; i < in->nmods; i++) {
    const char *t = ptx_mod_text(in->mods[i]);
    if (t[0] >= '1' && t[0] <= '5' && !strcmp(t + 1, "d")) return t[0] - '0';
  }
  return 1;
}

static bool wants_optional(const PtxInst *in, const PtxSpec *s) {
  for (int i = 0; i < in->nmods; i++)
    if (ptx_mod_info(in->mods[i])->brings == s->name) return true;
  return s->name == 'i' && !strcmp(ptx_inst_form(in)->stem, "wgmma");
}

static const char *operand_of(Arena *a, const PtxInst *in, const PtxSpec *s, int at, int *naddr) {
  if (s->kind == PTX_SPEC_ADDR) return address_of(space_at(in, (*naddr)++));
  if (s->kind == PTX_SPEC_TMAP) {
    ++*naddr;
    return arena_printf(a, "[%%d0, %s]", vector_of(a, PTX_T_B32, dims_of(in), 1));
  }
  if (s->kind == PTX_SPEC_LABEL) return "L0";
  PtxType t = ptx_spec_type(s, in);
  if (s->imm_only) return immediate_of(in);
  if (s->must_pair) return arena_printf(a, "%s|%%p1", reg_of(a, t, 1));
  if (s->sink && in->space == PTX_S_CLUSTER) return "_"; // another CTA's mbarrier
  if (s->by_vec && in->vec > 1) return vector_of(a, t, in->vec, at * 8);
  if (s->count > 0) return vector_of(a, t, s->count, at * 8);
  if (s->count < 0) {
    bool half = t == PTX_T_F16;
    return vector_of(a, half ? PTX_T_B32 : t, in->shape_n / (half ? 4 : 2), 8);
  }
  for (int i = 0; s->by_x && i < in->nmods; i++)
    if (ptx_mod_info(in->mods[i])->x) return vector_of(a, t, ptx_mod_info(in->mods[i])->x, at * 8);
  return reg_of(a, t, at + 1 > 3 && t == PTX_T_PRED ? 3 : at + 1);
}

// What the kernel around it does not allow, or what depends on which types meet.
static bool impossible(const char *text) {
  return !strncmp(text, "st.param", 8) || !strncmp(text, "cvt.sat.u8.u8", 13);
}

static void add_variant(Test *t, int form, const Elem *e, const int *pick, int n) {
  Arena *a = t->arena;
  PtxInst in = {.form = (uint16_t)form, .guard = -1, .vec = 1};
  const char *text = ptx_forms[form].stem;
  for (int i = 0; i < n; i++) {
    if (pick[i] < 0) continue;
    const char *mod = e[i].alt[pick[i]];
    if (!strncmp(mod, "m64nNk", 6)) mod = arena_printf(a, "m64n16%s", mod + 5);
    PtxMod m = ptx_mod_find(mod, strlen(mod));
    const PtxModInfo *info = ptx_mod_info(m);
    in.mods[in.nmods++] = m;
    if (info->vec) in.vec = info->vec;
    if (info->space && !in.space) in.space = info->space;
    if (info->shape_n) in.shape_n = info->shape_n;
    text = arena_printf(a, "%s.%s", text, mod);
  }
  if (!ptx_form_takes(form, in.mods, in.nmods, in.type)) {
    printf("FAIL %s: its own row does not take it\n", text);
    t->failures++;
    return;
  }
  int nspecs, naddr = 0, nop = 0;
  const PtxSpec *specs = ptx_form_specs(form, &nspecs);
  for (int i = 0; i < nspecs; i++) {
    if (specs[i].kind == PTX_SPEC_CALL || specs[i].kind == PTX_SPEC_TABLE) return;
    if (specs[i].optional && !wants_optional(&in, &specs[i])) continue;
    text = arena_printf(a, "%s%s%s", text, nop++ ? ", " : " ",
                        operand_of(a, &in, &specs[i], i, &naddr));
  }
  Variant v = {.text = arena_printf(a, "%s;", text), .form = form};
  if (impossible(v.text)) return;
  for (int i = 0; i < t->n; i++)
    if (!strcmp(t->v[i].text, v.text)) {
      t->v[i].twice = true;
      return;
    }
  ptx_inst_minimum(&in, &v.ptx, &v.sm);
  *arena_push(a, t->v, t->n, t->cap) = v;
}

// The plainest variant; then each alternative and each option alone.
static void add_row(Test *t, int form) {
  Elem e[MAX_ELEMS];
  int n = read_elems(t->arena, ptx_forms[form].mods, e), pick[MAX_ELEMS];
  for (int i = -1; i < n; i++)
    for (int alt = 0; alt < (i < 0 ? 1 : e[i].n); alt++) {
      for (int k = 0; k < n; k++) {
        bool in_group = i >= 0 && e[k].group >= 0 && e[k].group == e[i].group;
        pick[k] = e[k].group < 0 || in_group ? 0 : -1;
      }
      if (i >= 0) pick[i] = alt;
      add_variant(t, form, e, pick, n);
    }
}

// ---- kernels ------------------------------------------------------------------------------------
static const int versions[] = {63, 64, 65, 70, 71, 72, 73, 74, 75, 76, 77, 78, 80, 81,
                               82, 83, 84, 85, 86, 87, 88, 90};
enum { NVERSIONS = sizeof versions / sizeof *versions };

typedef struct Target { int sm; char suffix; } Target;
static const Target ladder[] = {{75, 0}, {80, 0}, {86, 0}, {87, 0}, {89, 0}, {90, 0}, {100, 0}};
enum { NLADDER = sizeof ladder / sizeof *ladder };

static Target least_target(int sm) {
  int chip = sm & 0xfff;
  if (sm & (PTX_SM_ARCH | PTX_SM_ARCH_UP)) return (Target){chip, 'a'};
  if (chip == 88) chip = 89;
  return (Target){chip < LEAST_SM ? LEAST_SM : chip, 0};
}

static Target one_less(Target t) {
  if (t.suffix) return (Target){t.sm, 0};
  for (int i = 1; i < NLADDER; i++)
    if (ladder[i].sm >= t.sm) return ladder[i - 1];
  return (Target){0, 0};
}

static int least_version(Target t, int ptx) {
  int own = ptx_target_min_version(t.sm, t.suffix);
  return ptx > own ? ptx : own;
}

static int version_below(int v) {
  for (int i = NVERSIONS - 1; i >= 0; i--)
    if (versions[i] < v) return versions[i];
  return 0;
}

static const char declarations[] =
    ".global .align 32 .b8 g[256];\n.const .align 16 .b8 c[256];\n"
    ".shared .align 128 .b8 s[1024];\n"
    ".visible .entry k(.param .align 16 .b8 kp[64])\n.maxntid 128, 1, 1\n.minnctapersm 1\n{\n"
    ".reg .pred %p<4>;\n.reg .b16 %h<80>;\n.reg .b32 %r<300>;\n.reg .f32 %f<300>;\n"
    ".reg .b64 %d<80>;\n.reg .f64 %e<80>;\n";

// Writes the variants that are not skipped, one a line.
static char *kernel(Test *t, int version, Target target, const Variant *only) {
  Arena *a = arena_new();
  int n = 0;
  char suffix[2] = {target.suffix, 0};
  size_t size = 4096;
  for (int i = 0; i < t->n; i++) size += strlen(t->v[i].text) + 1;
  char *text = malloc(size), *p = text;
  p += sprintf(
      p, ".version %d.%d\n.target sm_%d%s\n.address_size 64\n%s%s.local .align 16 .b8 l[256];\n",
      version / 10, version % 10, target.sm, suffix, declarations,
      version >= 83 ? ".reg .b128 %q<8>;\n" : "");
  int line = 1;
  for (char *q = text; *q; q++) line += *q == '\n';
  for (int i = 0; i < t->n; i++) {
    Variant *v = &t->v[i];
    v->line = 0;
    if (v->skip || (only && v != only)) continue;
    v->line = line++;
    p += sprintf(p, "%s\n", v->text);
    n++;
  }
  strcpy(p, "L0:\nret;\n}\n");
  arena_free(a);
  if (n) return text;
  free(text);
  return NULL;
}

// Marks the lines that ptxas refuses, and goes on without them until it refuses none.
static void run_ptxas(Test *t, int version, Target target) {
  char file[128], command[512], line[1024], suffix[2] = {target.suffix, 0};
  for (int round = 0; round < 200; round++) {
    char *text = kernel(t, version, target, NULL);
    if (!text) return;
    snprintf(file, sizeof file, "%s/k.ptx", t->dir);
    FILE *f = fopen(file, "w");
    fputs(text, f);
    fclose(f);
    free(text);
    snprintf(command, sizeof command, "ptxas -arch=sm_%d%s %s -o /dev/null 2>&1", target.sm, suffix,
             file);
    f = popen(command, "r");
    bool again = false;
    while (fgets(line, sizeof line, f)) {
      const char *at = strstr(line, ", line ");
      if (!at || (!strstr(line, "error") && !strstr(line, "fatal"))) continue;
      int number = atoi(at + 7);
      for (int i = 0; i < t->n; i++) {
        Variant *v = &t->v[i];
        if (v->line != number || v->skip || v->refused) continue;
        v->refused = true;
        v->skip = true;
        v->why = arena_strdup(t->arena, strstr(at, ": ") ? strstr(at, ": ") + 2 : at);
        again = true; // a syntax error, or too many errors, ends ptxas's reading
      }
    }
    pclose(f);
    if (!again) return;
  }
}

// ---- the three questions ------------------------------------------------------------------------
static void reset(Test *t) {
  for (int i = 0; i < t->n; i++) t->v[i].refused = false, t->v[i].skip = true;
}

static void ours_takes(Test *t) {
  for (int i = 0; i < t->n; i++) {
    Variant *v = &t->v[i];
    Target target = least_target(v->sm);
    v->skip = false;
    char *text = kernel(t, least_version(target, v->ptx), target, v);
    Arena *a = arena_new();
    Diag *d = diag_new();
    PtxModule *m = ptx_parse(a, source_new(a, "k.ptx", text, strlen(text)), NULL, d);
    const char *what = m ? "" : diag_text(d);
    if (m) {
      ptx_check(m, d);
      for (DiagMsg *msg = d->first; msg; msg = msg->next)
        if (msg->severity == SEV_ERROR && !strstr(msg->what, "nothing on any path"))
          what = msg->text;
    }
    if (*what) {
      printf("FAIL our checker refuses %s\n%s", v->text, what);
      t->failures++;
    }
    diag_free(d);
    arena_free(a);
    free(text);
  }
}

// Runs ptxas once for each (version, target) that `where` gives; `want` says what must happen.
typedef bool Where(const Variant *v, int *version, Target *target);

static bool at_minimum(const Variant *v, int *version, Target *target) {
  *target = least_target(v->sm);
  *version = least_version(*target, v->ptx);
  return true;
}

static bool version_less(const Variant *v, int *version, Target *target) {
  *target = least_target(v->sm);
  *version = version_below(v->ptx);
  return v->ptx > ptx_target_min_version(target->sm, target->suffix);
}

static bool target_less(const Variant *v, int *version, Target *target) {
  *target = one_less(least_target(v->sm));
  *version = 90;
  return (v->sm & 0xfff) > LEAST_SM && target->sm;
}

static void ask(Test *t, Where *where, bool refuse, const char *what) {
  size_t size = (size_t)t->n;
  bool *done = calloc(size, 1);
  for (int i = 0; i < t->n; i++) {
    int version, other;
    Target target, target2;
    if (done[i] || !where(&t->v[i], &version, &target)) continue;
    reset(t);
    for (int k = i; k < t->n; k++)
      if (where(&t->v[k], &other, &target2) && other == version && target2.sm == target.sm &&
          target2.suffix == target.suffix)
        t->v[k].skip = false, done[k] = true;
    bool *member = calloc(size, 1);
    for (int k = 0; k < t->n; k++) member[k] = !t->v[k].skip;
    run_ptxas(t, version, target);
    for (int k = 0; k < t->n; k++) {
      if (!member[k] || t->v[k].refused == refuse || (refuse && t->v[k].twice)) continue;
      printf("FAIL ptxas %s at %d.%d sm_%d%c: %s  %s\n", what, version / 10, version % 10,
             target.sm, target.suffix ? target.suffix : ' ', t->v[k].text,
             refuse ? "\n" : t->v[k].why);
      t->failures++;
    }
    free(member);
  }
  free(done);
}

int main(void) {
  if (system("command -v ptxas >/dev/null 2>&1")) {
    printf("skipped: no ptxas on the PATH\n");
    return 77;
  }
  Test t = {.arena = arena_new(), .dir = "/tmp/ptxas_forms_XXXXXX"};
  if (!mkdtemp(t.dir)) return 3;
  for (int f = 0; f < ptx_nforms; f++) add_row(&t, f);
  ours_takes(&t);
  ask(&t, at_minimum, false, "refuses");
  ask(&t, version_less, true, "takes");
  ask(&t, target_less, true, "takes");
  printf("%d rows, %d variants, %d disagreements\n", ptx_nforms, t.n, t.failures);
  char file[128];
  snprintf(file, sizeof file, "%s/k.ptx", t.dir);
  unlink(file);
  rmdir(t.dir);
  arena_free(t.arena);
  return t.failures ? 1 : 0;
}
