// Which builds of the lane functions this processor can run.
#include <string.h>

#include "sim_lanes.h"

bool lanes_find_baseline(const PtxInst *in, LaneOp *out);
static bool baseline_usable(void) { return true; }

#if defined(__x86_64__)
bool lanes_find_avx2(const PtxInst *in, LaneOp *out);
bool lanes_find_avx512(const PtxInst *in, LaneOp *out);

// The flags each build is compiled with: see LANES_* in CMakeLists.txt.
#ifdef __clang__ // not all versions know the name; every processor with AVX2 has F16C
#define HAS_F16C true
#else
#define HAS_F16C __builtin_cpu_supports("f16c")
#endif
static bool avx2_usable(void) {
  return __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma") && HAS_F16C;
}
static bool avx512_usable(void) {
  return avx2_usable() && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512bw") &&
         __builtin_cpu_supports("avx512dq") && __builtin_cpu_supports("avx512vl");
}
#endif

static const LaneIsa sets[] = { // best first
#if defined(__x86_64__)
    {"avx512", avx512_usable, lanes_find_avx512, &matrix_isa_avx512},
    {"avx2", avx2_usable, lanes_find_avx2, &matrix_isa_avx2},
#endif
    {"baseline", baseline_usable, lanes_find_baseline, &matrix_isa_baseline},
};

const LaneIsa *lane_isa(const char *name) {
  for (size_t i = 0; i < sizeof sets / sizeof sets[0]; i++) {
    if (name && strcmp(name, sets[i].name)) continue;
    if (sets[i].usable()) return &sets[i];
  }
  return NULL;
}
