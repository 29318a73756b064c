// Lane functions for one instruction set (LANE_SET): see sim_lanes.h.  The functions come from the
// tables in sim_lanes_ops*.h, each included twice: once to define them, once to list them.
#include "sim_lanes.h"

#include "sim_lanes_base.h"
#include "sim_lanes_int.h"
#include "sim_lanes_float.h"
#include "sim_lanes_half.h"
#include "sim_lanes_approx.h"
#include "sim_lanes_cmp.h"
#include "sim_lanes_cvt.h"

// ---- first pass: definitions --------------------------------------------------------------------
#define OP1(key, id, T, DT, AT, e) DEF1(id, T, DT, AT, e)
#define OP2(key, id, T, DT, AT, BT, e) DEF2(id, T, DT, AT, BT, e)
#define OP3(key, id, T, DT, AT, BT, CT, e) DEF3(id, T, DT, AT, BT, CT, e)
#define OP4(key, id, T, DT, AT, BT, CT, ET, e) DEF4(id, T, DT, AT, BT, CT, ET, e)
#define LOP3(key, id, e) DEF3(id, b32, b32, b32, b32, b32, e)
#define SELECT(T) SELECT_DEF(T)
#define CARRY(key, id, T, has_c, term) CARRY_DEF(id##_##T, T, has_c, term)
#define FOP1(key, id, T, flops, e) FDEF1(id, T, e)
#define FOP2(key, id, T, flops, e) FDEF2(id, T, e)
#define FOP3(key, id, T, flops, e) FDEF3(id, T, e)
#define ROP1(key, id, T, flops, e) RDEF1(id, T, e)
#define ROP2(key, id, T, flops, e) RDEF2(id, T, e)
#define HOP(key, id, F, n, flops, e) HDEF(id, F, n, e)
#define HROP(key, id, F, n, flops, e) HRAW(id, F, n, e)
#include "sim_lanes_ops.h"
#include "sim_lanes_ops_float.h"
#include "sim_lanes_ops_half.h"
#undef OP1
#undef OP2
#undef OP3
#undef OP4
#undef LOP3
#undef SELECT
#undef CARRY
#undef FOP1
#undef FOP2
#undef FOP3
#undef ROP1
#undef ROP2
#undef HOP
#undef HROP

// ---- second pass: the table ---------------------------------------------------------------------
#define OP1(key, id, T, DT, AT, e) {key, id, NULL, NULL, {ST(DT), ST(AT)}, 0, 0},
#define OP2(key, id, T, DT, AT, BT, e) {key, id, NULL, NULL, {ST(DT), ST(AT), ST(BT)}, 0, 0},
#define OP3(key, id, T, DT, AT, BT, CT, e)                                                         \
  {key, id, NULL, NULL, {ST(DT), ST(AT), ST(BT), ST(CT)}, 0, 0},
#define OP4(key, id, T, DT, AT, BT, CT, ET, e)                                                     \
  {key, id, NULL, NULL, {ST(DT), ST(AT), ST(BT), ST(CT), ST(ET)}, 0, 0},
#define LOP3(key, id, e) {key, id, NULL, NULL, {4, 4, 4, 4}, 0, 0},
#define SELECT(T)                                                                                  \
  {"selp." #T, selp_##T, NULL, NULL, {ST(T), ST(T), ST(T), 1}, 0, 0},                              \
  {"slct." #T ".s32", slct_##T##_s32, NULL, NULL, {ST(T), ST(T), ST(T), 4}, 0, 0},                 \
  {"slct." #T ".f32", slct_##T##_f32, NULL, slct_##T##_f32, {ST(T), ST(T), ST(T), 4}, 0, 0},
#define CARRY(key, id, T, has_c, term)                                                             \
  {key "." #T, id##_##T, NULL, NULL, {ST(T), ST(T), ST(T), (has_c) ? ST(T) : 0, 1}, 0, 0},
#define FLOAT_ROW(key, id, ...) {key, id, id##_ftz, id##_any, __VA_ARGS__, 0},
#define FOP1(key, id, T, flops, e) FLOAT_ROW(key, id, {ST(T), ST(T)}, flops)
#define FOP2(key, id, T, flops, e) FLOAT_ROW(key, id, {ST(T), ST(T), ST(T)}, flops)
#define FOP3(key, id, T, flops, e) FLOAT_ROW(key, id, {ST(T), ST(T), ST(T), ST(T)}, flops)
#define ROP1(key, id, T, flops, e) FLOAT_ROW(key, id, {ST(T), ST(T)}, flops)
#define ROP2(key, id, T, flops, e) FLOAT_ROW(key, id, {ST(T), ST(T), ST(T)}, flops)
#define HALF_WIDTHS(n) {4, 4, (n) > 1 ? 4 : 0, (n) > 2 ? 4 : 0}
#define HOP(key, id, F, n, flops, e)                                                               \
  {key "." #F, id##_##F, NULL, id##_##F##_any, HALF_WIDTHS(n), flops, 0},                          \
  {key "." #F "x2", id##_##F##x2, NULL, id##_##F##x2_any, HALF_WIDTHS(n), 2 * (flops), 0},
#define HROP HOP
#define PRED_ROW(name, ...) {#name ".pred", name##_pred, NULL, NULL, {1, __VA_ARGS__}, 0, 0},
#define TESTP_ROW(name, what)                                                                      \
  {"testp." #name ".f32", testp_##name##_f32, NULL, NULL, {1, 4}, 0, 0},                           \
  {"testp." #name ".f64", testp_##name##_f64, NULL, NULL, {1, 8}, 0, 0},

static const LaneRow rows[] = {
#include "sim_lanes_ops.h"
#include "sim_lanes_ops_float.h"
#include "sim_lanes_ops_half.h"
    PRED_ROW(mov, 1) PRED_ROW(not, 1) PRED_ROW(and, 1, 1) PRED_ROW(or, 1, 1) PRED_ROW(xor, 1, 1)
    TESTPS(TESTP_ROW)
};

#include "sim_lanes_find.h"
