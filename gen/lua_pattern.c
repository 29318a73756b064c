// string.find, match, gmatch and gsub with Lua's patterns, every comparison counted as a step: a
// pattern like ".-.-.-.-b" takes time in a high power of the subject's length.
#include "lua_env_impl.h"

#include <ctype.h>
#include <string.h>

enum { MAX_CAPTURES = 32, MAX_DEPTH = 150, CHARGE_EVERY = 512 };
enum { CAP_OPEN = -1, CAP_POSITION = -2 };

typedef struct Capture {
  const char *at;
  ptrdiff_t len; // or CAP_OPEN, CAP_POSITION
} Capture;

typedef struct Match {
  lua_State *L;
  const char *src, *src_end, *pat_end;
  int depth, ncap, work;
  Capture cap[MAX_CAPTURES];
} Match;

static const char *match_here(Match *m, const char *s, const char *p);

static void count_work(Match *m) {
  if (++m->work < CHARGE_EVERY) return;
  m->work = 0;
  lua_env_charge_steps(m->L, CHARGE_EVERY);
}

static const char *malformed(Match *m, const char *why) {
  lua_env_error(m->L, "malformed pattern (%s)", why);
  return NULL;
}

// ---- single characters -------------------------------------------------------------------------

static bool in_class(int c, int cl) {
  bool in;
  switch (tolower(cl)) {
  case 'a': in = isalpha(c); break;
  case 'c': in = iscntrl(c); break;
  case 'd': in = isdigit(c); break;
  case 'g': in = isgraph(c); break;
  case 'l': in = islower(c); break;
  case 'p': in = ispunct(c); break;
  case 's': in = isspace(c); break;
  case 'u': in = isupper(c); break;
  case 'w': in = isalnum(c); break;
  case 'x': in = isxdigit(c); break;
  default: return cl == c;
  }
  return isupper(cl) ? !in : in;
}

// The end of the single-character item at p: ".", "%a", "[...]" or a plain character.
static const char *item_end(Match *m, const char *p) {
  char c = *p++;
  if (c == '%') return p < m->pat_end ? p + 1 : malformed(m, "ends with '%'");
  if (c != '[') return p;
  if (p < m->pat_end && *p == '^') p++;
  const char *first = p; // a ']' that comes first stands for itself
  for (; p < m->pat_end && (*p != ']' || p == first); p++)
    if (*p == '%') p++;
  return p < m->pat_end ? p + 1 : malformed(m, "missing ']'");
}

// [set] from p to its ']' at end - 1.
static bool in_set(int c, const char *p, const char *end) {
  bool in = true;
  end--;
  if (*++p == '^') in = false, p++;
  for (; p < end; p++) {
    if (*p == '%') {
      if (in_class(c, (unsigned char)*++p)) return in;
    } else if (p + 2 < end && p[1] == '-') {
      if ((unsigned char)p[0] <= c && c <= (unsigned char)p[2]) return in;
      p += 2;
    } else if ((unsigned char)*p == c) {
      return in;
    }
  }
  return !in;
}

static bool one(Match *m, const char *s, const char *p, const char *end) {
  count_work(m);
  if (s >= m->src_end) return false;
  int c = (unsigned char)*s;
  switch (*p) {
  case '.': return true;
  case '%': return in_class(c, (unsigned char)p[1]);
  case '[': return in_set(c, p, end);
  default: return (unsigned char)*p == c;
  }
}

// ---- items -------------------------------------------------------------------------------------

static const char *greedy(Match *m, const char *s, const char *p, const char *end) {
  ptrdiff_t n = 0;
  while (one(m, s + n, p, end)) n++;
  for (; n >= 0; n--) {
    const char *r = match_here(m, s + n, end + 1);
    if (r) return r;
  }
  return NULL;
}

static const char *lazy(Match *m, const char *s, const char *p, const char *end) {
  for (;; s++) {
    const char *r = match_here(m, s, end + 1);
    if (r) return r;
    if (!one(m, s, p, end)) return NULL;
  }
}

static const char *balanced(Match *m, const char *s, const char *p) {
  if (m->pat_end - p < 4) return malformed(m, "missing arguments to %b");
  char open = p[2], close = p[3];
  if (s >= m->src_end || *s != open) return NULL;
  int depth = 1;
  while (++s < m->src_end) {
    count_work(m);
    if (*s == close) {
      if (--depth == 0) return s + 1;
    } else if (*s == open) {
      depth++;
    }
  }
  return NULL;
}

static bool frontier(Match *m, const char *s, const char *set, const char *end) {
  int before = s == m->src ? 0 : (unsigned char)s[-1];
  int here = s == m->src_end ? 0 : (unsigned char)*s;
  return !in_set(before, set, end) && in_set(here, set, end);
}

static const char *open_capture(Match *m, const char *s, const char *p) {
  if (m->ncap == MAX_CAPTURES) return malformed(m, "too many captures");
  bool position = p + 1 < m->pat_end && p[1] == ')';
  m->cap[m->ncap++] = (Capture){s, position ? CAP_POSITION : CAP_OPEN};
  const char *r = match_here(m, s, p + (position ? 2 : 1));
  if (!r) m->ncap--;
  return r;
}

static const char *close_capture(Match *m, const char *s, const char *p) {
  int i = m->ncap - 1;
  while (i >= 0 && m->cap[i].len != CAP_OPEN) i--;
  if (i < 0) return malformed(m, "')' without '('");
  m->cap[i].len = s - m->cap[i].at;
  const char *r = match_here(m, s, p + 1);
  if (!r) m->cap[i].len = CAP_OPEN;
  return r;
}

static const char *back_reference(Match *m, const char *s, char digit) {
  int i = digit - '1';
  if (i < 0 || i >= m->ncap || m->cap[i].len < 0) return malformed(m, "no such capture");
  size_t n = (size_t)m->cap[i].len;
  if ((size_t)(m->src_end - s) < n || memcmp(s, m->cap[i].at, n) != 0) return NULL;
  return s + n;
}

// One step of the pattern at *p.  True: go on from *s, *p.  False: *s is the result.
static bool step(Match *m, const char **s, const char **p) {
  const char *at = *p, *end;
  switch (*at) {
  case '(': *s = open_capture(m, *s, at); return false;
  case ')': *s = close_capture(m, *s, at); return false;
  case '$':
    if (at + 1 != m->pat_end) break;
    if (*s != m->src_end) *s = NULL;
    return false;
  case '%':
    if (at + 1 == m->pat_end) break;
    if (at[1] == 'b') {
      *p = at + 4;
      return (*s = balanced(m, *s, at)) != NULL;
    }
    if (at[1] == 'f') {
      if (at + 2 == m->pat_end || at[2] != '[') malformed(m, "missing '[' after %f");
      *p = end = item_end(m, at + 2);
      if (frontier(m, *s, at + 2, end)) return true;
      *s = NULL;
      return false;
    }
    if (isdigit((unsigned char)at[1])) {
      *p = at + 2;
      return (*s = back_reference(m, *s, at[1])) != NULL;
    }
    break;
  }
  end = item_end(m, at);
  switch (end < m->pat_end ? *end : 0) {
  case '*': *s = greedy(m, *s, at, end); return false;
  case '+': *s = one(m, *s, at, end) ? greedy(m, *s + 1, at, end) : NULL; return false;
  case '-': *s = lazy(m, *s, at, end); return false;
  case '?': {
    const char *r = one(m, *s, at, end) ? match_here(m, *s + 1, end + 1) : NULL;
    *p = end + 1;
    if (!r) return true;
    *s = r;
    return false;
  }
  }
  bool hit = one(m, *s, at, end);
  *p = end;
  *s = hit ? *s + 1 : NULL;
  return hit;
}

static const char *match_here(Match *m, const char *s, const char *p) {
  if (++m->depth > MAX_DEPTH) lua_env_error(m->L, "pattern too complex");
  count_work(m);
  while (p != m->pat_end)
    if (!step(m, &s, &p)) break;
  m->depth--;
  return s;
}

// ---- results -----------------------------------------------------------------------------------

static const char *match_at(Match *m, const char *s, const char *p) {
  m->ncap = m->depth = 0;
  return match_here(m, s, p);
}

static void push_capture(Match *m, int i, const char *s, const char *e) {
  if (i >= m->ncap) {
    if (i > 0) lua_env_error(m->L, "no capture %%%d in the pattern", i + 1);
    lua_pushlstring(m->L, s, (size_t)(e - s)); // no captures: the whole match
  } else if (m->cap[i].len == CAP_POSITION) {
    lua_pushinteger(m->L, m->cap[i].at - m->src + 1);
  } else {
    if (m->cap[i].len == CAP_OPEN) malformed(m, "'(' without ')'");
    lua_pushlstring(m->L, m->cap[i].at, (size_t)m->cap[i].len);
  }
}

static int push_captures(Match *m, const char *s, const char *e) {
  int n = m->ncap || !s ? m->ncap : 1;
  luaL_checkstack(m->L, n, "too many captures");
  for (int i = 0; i < n; i++) push_capture(m, i, s, e);
  return n;
}

static Match match_new(lua_State *L, const char **pat) {
  size_t n, np;
  const char *s = luaL_checklstring(L, 1, &n), *p = luaL_checklstring(L, 2, &np);
  *pat = p;
  return (Match){.L = L, .src = s, .src_end = s + n, .pat_end = p + np};
}

static int find_or_match(lua_State *L, bool find) {
  const char *p;
  Match m = match_new(L, &p);
  lua_Integer n = m.src_end - m.src, init = luaL_optinteger(L, 3, 1);
  if (init < 0) init = init < -n ? 1 : n + init + 1;
  if (init == 0) init = 1;
  if (init > n + 1) return lua_pushnil(L), 1;
  const char *s = m.src + init - 1;
  size_t np = (size_t)(m.pat_end - p);
  if (find && (lua_toboolean(L, 4) || strcspn(p, "^$*+?.([%-") == np)) {
    lua_env_charge_steps(L, (uint64_t)(n / 8));
    const char *at = np ? memmem(s, (size_t)(m.src_end - s), p, np) : s;
    if (!at) return lua_pushnil(L), 1;
    lua_pushinteger(L, at - m.src + 1);
    lua_pushinteger(L, at - m.src + (lua_Integer)np);
    return 2;
  }
  bool anchor = np && *p == '^';
  if (anchor) p++;
  do {
    const char *e = match_at(&m, s, p);
    if (!e) continue;
    if (!find) return push_captures(&m, s, e);
    lua_pushinteger(L, s - m.src + 1);
    lua_pushinteger(L, e - m.src);
    return push_captures(&m, NULL, NULL) + 2;
  } while (s++ < m.src_end && !anchor);
  return lua_pushnil(L), 1;
}

static int string_find(lua_State *L) { return find_or_match(L, true); }
static int string_match(lua_State *L) { return find_or_match(L, false); }

// Upvalues: subject, pattern, where to go on, end of the last match (an empty match there is none).
static int gmatch_next(lua_State *L) {
  lua_settop(L, 0);
  lua_pushvalue(L, lua_upvalueindex(1));
  lua_pushvalue(L, lua_upvalueindex(2));
  const char *p;
  Match m = match_new(L, &p);
  lua_Integer last = lua_tointeger(L, lua_upvalueindex(4));
  for (const char *s = m.src + lua_tointeger(L, lua_upvalueindex(3)); s <= m.src_end; s++) {
    const char *e = match_at(&m, s, p);
    if (!e || e - m.src == last) continue;
    lua_pushinteger(L, e - m.src);
    lua_copy(L, -1, lua_upvalueindex(3));
    lua_replace(L, lua_upvalueindex(4));
    return push_captures(&m, s, e);
  }
  return 0;
}

static int string_gmatch(lua_State *L) {
  luaL_checkstring(L, 1);
  luaL_checkstring(L, 2);
  lua_settop(L, 2);
  lua_pushinteger(L, 0);
  lua_pushinteger(L, -1);
  lua_pushcclosure(L, gmatch_next, 4);
  return 1;
}

static void add_template(Match *m, luaL_Buffer *b, const char *s, const char *e) {
  size_t n;
  const char *r = lua_tolstring(m->L, 3, &n);
  for (const char *end = r + n; r < end; r++) {
    if (*r != '%') {
      luaL_addchar(b, *r);
      continue;
    }
    r++;
    if (r < end && *r == '%') {
      luaL_addchar(b, '%');
    } else if (r < end && *r == '0') {
      luaL_addlstring(b, s, (size_t)(e - s));
    } else if (r < end && isdigit((unsigned char)*r)) {
      push_capture(m, *r - '1', s, e);
      luaL_tolstring(m->L, -1, NULL); // a position is a number
      lua_remove(m->L, -2);
      luaL_addvalue(b);
    } else {
      lua_env_error(m->L, "gsub: '%%' in the replacement wants a digit or '%%'");
    }
  }
}

static void add_replacement(Match *m, luaL_Buffer *b, const char *s, const char *e) {
  lua_State *L = m->L;
  switch (lua_type(L, 3)) {
  case LUA_TFUNCTION:
    lua_pushvalue(L, 3);
    lua_call(L, push_captures(m, s, e), 1);
    break;
  case LUA_TTABLE:
    push_capture(m, 0, s, e);
    lua_gettable(L, 3);
    break;
  default: add_template(m, b, s, e); return;
  }
  if (!lua_toboolean(L, -1)) { // false or nil: keep
    lua_pop(L, 1);
    lua_pushlstring(L, s, (size_t)(e - s));
  } else if (!lua_isstring(L, -1)) {
    lua_env_error(L, "gsub: a replacement that is a %s", luaL_typename(L, -1));
  }
  luaL_addvalue(b);
}

static int string_gsub(lua_State *L) {
  const char *p;
  Match m = match_new(L, &p);
  int t = lua_type(L, 3);
  if (t != LUA_TSTRING && t != LUA_TNUMBER && t != LUA_TTABLE && t != LUA_TFUNCTION)
    return lua_env_error(L, "gsub: the replacement is a %s", luaL_typename(L, 3));
  lua_Integer max = luaL_optinteger(L, 4, LUA_MAXINTEGER), n = 0;
  bool anchor = p < m.pat_end && *p == '^';
  if (anchor) p++;
  const char *s = m.src, *last = NULL;
  luaL_Buffer b;
  luaL_buffinit(L, &b);
  while (n < max) {
    const char *e = match_at(&m, s, p);
    if (e && e != last) {
      n++;
      add_replacement(&m, &b, s, e);
      s = last = e;
    } else if (s < m.src_end) {
      luaL_addchar(&b, *s++);
    } else {
      break;
    }
    if (anchor) break;
  }
  luaL_addlstring(&b, s, (size_t)(m.src_end - s));
  luaL_pushresult(&b);
  lua_pushinteger(L, n);
  return 2;
}

void lua_pattern_open(lua_State *L) {
  static const luaL_Reg functions[] = {
      {"find", string_find},
      {"match", string_match},
      {"gmatch", string_gmatch},
      {"gsub", string_gsub},
      {NULL, NULL},
  };
  luaL_setfuncs(L, functions, 0);
}
