// Session: where files are found, compiled chunks, templates.  Internal to gen/.
#ifndef PTXSMITH_SESSION_H
#define PTXSMITH_SESSION_H

#include "expand.h"

typedef struct SessionFile {
  const char *path;
  const Source *src;
  int chunk; // reference in the Lua registry, LUA_NOREF before the first use
  bool user; // a hook: outside of the session's own files
  bool proved; // a hook: whatever checks hooks takes it (variant.c)
} SessionFile;

struct Session {
  Arena *arena;
  LuaEnv *env;
  const char *dir; // NULL: built-in files only
  TemplateLines lines;
  SessionFile **files; int nfiles, files_cap;
  const TemplateInfo **templates; int ntemplates, templates_cap; // those asked for so far
};

// A file by its path ("templates/lib/x.inc"); NULL when there is none.  ST_INPUT: the user's is
// there and can't be read.
Status session_find(Session *s, const char *path, const Source **out, Diag *d);
// ` (did you mean "...")` among the files that are there.
const char *session_nearest(Session *s, Arena *a, const char *path);
// Pushes the compiled chunk of a file, compiling it at first use.
Status session_push_chunk(Session *s, const Source *src, OriginKind kind, Diag *d);

// The running variant's globals.
void session_push_environment(lua_State *L);

// The entry of a source that the session knows.
SessionFile *session_file_of(Session *s, const Source *src);

// Runs a template.  x->v->arena, opts, given, d and the flags are set by the caller.
Status session_expand(Session *s, const char *template_name, Expansion *x);

#endif
