// From an instruction to its lane function: the key is the stem and the modifiers, less those that
// a function reads from imm.

typedef struct Key {
  char text[64];
  size_t len;
} Key;

static void key_add(Key *k, const char *text) {
  size_t n = strlen(text);
  if (k->len + n + 2 > sizeof k->text) return; // longer than any row's key: it will not be found
  if (k->len) k->text[k->len++] = '.';
  memcpy(k->text + k->len, text, n + 1);
  k->len += n;
}

typedef struct ModFlag {
  const char *text;
  uint32_t flag;
} ModFlag;
static const ModFlag mod_flags[] = {
    {"rn", M_RN}, {"rz", M_RZ}, {"rm", M_RM}, {"rp", M_RP}, {"ftz", M_FTZ}, {"sat", M_SAT},
    {"relu", M_RELU}, {"NaN", M_NAN}, {"xorsign", M_XORSIGN}, {"abs", M_XORSIGN},
};

static bool mod_flag(const char *text, uint64_t *flags) {
  for (size_t i = 0; i < sizeof mod_flags / sizeof mod_flags[0]; i++) {
    if (strcmp(mod_flags[i].text, text)) continue;
    *flags |= mod_flags[i].flag;
    return true;
  }
  return false;
}

static const LaneRow *row_find(const Key *k) {
  for (size_t i = 0; i < sizeof rows / sizeof rows[0]; i++)
    if (!strcmp(rows[i].key, k->text)) return &rows[i];
  return NULL;
}

static bool use_row(const LaneRow *r, uint64_t flags, LaneOp *out) {
  LaneFn fn = !flags ? r->fn : flags == M_FTZ && r->fn_ftz ? r->fn_ftz : r->fn_any;
  if (!fn) return false;
  *out = (LaneOp){.fn = fn, .flops = r->flops, .imm = r->imm | flags};
  memcpy(out->width, r->width, sizeof out->width);
  return true;
}

static bool find_alu(const PtxInst *in, LaneOp *out) {
  const PtxForm *form = ptx_inst_form(in);
  Key whole = {.len = 0}, plain = {.len = 0};
  uint64_t flags = 0;
  bool is_lop3 = !strcmp(form->stem, "lop3");
  key_add(&whole, form->stem);
  key_add(&plain, form->stem);
  for (int i = 0; i < in->nmods; i++) {
    const char *text = ptx_mod_text(in->mods[i]);
    if (is_lop3 && (!strcmp(text, "and") || !strcmp(text, "or"))) continue; // of its predicate
    key_add(&whole, text);
    if (!mod_flag(text, &flags)) key_add(&plain, text);
  }
  const LaneRow *r = row_find(&whole); // add.sat.s32: the modifier belongs to the row
  if (r) flags = 0;
  else r = row_find(&plain);
  if (!r || !use_row(r, flags, out)) return false;
  if (is_lop3) out->imm = (uint64_t)in->opnds[4].i;
  return true;
}

// add, sub, addc, subc, mad and madc with carry share the functions of addc and madc.
static bool find_carry(const PtxInst *in, LaneOp *out) {
  const char *stem = ptx_inst_form(in)->stem;
  bool mad = stem[0] == 'm', sub = stem[0] == 's';
  uint64_t imm = (sub ? CC_SUB : 0) | (stem[strlen(stem) - 1] == 'c' ? CC_READ : 0);
  Key k = {.len = 0};
  key_add(&k, mad ? "madc" : "addc");
  for (int i = 0; i < in->nmods; i++) {
    const char *text = ptx_mod_text(in->mods[i]);
    if (!strcmp(text, "cc")) imm |= CC_WRITE;
    else if (!strcmp(text, "hi") || !strcmp(text, "lo")) key_add(&k, text);
  }
  // Only the high half of a product tells signed from unsigned.
  static const char *const unsigned_of[PTX_T_COUNT] = {
      [PTX_T_U32] = "u32", [PTX_T_S32] = "u32", [PTX_T_U64] = "u64", [PTX_T_S64] = "u64"};
  bool high = strstr(k.text, "hi") != NULL;
  key_add(&k, high ? ptx_type_text(in->type[0]) : unsigned_of[in->type[0]]);
  const LaneRow *r = row_find(&k);
  if (!r || !use_row(r, 0, out)) return false;
  out->imm = imm;
  return true;
}

static int setp_index(const char *op, PtxType t) {
  Key k = {.len = 0};
  key_add(&k, op);
  key_add(&k, ptx_type_text(t));
  for (size_t i = 0; i < sizeof setp_rows / sizeof setp_rows[0]; i++)
    if (!strcmp(setp_rows[i].key, k.text)) return (int)i;
  return -1;
}

static unsigned set_kind(PtxType d, PtxType src) {
  bool packed = src == PTX_T_F16X2 || src == PTX_T_BF16X2;
  switch (d) {
  case PTX_T_F32: return SET_F32;
  case PTX_T_U16: case PTX_T_S16: return SET_ONES16;
  case PTX_T_F16: return SET_F16;
  case PTX_T_BF16: return SET_BF16;
  case PTX_T_F16X2: return SET_F16X2;
  case PTX_T_BF16X2: return SET_BF16X2;
  default: return packed ? SET_ONES16X2 : SET_ONES32;
  }
}

static bool find_setp(const PtxInst *in, LaneOp *out) {
  bool is_set = !strcmp(ptx_inst_form(in)->stem, "set");
  PtxType src = in->type[is_set ? 1 : 0];
  int index = setp_index(ptx_mod_text(in->mods[0]), src);
  if (index < 0) return false;
  uint64_t imm = ptx_inst_has(in, "ftz") ? M_FTZ : 0, join = 0;
  if (ptx_inst_has(in, "and")) join = P_AND;
  if (ptx_inst_has(in, "or")) join = P_OR;
  if (ptx_inst_has(in, "xor")) join = P_XOR;
  if (join && in->nopnds < 4) return false;
  if (join && in->opnds[3].negate) imm |= P_NEGATE;
  imm |= join << P_SHIFT;
  uint8_t w = setp_rows[index].width;
  *out = (LaneOp){.fn = setp_fns[index], .width = {1, w, w, join ? 1 : 0, 0}, .imm = imm};
  if (is_set) {
    out->fn = set_spread;
    out->width[0] = 4;
    out->imm |= (uint64_t)set_kind(in->type[0], src) << SET_KIND_SHIFT;
    out->imm |= (uint64_t)index << SET_FN_SHIFT;
  }
  return true;
}

// The kind of one element and whether the type packs two.
static int cvt_kind(PtxType t, bool *packed) {
  *packed = t == PTX_T_F16X2 || t == PTX_T_BF16X2 || t == PTX_T_E4M3X2 || t == PTX_T_E5M2X2;
  switch (t) {
  case PTX_T_U8: return K_U8;
  case PTX_T_S8: return K_S8;
  case PTX_T_U16: return K_U16;
  case PTX_T_S16: return K_S16;
  case PTX_T_U32: return K_U32;
  case PTX_T_S32: return K_S32;
  case PTX_T_U64: return K_U64;
  case PTX_T_S64: return K_S64;
  case PTX_T_F16: case PTX_T_F16X2: return K_F16;
  case PTX_T_BF16: case PTX_T_BF16X2: return K_BF16;
  case PTX_T_TF32: return K_TF32;
  case PTX_T_F32: return K_F32;
  case PTX_T_F64: return K_F64;
  case PTX_T_E4M3X2: return K_E4M3;
  case PTX_T_E5M2X2: return K_E5M2;
  default: return -1;
  }
}

static bool cvt_flags(const PtxInst *in, uint64_t *flags) {
  static const ModFlag more[] = {
      {"rna", M_RNA}, {"satfinite", M_SATFINITE}, {"rni", M_RN | M_INTEGER},
      {"rzi", M_RZ | M_INTEGER}, {"rmi", M_RM | M_INTEGER}, {"rpi", M_RP | M_INTEGER},
  };
  for (int i = 0; i < in->nmods; i++) {
    const char *text = ptx_mod_text(in->mods[i]);
    if (!strcmp(text, "rs")) return false; // stochastic rounding: no target here has it
    if (mod_flag(text, flags)) continue;
    for (size_t k = 0; k < sizeof more / sizeof more[0]; k++)
      if (!strcmp(more[k].text, text)) *flags |= more[k].flag;
  }
  return true;
}

// Bits of the register an operand stands in; immediates take the type's.
static int register_bits(const PtxOperand *o, PtxType t) {
  int bits = o->kind == PTX_O_REG ? ptx_type_bits((PtxType)o->type) : 0;
  return bits ? bits : ptx_type_bits(t);
}

static bool find_cvt_any(const PtxInst *in, LaneOp *out) {
  bool pack_to, pack_from;
  uint64_t imm = 0;
  int to = cvt_kind(in->type[0], &pack_to), from = cvt_kind(in->type[1], &pack_from);
  if (to < 0 || from < 0 || !cvt_flags(in, &imm)) return false;
  imm |= (uint64_t)to << CVT_TO | (uint64_t)from << CVT_FROM;
  if (pack_to) {
    if (pack_from) imm |= CVT_SPLIT;
    *out = (LaneOp){.fn = cvt_pair, .width = {4, 4, pack_from ? 0 : 4}, .imm = imm};
    return true;
  }
  if (pack_from) return false;
  int dst_bits = register_bits(&in->opnds[0], in->type[0]);
  bool wide_src = register_bits(&in->opnds[1], in->type[1]) == 64;
  imm |= (uint64_t)dst_bits << CVT_DST_BITS | (wide_src ? CVT_WIDE_SRC : 0);
  *out = (LaneOp){.fn = cvt_any, .width = {dst_bits == 64 ? 8 : 4, wide_src ? 8 : 4}, .imm = imm};
  return true;
}

// The vectorised rows are for registers just as wide as the types.
static bool find_cvt(const PtxInst *in, LaneOp *out) {
  bool exact = true;
  for (int i = 0; i < 2; i++)
    exact &= register_bits(&in->opnds[i], in->type[i]) == ptx_type_bits(in->type[i]);
  return (exact && find_alu(in, out)) || find_cvt_any(in, out);
}

#define LANE_GLUE2(a, b) a##b
#define LANE_GLUE(a, b) LANE_GLUE2(a, b)
bool LANE_GLUE(lanes_find_, LANE_SET)(const PtxInst *in, LaneOp *out);
bool LANE_GLUE(lanes_find_, LANE_SET)(const PtxInst *in, LaneOp *out) {
  const char *handler = ptx_inst_form(in)->handler;
  if (!strcmp(handler, "alu") || !strcmp(handler, "mov") || !strcmp(handler, "lop3"))
    return find_alu(in, out);
  if (!strcmp(handler, "setp")) return find_setp(in, out);
  if (!strcmp(handler, "cvt")) return find_cvt(in, out);
  if (!strcmp(handler, "carry")) return find_carry(in, out);
  return false;
}
