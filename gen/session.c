#include "session.h"

#include <assert.h>
#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "embedded.h"

static const char TEMPLATES[] = "templates/", SUFFIX[] = ".ptx.in";
static const char environment_key = 0;

// ---- life --------------------------------------------------------------------------------------

const char *session_folder(const Session *s) { return s->dir; }

static bool is_folder(const char *path) {
  struct stat st;
  return !stat(path, &st) && S_ISDIR(st.st_mode);
}

// A folder of the user's that takes the place of nothing is the wrong one.
static bool holds_some(Arena *a, const char *dir) {
  return is_folder(arena_printf(a, "%s/templates", dir)) ||
         is_folder(arena_printf(a, "%s/lua", dir));
}

Session *session_open(const char *dir, Diag *d) {
  Arena *a = arena_new();
  if (dir && (!is_folder(dir) || !holds_some(a, dir))) {
    if (is_folder(dir)) diag_fail(d, ST_INPUT, "'%s' holds neither templates/ nor lua/", dir);
    else diag_fail(d, ST_INPUT, "'%s' is not a folder (it should hold templates/)", dir);
    arena_free(a);
    return NULL;
  }
  Session *s = arena_new_of(a, Session);
  s->arena = a;
  s->dir = dir ? arena_strdup(a, dir) : NULL;
  s->env = lua_env_new();
  static const luaL_Reg *const tables[] = {declare_functions, emit_functions,   block_functions,
                                           entry_functions,   memory_functions, value_functions,
                                           hook_functions,    fragment_functions};
  for (size_t i = 0; i < sizeof tables / sizeof *tables; i++)
    lua_env_register(s->env, NULL, tables[i]);
  values_open(s->env);
  blocks_open(s->env);
  return s;
}

void session_close(Session *s) {
  if (!s) return;
  lua_env_free(s->env);
  arena_free(s->arena);
}

// ---- files -------------------------------------------------------------------------------------

static SessionFile *add_file(Session *s, const char *path, const Source *src, bool user) {
  SessionFile *f = arena_new_of(s->arena, SessionFile);
  *f = (SessionFile){arena_strdup(s->arena, path), src, LUA_NOREF, user, false};
  *arena_push(s->arena, s->files, s->nfiles, s->files_cap) = f;
  return f;
}

// NULL where the user has no such file.
static Status read_override(Session *s, const char *path, const Source **out, Diag *d) {
  *out = NULL;
  if (!s->dir) return ST_OK;
  const char *full = arena_printf(s->arena, "%s/%s", s->dir, path);
  struct stat st;
  // What is there and can't be read is an error: a link to nowhere, a directory, a closed folder.
  if (lstat(full, &st) != 0 && (errno == ENOENT || errno == ENOTDIR)) return ST_OK;
  if (stat(full, &st) == 0 && !S_ISREG(st.st_mode)) // a pipe would wait for a writer
    return diag_fail(d, ST_INPUT, "'%s' is no file to read", full);
  Source *src;
  Status read = source_read(s->arena, full, &src, d);
  *out = src;
  return read;
}

static const EmbeddedFile *find_embedded(const char *path) {
  for (int i = 0; i < embedded_nfiles; i++)
    if (strcmp(embedded_files[i].path, path) == 0) return &embedded_files[i];
  return NULL;
}

Status session_find(Session *s, const char *path, const Source **out, Diag *d) {
  for (int i = 0; i < s->nfiles; i++)
    if (!s->files[i]->user && strcmp(s->files[i]->path, path) == 0)
      return *out = s->files[i]->src, ST_OK;
  Status st = read_override(s, path, out, d);
  if (st != ST_OK) return st; // the built-in one is not what the user meant
  const EmbeddedFile *e = *out ? NULL : find_embedded(path);
  if (e) *out = source_new(s->arena, e->path, e->text, e->len);
  if (*out) add_file(s, path, *out, false);
  return ST_OK;
}

Status session_file(Session *s, const char *path, const Source **out, Diag *d) {
  Status st = session_find(s, path, out, d);
  if (st != ST_OK || *out) return st;
  return diag_fail(d, ST_INPUT, "there is no file '%s'%s", path,
                   session_nearest(s, d->arena, path));
}

// A user's file, read anew; the same Source as before when its text is the same.
static Status session_user_file(Session *s, const char *path, const Source **out, Diag *d) {
  Source *now;
  *out = NULL;
  Status st = source_read(s->arena, path, &now, d);
  if (st != ST_OK) return st;
  for (int i = s->nfiles - 1; i >= 0 && !*out; i--) {
    const Source *old = s->files[i]->src;
    bool same = s->files[i]->user && strcmp(old->name, path) == 0 && old->len == now->len &&
                memcmp(old->text, now->text, now->len) == 0;
    if (same) *out = old;
  }
  if (!*out) *out = add_file(s, path, now, true)->src;
  return ST_OK;
}

// ---- names -------------------------------------------------------------------------------------

typedef struct Names {
  const char **v;
  int n, cap;
} Names;

static int compare_names(const void *a, const void *b) {
  return strcmp(*(const char *const *)a, *(const char *const *)b);
}

// Sorted, each once.
static void sort_names(Names *names) {
  if (names->n) qsort(names->v, (size_t)names->n, sizeof *names->v, compare_names);
  int n = 0;
  for (int i = 0; i < names->n; i++)
    if (!n || strcmp(names->v[n - 1], names->v[i]) != 0) names->v[n++] = names->v[i];
  names->n = n;
}

// "decode_splitk" of "decode_splitk.ptx.in"; NULL when it is no template.
static const char *template_name_of(Arena *a, const char *file) {
  size_t n = strlen(file), k = sizeof SUFFIX - 1;
  if (n <= k || strcmp(file + n - k, SUFFIX) != 0 || strchr(file, '/')) return NULL;
  return arena_strndup(a, file, n - k);
}

static void add_template_name(Session *s, Names *names, const char *file) {
  const char *name = template_name_of(s->arena, file);
  if (name) *arena_push(s->arena, names->v, names->n, names->cap) = name;
}

static Names template_names(Session *s) {
  Names names = {0};
  size_t skip = sizeof TEMPLATES - 1;
  for (int i = 0; i < embedded_nfiles; i++)
    if (strncmp(embedded_files[i].path, TEMPLATES, skip) == 0)
      add_template_name(s, &names, embedded_files[i].path + skip);
  DIR *dir = s->dir ? opendir(arena_printf(s->arena, "%s/%s", s->dir, TEMPLATES)) : NULL;
  for (struct dirent *e; dir && (e = readdir(dir));) add_template_name(s, &names, e->d_name);
  if (dir) closedir(dir);
  sort_names(&names);
  return names;
}

static void add_folder(Session *s, Names *names, const char *below) {
  DIR *dir = s->dir ? opendir(arena_printf(s->arena, "%s/%s%s", s->dir, TEMPLATES, below)) : NULL;
  for (struct dirent *e; dir && (e = readdir(dir));)
    if (e->d_name[0] != '.')
      *arena_push(s->arena, names->v, names->n, names->cap) =
          arena_printf(s->arena, "%s%s%s", TEMPLATES, below, e->d_name);
  if (dir) closedir(dir);
}

const char *session_nearest(Session *s, Arena *a, const char *path) {
  Names names = {0};
  for (int i = 0; i < embedded_nfiles; i++)
    *arena_push(s->arena, names.v, names.n, names.cap) = embedded_files[i].path;
  add_folder(s, &names, "");
  add_folder(s, &names, "lib/");
  sort_names(&names);
  return diag_nearest(a, path, names.v, names.n);
}

// ---- chunks ------------------------------------------------------------------------------------

SessionFile *session_file_of(Session *s, const Source *src) {
  SessionFile *f = NULL;
  for (int i = 0; i < s->nfiles; i++)
    if (s->files[i]->src == src) f = s->files[i];
  assert(f);
  return f;
}

Status session_push_chunk(Session *s, const Source *src, OriginKind kind, Diag *d) {
  lua_State *L = lua_env_state(s->env);
  SessionFile *f = session_file_of(s, src);
  if (f->chunk == LUA_NOREF) {
    size_t len;
    const char *lua = template_translate(s->arena, src, &s->lines, &len, d);
    if (!lua) return ST_INPUT;
    Status st = lua_env_load(s->env, src, lua, len, kind, d);
    if (st != ST_OK) return st;
    f->chunk = luaL_ref(L, LUA_REGISTRYINDEX);
  }
  lua_rawgeti(L, LUA_REGISTRYINDEX, f->chunk);
  return ST_OK;
}

void session_push_environment(lua_State *L) { lua_rawgetp(L, LUA_REGISTRYINDEX, &environment_key); }

static Status run(Session *s, Expansion *x, const Source *src) {
  lua_State *L = lua_env_state(s->env);
  lua_env_limit(s->env, (LuaLimits){x->opts->step_limit, x->opts->memory_limit});
  lua_env_set_user(s->env, x);
  Status st = session_push_chunk(s, src, ORIGIN_FILE, x->d);
  if (st != ST_OK) return st;
  lua_env_open(s->env);
  lua_pushvalue(L, -1);
  lua_rawsetp(L, LUA_REGISTRYINDEX, &environment_key);
  lua_env_bind(s->env);
  return lua_env_call(s->env, 0, 0, x->d);
}

Status session_expand(Session *s, const char *template_name, Expansion *x) {
  const char *path = arena_printf(x->v->arena, "%s%s%s", TEMPLATES, template_name, SUFFIX);
  const Source *src = NULL;
  Status found = strchr(template_name, '/') ? ST_OK : session_find(s, path, &src, x->d);
  if (found != ST_OK) return found;
  if (!src) {
    Names names = template_names(s);
    return diag_fail(x->d, ST_INPUT, "there is no template '%s'%s", template_name,
                     diag_nearest(x->d->arena, template_name, names.v, names.n));
  }
  x->session = s;
  x->env = s->env;
  x->arena = x->v->arena;
  x->sink = &x->main;
  x->info = arena_new_of(x->arena, TemplateInfo);
  x->info->name = arena_strdup(x->arena, template_name);
  x->info->path = path;
  x->v->tmpl = x->info;
  x->min_ptx = 70;
  x->min_sm = 80;
  if (x->opts->hook_path) {
    Status st = session_user_file(s, x->opts->hook_path, &x->hook, x->d);
    if (st != ST_OK) return st;
  }
  Status st = run(s, x, src);
  x->info->args = x->v->args;
  x->info->nargs = x->v->nargs;
  if (st == ST_OK && !x->in_body && !x->failed_constraint)
    st = diag_error(x->d, (Place){.src = src, .line = src->nlines},
                    "the template has no entry_begin() and no PTX line");
  return st;
}

// ---- templates ---------------------------------------------------------------------------------

static Status describe(Session *s, const char *name, const TemplateInfo **out, Diag *d) {
  static const VariantOpts none = {0};
  Variant *v = arena_new_of(s->arena, Variant);
  v->arena = s->arena;
  Expansion x = {.v = v, .opts = &none, .d = d, .declare_only = true};
  Status st = session_expand(s, name, &x);
  *out = st == ST_OK ? v->tmpl : NULL;
  return st;
}

Status session_template(Session *s, const char *name, const TemplateInfo **out, Diag *d) {
  for (int i = 0; i < s->ntemplates; i++)
    if (strcmp(s->templates[i]->name, name) == 0) return *out = s->templates[i], ST_OK;
  Status st = describe(s, name, out, d);
  if (st == ST_OK) *arena_push(s->arena, s->templates, s->ntemplates, s->templates_cap) = *out;
  return st;
}

Status session_templates(Session *s, const TemplateInfo ***out, int *n, Diag *d) {
  Names names = template_names(s);
  const TemplateInfo **all = arena_array(s->arena, const TemplateInfo *, names.n + 1);
  Status st = ST_OK;
  *n = 0;
  for (int i = 0; i < names.n; i++) // a broken one does not hide the others' messages
    if (session_template(s, names.v[i], &all[*n], d) == ST_OK) ++*n;
    else st = ST_INPUT;
  *out = all;
  return st;
}

const ParamDecl *template_param(const TemplateInfo *t, const char *name) {
  for (int i = 0; i < t->nparams; i++)
    if (!strcmp(t->params[i].name, name)) return &t->params[i];
  return NULL;
}
