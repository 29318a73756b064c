// info: devices, driver, build and host.
#include <unistd.h>

#include "cmd.h"
#include "ptxsmith.h"
#include "sim_lanes.h"

static void print_device(const DeviceInfo *i) {
  printf("%s: %s\n", i->id, i->name);
  printf("  target       sm_%d%c, PTX up to %d.%d\n", i->sm, i->sm_suffix ? i->sm_suffix : ' ',
         i->ptx_version / 10, i->ptx_version % 10);
  if (i->is_sim) {
    const LaneIsa *isa = lane_isa(NULL);
    printf("  host         %ld threads, %s\n", sysconf(_SC_NPROCESSORS_ONLN), isa->name);
    return;
  }
  printf("  driver       %s, CUDA %d.%d\n", i->driver, i->driver_version / 1000,
         i->driver_version / 10 % 100);
  printf("  SMs          %d at %.0f MHz\n", i->sm_count, i->clock_khz / 1e3);
  printf("  memory       %.1f GiB, %.1f GiB free; L2 %.0f MiB\n",
         (double)i->memory_bytes / (1 << 30), (double)i->memory_free / (1 << 30),
         (double)i->l2_bytes / (1 << 20));
  printf("  shared       %u KiB a block, %u KiB on request, %u KiB an SM\n",
         i->smem_per_block >> 10, i->smem_optin >> 10, i->smem_per_sm >> 10);
}

static void json_device(Cmd *c, const DeviceInfo *i) {
  Json j;
  json_begin(&j, c->arena);
  json_str(&j, "device", i->id);
  json_str(&j, "name", i->name);
  json_bool(&j, "sim", i->is_sim);
  json_int(&j, "sm", i->sm);
  json_int(&j, "ptx_version", i->ptx_version);
  json_str(&j, "driver", i->driver);
  json_int(&j, "cuda_version", i->driver_version);
  json_int(&j, "sm_count", i->sm_count);
  json_int(&j, "clock_khz", i->clock_khz);
  json_uint(&j, "memory_bytes", i->memory_bytes);
  json_uint(&j, "memory_free", i->memory_free);
  json_uint(&j, "l2_bytes", i->l2_bytes);
  json_uint(&j, "smem_optin", i->smem_optin);
  json_str(&j, "version", psm_version());
  fputs(json_end(&j), stdout);
}

static Status show(Cmd *c, const char *spec, bool head) {
  Device *dev;
  Status st = device_open(spec, &dev, c->diag);
  if (st) return st;
  if (head && !cli_has(c->cli, OPT_JSON)) printf("ptxsmith %s\n", psm_version());
  if (cli_has(c->cli, OPT_JSON)) json_device(c, device_info(dev));
  else print_device(device_info(dev));
  device_close(dev);
  return ST_OK;
}

// Without --device: every GPU and sim; that there is no GPU is then said, not an error.
Status cmd_info(Cmd *c) {
  bool json = cli_has(c->cli, OPT_JSON);
  if (cli_has(c->cli, OPT_DEVICE)) return show(c, c->cli->text[OPT_DEVICE], true);
  if (!json) printf("ptxsmith %s\n", psm_version());
  Diag *why = diag_new();
  int n = cuda_device_count(why);
  if (!n && !json) printf("no GPU: %s\n", why->first ? why->first->what : "the driver lists none");
  diag_free(why);
  Status st = ST_OK;
  for (int i = 0; i < n && !st; i++) st = show(c, arena_printf(c->arena, "cuda:%d", i), false);
  return st ? st : show(c, "sim", false);
}
