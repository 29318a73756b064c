// Tables of the pages that follow from the templates.
#ifndef PTXSMITH_PAGE_KIT_H
#define PTXSMITH_PAGE_KIT_H

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "variant.h"

typedef struct Pages {
  Diag *d;
  Session *session;
  Arena *a;
  const TemplateInfo **all;
  int n;
} Pages;

static inline int pages_open(void **state) {
  Pages *p = calloc(1, sizeof *p);
  p->d = diag_new();
  p->a = arena_new();
  p->session = session_open(NULL, p->d);
  *state = p;
  return p->session && !session_templates(p->session, &p->all, &p->n, p->d) ? 0 : -1;
}

static inline int pages_close(void **state) {
  Pages *p = *state;
  session_close(p->session);
  arena_free(p->a);
  diag_free(p->d);
  free(p);
  return 0;
}

static inline const ParamDecl *param_of(const TemplateInfo *t, const char *name) {
  for (int i = 0; i < t->nparams; i++)
    if (!strcmp(t->params[i].name, name)) return &t->params[i];
  return NULL;
}

static inline bool makes_attention(const TemplateInfo *t) {
  return t->kind == KIND_PREFILL || t->kind == KIND_DECODE || t->kind == KIND_COMBINE ||
         t->kind == KIND_ORACLE;
}

static inline const char *page_text(Pages *p, const char *name) {
  Source *page;
  if (source_read(p->a, arena_printf(p->a, SOURCE_DIR "/docs/%s", name), &page, p->d))
    fail_msg("%s", diag_text(p->d));
  return page->text;
}

typedef struct Rows {
  char **v;
  int n, cap;
} Rows;

// The rows of the first table under a heading, without its head.
static inline Rows table_under(Pages *p, const char *text, const char *heading) {
  Rows rows = {0};
  const char *at = strstr(text, arena_printf(p->a, "\n## %s\n", heading));
  if (!at) fail_msg("there is no heading \"%s\"", heading);
  if (!(at = strstr(at, "\n|"))) fail_msg("%s: no table", heading);
  for (at++; *at == '|';) {
    const char *end = strchr(at, '\n');
    *arena_push(p->a, rows.v, rows.n, rows.cap) = arena_strndup(p->a, at, (size_t)(end - at));
    at = end + 1;
  }
  assert_true(rows.n > 2);
  rows.v += 2, rows.n -= 2;
  return rows;
}

// The page's rows begin with the expected ones; a row that does not is shown as it must be.
static inline void hold_rows(const char *page, const char *heading, const Rows *got,
                             const Rows *want) {
  int bad = got->n != want->n;
  for (int i = 0; i < want->n && i < got->n; i++)
    bad |= strncmp(got->v[i], want->v[i], strlen(want->v[i])) != 0;
  if (!bad) return;
  print_message("docs/%s, \"%s\": the rows are\n", page, heading);
  for (int i = 0; i < want->n; i++) print_message("%s\n", want->v[i]);
  fail_msg("docs/%s, \"%s\" is not what the templates declare", page, heading);
}

#endif
