// The C API: devices and their buffers.
#include "api.h"

#include <stdlib.h>
#include <string.h>

static psm_status wrap(psm_session *s, Status st, Device *dev, psm_device **out) {
  *out = NULL;
  if (st) return api_status(st);
  *out = calloc(1, sizeof **out);
  if (!*out) abort();
  **out = (psm_device){.owner = s, .device = dev};
  return PSM_OK;
}

psm_status psm_device_open(psm_session *s, const char *spec, psm_device **out) {
  Device *dev = NULL;
  Status st = device_open(spec ? spec : "auto", &dev, api_begin(s));
  return wrap(s, st, dev, out);
}

psm_status psm_device_adopt(psm_session *s, void *cu_context, void *cu_stream, psm_device **out) {
  Device *dev = NULL;
  Status st = device_adopt(cu_context, cu_stream, &dev, api_begin(s));
  return wrap(s, st, dev, out);
}

psm_status psm_device_set_stream(psm_device *dev, void *cu_stream) {
  return api_status(device_set_stream(dev->device, cu_stream, api_begin(dev->owner)));
}

void psm_device_close(psm_device *dev) {
  if (!dev) return;
  device_close(dev->device);
  free(dev->buffers);
  free(dev);
}

const char *psm_device_id(const psm_device *dev) { return device_info(dev->device)->id; }
const char *psm_device_name(const psm_device *dev) { return device_info(dev->device)->name; }

psm_status psm_alloc(psm_device *dev, uint64_t bytes, uint64_t *out) {
  Status st = device_alloc(dev->device, bytes, "buffer", out, api_begin(dev->owner));
  if (st) return api_status(st);
  if (dev->nbuffers == dev->cap) {
    dev->cap = dev->cap ? 2 * dev->cap : 16;
    dev->buffers = realloc(dev->buffers, (size_t)dev->cap * sizeof *dev->buffers);
    if (!dev->buffers) abort();
  }
  dev->buffers[dev->nbuffers++] = *out;
  return PSM_OK;
}

psm_status psm_free(psm_device *dev, uint64_t pointer) {
  Diag *d = api_begin(dev->owner);
  if (!pointer) return PSM_OK;
  for (int i = 0; i < dev->nbuffers; i++)
    if (dev->buffers[i] == pointer) {
      dev->buffers[i] = dev->buffers[--dev->nbuffers];
      device_free(dev->device, pointer);
      return PSM_OK;
    }
  return api_status(diag_error(d, NOWHERE, "%s: no buffer of psm_alloc begins at 0x%llx",
                               device_info(dev->device)->id, (unsigned long long)pointer));
}

psm_status psm_write(psm_device *dev, uint64_t to, const void *from, uint64_t bytes) {
  return api_status(device_write(dev->device, to, from, bytes, api_begin(dev->owner)));
}

psm_status psm_read(psm_device *dev, void *to, uint64_t from, uint64_t bytes) {
  return api_status(device_read(dev->device, to, from, bytes, api_begin(dev->owner)));
}

psm_status psm_zero(psm_device *dev, uint64_t to, uint64_t bytes) {
  return api_status(device_fill32(dev->device, to, 0, bytes, api_begin(dev->owner)));
}

psm_status psm_device_sim(psm_device *dev, const psm_sim_options *o) {
  Diag *d = api_begin(dev->owner);
  const char *id = device_info(dev->device)->id;
  if (!api_needs(o, "options", d)) return PSM_INPUT;
  if (strcmp(id, "sim"))
    return api_status(diag_error(d, NOWHERE, "%s: only the interpreter has these options", id));
  device_sim_opts(dev->device, &(SimOpts){.threads = o->threads, .seed = o->schedule,
                                          .completion = sim_completion_of(o->schedule),
                                          .step_limit = o->limit, .sanitize = o->sanitize,
                                          .counters = o->counters});
  return PSM_OK;
}

psm_status psm_sync(psm_device *dev) {
  return api_status(device_sync(dev->device, api_begin(dev->owner)));
}
