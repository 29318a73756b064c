#include "parse.h"

#include <stdlib.h>
#include <string.h>

Status parse_target(const char *text, int *sm, char *suffix, Diag *d) {
  if (!strncmp(text, "sm_", 3) && text[3] >= '1' && text[3] <= '9') {
    char *end;
    long n = strtol(text + 3, &end, 10);
    bool known = n < 1000 && ptx_target_min_version((int)n, *end) > 0;
    if (known && (!*end || !end[1])) {
      *sm = (int)n;
      *suffix = *end;
      return ST_OK;
    }
  }
  return diag_error(d, NOWHERE, "\"%s\" is no target; targets read sm_80, sm_90, sm_90a", text);
}

Status parse_params(Arena *a, const char *text, Params *out, Diag *d) {
  char *save = NULL, *copy = arena_strdup(a, text);
  for (char *w = strtok_r(copy, " \t\n", &save); w; w = strtok_r(NULL, " \t\n", &save)) {
    char *eq = strchr(w, '=');
    if (eq && params_get(out, arena_strndup(a, w, (size_t)(eq - w))))
      return diag_error(d, NOWHERE, "parameter %.*s is given twice", (int)(eq - w), w);
    Status st = params_parse(a, out, w, d);
    if (st) return st;
  }
  return ST_OK;
}
