#include <string.h>

#include "variant.h"

void params_set(Arena *a, Params *p, const char *name, const char *value) {
  for (int i = 0; i < p->n; i++)
    if (strcmp(p->v[i].name, name) == 0) {
      p->v[i].value = arena_strdup(a, value);
      return;
    }
  *arena_push(a, p->v, p->n, p->cap) = (Param){arena_strdup(a, name), arena_strdup(a, value)};
}

const char *params_get(const Params *p, const char *name) {
  for (int i = 0; i < p->n; i++)
    if (strcmp(p->v[i].name, name) == 0) return p->v[i].value;
  return NULL;
}

Status params_parse(Arena *a, Params *p, const char *text, Diag *d) {
  const char *eq = strchr(text, '=');
  if (!eq || eq == text)
    return diag_fail(d, ST_INPUT, "'%s' is not a parameter: write NAME=VALUE", text);
  if (!eq[1]) return diag_fail(d, ST_INPUT, "parameter '%s' has no value", text);
  params_set(a, p, arena_strndup(a, text, (size_t)(eq - text)), eq + 1);
  return ST_OK;
}
