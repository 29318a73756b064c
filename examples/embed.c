/* Generating and checking PTX in a program of one's own: no device is needed.
 *
 *   example_embed TEMPLATE ["name=value ..." [TARGET]] > kernel.ptx */
#include <stdio.h>
#include <string.h>

#include "ptxsmith.h"

static int list(psm_session *s) {
  for (int i = 0; psm_template_name(s, i); i++) puts(psm_template_name(s, i));
  return PSM_OK;
}

static psm_status generate(psm_session *s, const char *name, const char *params,
                           const char *target) {
  psm_variant *v;
  psm_status st = psm_generate(s, name, params, target, &v);
  if (st) return st;
  size_t bytes;
  const char *ptx = psm_variant_ptx(v, &bytes);
  fwrite(ptx, 1, bytes, stdout);
  fprintf(stderr, "%s: entry %s, hash %s\n", psm_variant_id(v), psm_variant_entry(v),
          psm_variant_hash(v));
  psm_variant_free(v);
  return PSM_OK;
}

int main(int argc, char **argv) {
  if (argc > 4) {
    fputs("usage: example_embed [TEMPLATE [\"NAME=VALUE ...\" [TARGET]]]\n", stderr);
    return PSM_INPUT;
  }
  psm_session *s;
  psm_status st = psm_session_open(NULL, &s);
  if (!st && argc < 2) st = list(s);
  else if (!st)
    st = generate(s, argv[1], argc > 2 ? argv[2] : NULL, argc > 3 ? argv[3] : NULL);
  fputs(psm_error(s), stderr);
  psm_session_close(s);
  return (int)st;
}
