// The C API: sessions, variants, checking.
#include "api.h"

#include <stdlib.h>
#include <string.h>

#include "parse.h"

_Static_assert((int)PSM_OK == ST_OK && (int)PSM_FAILED == ST_FAILED && (int)PSM_INPUT == ST_INPUT &&
                   (int)PSM_DEVICE == ST_DEVICE && (int)PSM_INTERRUPTED == ST_INTERRUPTED,
               "psm_status mirrors Status");

const char *psm_version(void) { return PSM_VERSION; }

Diag *api_begin(psm_session *s) {
  if (s->diag->first || s->diag->errors) diag_reset(s->diag);
  return s->diag;
}

bool api_needs(const void *text, const char *what, Diag *d) {
  if (!text) diag_error(d, NOWHERE, "%s is NULL", what);
  return text != NULL;
}

const Source *api_source(Arena *a, const char *name, const char *ptx, size_t bytes, Diag *d) {
  if (!api_needs(name, "name", d) || !api_needs(ptx, "ptx", d)) return NULL;
  if (bytes <= SOURCE_MOST)
    return source_new(a, arena_strdup(a, name), arena_strndup(a, ptx, bytes), bytes);
  diag_error(d, NOWHERE, "%s: a text of %zu bytes, 256 MiB at most", name, bytes);
  return NULL;
}

Status api_build_opts(const char *target, const char *hook, VariantOpts *out, Diag *d) {
  *out = (VariantOpts){.hook_path = hook};
  return target ? parse_target(target, &out->sm, &out->sm_suffix, d) : ST_OK;
}

psm_status psm_session_open(const char *folder, psm_session **out) {
  psm_session *s = calloc(1, sizeof *s);
  if (!s) abort(); // as everywhere with small objects: see arena.h
  s->diag = diag_new();
  s->session = session_open(folder, s->diag);
  *out = s;
  return s->session ? PSM_OK : PSM_INPUT;
}

void psm_session_close(psm_session *s) {
  if (!s) return;
  session_close(s->session);
  diag_free(s->diag);
  free(s);
}

const char *psm_error(const psm_session *s) { return s->diag->first ? diag_text(s->diag) : ""; }

const char *psm_template_name(psm_session *s, int index) {
  const TemplateInfo **t;
  int n;
  if (!s->session || session_templates(s->session, &t, &n, api_begin(s))) return NULL;
  return index >= 0 && index < n ? t[index]->name : NULL;
}

// ---- variants ----------------------------------------------------------------------------------
psm_status psm_generate(psm_session *s, const char *template_name, const char *params,
                        const char *target, psm_variant **out) {
  Diag *d = api_begin(s);
  *out = NULL;
  if (!api_needs(template_name, "template_name", d)) return PSM_INPUT;
  Arena *a = arena_new();
  Params given = {0};
  VariantOpts opts;
  Variant *v = NULL;
  Status st = params ? parse_params(a, params, &given, d) : ST_OK;
  if (!st) st = api_build_opts(target, NULL, &opts, d);
  if (!st) st = variant_build(s->session, template_name, &given, &opts, &v, d);
  arena_free(a);
  if (st) return api_status(st);
  *out = calloc(1, sizeof **out);
  if (!*out) abort();
  **out = (psm_variant){.owner = s, .variant = v};
  return PSM_OK;
}

void psm_variant_free(psm_variant *v) {
  if (!v) return;
  variant_free(v->variant);
  free(v);
}

const char *psm_variant_ptx(const psm_variant *v, size_t *bytes) {
  if (bytes) *bytes = v->variant->ptx->len;
  return v->variant->ptx->text;
}

const char *psm_variant_id(const psm_variant *v) { return v->variant->id; }
const char *psm_variant_hash(const psm_variant *v) { return v->variant->hash; }
const char *psm_variant_entry(const psm_variant *v) { return v->variant->entry->name; }

void psm_variant_shape(const psm_variant *v, psm_shape *out) {
  const LaunchRule *rule = &v->variant->launch;
  *out = (psm_shape){.shared_bytes = rule->smem_bytes};
  for (int i = 0; i < 3; i++) {
    out->block[i] = rule->block[i] ? rule->block[i] : 1;
    out->cluster[i] = rule->cluster[i] ? rule->cluster[i] : 1;
  }
}

psm_status psm_check(psm_session *s, const char *name, const char *ptx, size_t bytes) {
  Diag *d = api_begin(s);
  Arena *a = arena_new();
  const Source *src = api_source(a, name, ptx, bytes, d);
  const PtxModule *m = src ? ptx_parse(a, src, NULL, d) : NULL;
  bool good = m && !ptx_check(m, d) && !d->errors;
  arena_free(a);
  return !src ? PSM_INPUT : good ? PSM_OK : PSM_FAILED;
}
