// The driver's JIT logs, said in terms of templates.
//
// An error line reads   ptxas application ptx input, line 12; error   : Unknown symbol 'x'
// a remark              ptxas info    : (C7510) Potential Performance Loss: wgmma ... in line 80
#include "cu_device.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

typedef struct Text {
  const char *p, *end;
} Text;

static bool next_line(Text *log, Text *line) {
  if (log->p >= log->end) return false;
  const char *nl = memchr(log->p, '\n', (size_t)(log->end - log->p));
  *line = (Text){log->p, nl ? nl : log->end};
  log->p = nl ? nl + 1 : log->end;
  return true;
}

static Text text_of(const char *s) { return (Text){s, s + strlen(s)}; }

static const char *find(Text t, const char *word) {
  return memmem(t.p, (size_t)(t.end - t.p), word, strlen(word));
}

// "... ptx input, line N" anywhere in a log line; *rest: behind the number.
static uint32_t line_number(Text line, const char **at, const char **rest) {
  static const char mark[] = "ptx input, line ";
  const char *m = find(line, mark);
  if (!m) return 0;
  const char *digits = m + sizeof mark - 1;
  uint64_t n = 0;
  const char *p = digits;
  while (p < line.end && isdigit((unsigned char)*p) && n < UINT32_MAX / 10)
    n = 10 * n + (uint64_t)(*p++ - '0');
  if (p == digits) return 0;
  if (at) *at = m;
  *rest = p;
  return (uint32_t)n;
}

static Place place_of(const Source *ptx, const LineMap *map, uint32_t line) {
  if (!line || line > ptx->nlines) return NOWHERE;
  return (Place){.src = ptx, .line = line, .origin = linemap_at(map, line)};
}

// What a line says, without "ptxas", its place and the word error or warning.
static Text message_of(Text line, const char *rest) {
  Text t = {rest ? rest : line.p, line.end};
  const char *colon = memchr(t.p, ':', (size_t)(t.end - t.p));
  if (colon) t.p = colon + 1;
  while (t.p < t.end && (isspace((unsigned char)*t.p) || *t.p == ';')) t.p++;
  return t;
}

int cu_jit_errors(const char *log, const Source *ptx, const LineMap *map, Diag *d) {
  Text all = text_of(log), line;
  int found = 0;
  while (next_line(&all, &line)) {
    const char *rest = NULL;
    uint32_t n = line_number(line, NULL, &rest);
    bool fatal = find(line, "fatal") || find(line, "error");
    if (!fatal || (find(line, "aborted due to errors") && found)) continue; // says nothing more
    Text what = message_of(line, rest);
    diag_add(d, SEV_ERROR, place_of(ptx, map, n), "ptxas: %.*s", (int)(what.end - what.p), what.p);
    found++;
  }
  return found;
}

// ---- the info log -------------------------------------------------------------------------------

static void warn_of(Text line, const Source *ptx, const LineMap *map, Diag *d) {
  bool remark = find(line, "(C75") || find(line, "warning") || find(line, "Potential Performance");
  if (!remark) return;
  const char *rest = NULL;
  uint32_t n = line_number(line, NULL, &rest);
  Text what = message_of(line, rest);
  diag_add(d, SEV_WARNING, place_of(ptx, map, n), "ptxas: %.*s", (int)(what.end - what.p), what.p);
}

static void put_line(FILE *out, Text line, const LineMap *map) {
  const char *at = NULL, *rest = NULL;
  uint32_t n = line_number(line, &at, &rest);
  const Origin *o = n ? linemap_at(map, n) : NULL;
  if (o)
    fprintf(out, "%.*s%s:%u (PTX line %u)%.*s\n", (int)(at - line.p), line.p, o->src->name, o->line,
            n, (int)(line.end - rest), rest);
  else
    fprintf(out, "%.*s\n", (int)(line.end - line.p), line.p);
}

char *cu_jit_info(const char *log, const Source *ptx, const LineMap *map, Diag *d) {
  char *text = NULL;
  size_t bytes = 0;
  FILE *out = open_memstream(&text, &bytes);
  if (!out) return NULL;
  Text all = text_of(log), line;
  while (next_line(&all, &line)) {
    warn_of(line, ptx, map, d);
    put_line(out, line, map);
  }
  if (fclose(out)) {
    free(text);
    return NULL;
  }
  return text;
}

const char *cu_driver_for(int ptx_version) {
  // The driver branch that first takes each .version (PTX ISA, release notes).
  static const struct { int ptx; const char *driver; } first[] = {
      {70, "r445"}, {71, "r455"}, {72, "r460"}, {73, "r465"}, {74, "r470"}, {75, "r495"},
      {76, "r510"}, {77, "r515"}, {78, "r520"}, {80, "r525"}, {81, "r530"}, {82, "r535"},
      {83, "r545"}, {84, "r550"}, {85, "r555"}, {86, "r565"}, {87, "r570"}, {88, "r575"},
      {90, "r580"}, {91, "r590"}, {92, "r595"},
  };
  for (size_t i = 0; i < sizeof first / sizeof *first; i++)
    if (first[i].ptx == ptx_version) return first[i].driver;
  return NULL;
}
