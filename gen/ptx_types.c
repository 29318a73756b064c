#include "ptx.h"

#include <string.h>

const PtxTypeInfo ptx_type_infos[PTX_T_COUNT] = {
    [PTX_T_NONE] = {"", 0, 0},
#define X(id, text, bits, class) [PTX_T_##id] = {text, bits, class},
    PTX_TYPES(X)
#undef X
};

static const char *const spaces[PTX_S_COUNT] = {
    [PTX_S_GENERIC] = "",
    [PTX_S_REG] = "reg",
    [PTX_S_GLOBAL] = "global",
    [PTX_S_SHARED] = "shared",
    [PTX_S_CLUSTER] = "shared::cluster",
    [PTX_S_LOCAL] = "local",
    [PTX_S_PARAM] = "param",
    [PTX_S_CONST] = "const",
};

const char *ptx_space_text(PtxSpace s) { return spaces[s]; }

// Targets and the least .version that names them (ptxas 13.0, by bisection; before 7.0 the manual).
typedef struct TargetInfo {
  int sm;
  char suffix;
  int version;
} TargetInfo;

static const TargetInfo targets[] = {
    {10, 0, 10},   {11, 0, 10},   {12, 0, 12},    {13, 0, 12},    {20, 0, 20},   {30, 0, 31},
    {32, 0, 40},   {35, 0, 31},   {37, 0, 41},    {50, 0, 40},    {52, 0, 41},   {53, 0, 42},
    {60, 0, 50},   {61, 0, 50},   {62, 0, 50},    {70, 0, 60},    {72, 0, 61},   {75, 0, 63},
    {80, 0, 70},   {86, 0, 71},   {87, 0, 74},    {88, 0, 90},    {89, 0, 78},   {90, 0, 78},
    {90, 'a', 80}, {100, 0, 86},  {100, 'a', 86}, {100, 'f', 88}, {103, 0, 88},  {103, 'a', 88},
    {103, 'f', 88}, {110, 0, 90}, {110, 'a', 90}, {110, 'f', 90}, {120, 0, 87},  {120, 'a', 87},
    {120, 'f', 88}, {121, 0, 88}, {121, 'a', 88}, {121, 'f', 88},
};

int ptx_target_min_version(int sm, char suffix) {
  for (size_t i = 0; i < sizeof targets / sizeof *targets; i++)
    if (targets[i].sm == sm && targets[i].suffix == suffix) return targets[i].version;
  return 0;
}

// First CUDA release (as the driver counts it) that takes each PTX version.
static const struct {
  int cuda, version;
} drivers[] = {
    {11000, 70}, {11010, 71}, {11020, 72}, {11030, 73}, {11040, 74}, {11050, 75}, {11060, 76},
    {11070, 77}, {11080, 78}, {12000, 80}, {12010, 81}, {12020, 82}, {12030, 83}, {12040, 84},
    {12050, 85}, {12070, 86}, {12080, 87}, {12090, 88}, {13000, 90}, {13010, 91}, {13020, 92},
};

int ptx_version_of_driver(int cuda_version) {
  int version = 0;
  for (size_t i = 0; i < sizeof drivers / sizeof *drivers; i++)
    if (cuda_version >= drivers[i].cuda) version = drivers[i].version;
  return version;
}

static const PtxSregInfo sregs[PTX_SREG_COUNT] = {
#define X(id, text, type) [PTX_SREG_##id] = {text, PTX_T_##type},
    PTX_SREGS(X)
#undef X
};

const PtxSregInfo *ptx_sreg_info(PtxSreg s) { return &sregs[s]; }

bool ptx_sreg_has_dims(PtxSreg s) {
  switch (s) {
  case PTX_SREG_TID: case PTX_SREG_NTID: case PTX_SREG_CTAID: case PTX_SREG_NCTAID:
  case PTX_SREG_CLUSTERID: case PTX_SREG_NCLUSTERID: case PTX_SREG_CLUSTER_CTAID:
  case PTX_SREG_CLUSTER_NCTAID: return true;
  default: return false;
  }
}

int ptx_sreg_find(const char *text, size_t len) {
  for (int i = 0; i < PTX_SREG_COUNT; i++)
    if (strlen(sregs[i].text) == len && !memcmp(sregs[i].text, text, len)) return i;
  return -1;
}
