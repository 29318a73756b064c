#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "lua_env.h"

typedef struct Fixture {
  LuaEnv *e;
  Arena *arena;
  Diag *d;
} Fixture;

static int setup(void **state) {
  static Fixture f;
  f = (Fixture){lua_env_new(), arena_new(), diag_new()};
  *state = &f;
  return 0;
}

static int teardown(void **state) {
  Fixture *f = *state;
  lua_env_free(f->e);
  diag_free(f->d);
  arena_free(f->arena);
  return 0;
}

// The value the code returns, as text, or its diagnostics.
static const char *run(Fixture *f, const char *code) {
  diag_reset(f->d);
  Source *s = source_new(f->arena, "t.lua", code, strlen(code));
  if (lua_env_run(f->e, s, 1, f->d) != ST_OK) return diag_text(f->d);
  const char *text = arena_strdup(f->arena, luaL_tolstring(lua_env_state(f->e), -1, NULL));
  lua_settop(lua_env_state(f->e), 0);
  return text;
}

static void expect(Fixture *f, const char *code, const char *result) {
  assert_string_equal(run(f, code), result);
}

// The first message of code that must fail.
static void fails(Fixture *f, const char *code, const char *what) {
  const char *text = run(f, code);
  if (!f->d->first) fail_msg("no error but '%s' from: %s", text, code);
  if (!strstr(f->d->first->what, what)) fail_msg("'%s' is not in '%s'", what, f->d->first->what);
}

static void order_is_sorted(void **state) {
  expect(*state,
         "local t, s = {}, ''\n"
         "for i = 40, 1, -1 do t['k' .. i] = i end\n"
         "t[3], t[-1], t[2.5], t[true], t[false] = 1, 1, 1, 1, 1\n"
         "for k in pairs(t) do s = s .. tostring(k) .. ' ' end\n"
         "return s:sub(1, 30) .. s:sub(-14)",
         "-1 2.5 3 k1 k10 k11 k12 k13 k1k9 false true ");
  expect(
      *state,
      "local t = {a=1,b=2,c=3} for k in pairs(t) do t[k] = nil t.c = nil end return next_ok",
      "t.lua:1: error: undefined name 'next_ok'\n"
      "    local t = {a=1,b=2,c=3} for k in pairs(t) do t[k] = nil t.c = nil end return next_ok\n");
  fails(*state, "for k in pairs({[{}] = 1}) do end", "a key that is a table has no order");
}

static void nothing_outside_is_reachable(void **state) {
  static const char *const gone[] = {"io",       "os",      "load",   "loadstring",     "dofile",
                                     "loadfile", "require", "debug",  "package",        "coroutine",
                                     "rawset",   "next",    "xpcall", "collectgarbage", "print",
                                     "_G",       "warn"};
  for (size_t i = 0; i < sizeof gone / sizeof *gone; i++) {
    char code[64];
    snprintf(code, sizeof code, "return %s", gone[i]);
    fails(*state, code, "undefined name");
  }
  fails(*state, "return string.dump(function() end)", "'string' has no field 'dump'");
  fails(*state, "return math.random()", "'math' has no field 'random'");
  fails(*state, "string.rep = nil", "'string' can't be changed");
  fails(*state, "getmetatable('').__index = nil", "attempt to index a boolean value");
  fails(*state, "setmetatable(string, nil)", "protected");
  fails(*state, "setmetatable({}, {__gc = function() end})", "no __gc here");
}

static void one_chunk_does_not_see_anothers_globals(void **state) {
  expect(*state, "leak = 1 function helper() end return leak", "1");
  fails(*state, "return leak", "undefined name 'leak'");
  fails(*state, "helper()", "undefined name 'helper'");
}

static void undefined_names_suggest(void **state) {
  expect(*state, "head_dim = 64\nreturn haed_dim",
         "t.lua:2: error: undefined name 'haed_dim' (did you mean \"head_dim\"?)\n"
         "    return haed_dim\n");
}

static void errors_have_their_place(void **state) {
  expect(*state, "local x = 1\nlocal y = = 2\n",
         "t.lua:2: error: unexpected symbol near '='\n"
         "    local y = = 2\n");
  expect(*state,
         "local function f(t)\n  return t.a.b\nend\nlocal function g() local r = f({}) return r "
         "end\n\ng()",
         "t.lua:2: error: attempt to index a nil value (field 'a')\n"
         "      return t.a.b\n"
         "  t.lua:4: note: called from here\n"
         "    local function g() local r = f({}) return r end\n"
         "  t.lua:6: note: called from here\n"
         "    g()\n");
  // error(.., 2) blames the caller.
  expect(*state,
         "local function f() error('bad use', 2) end\nlocal function g()\n  f()\nend\ng()\n",
         "t.lua:3: error: bad use\n"
         "      f()\n"
         "  t.lua:5: note: called from here\n"
         "    g()\n");
  fails(*state, "error({})", "error with a table as its message");
  expect(*state, "local ok, m = pcall(error, 'plain') return m", "plain");
  expect(*state, "\nlocal ok, m = pcall(function() local x = nil + 1 end) return m",
         "t.lua:2: attempt to perform arithmetic on a nil value");
}

static void steps_are_bounded(void **state) {
  Fixture *f = *state;
  lua_env_limit(f->e, (LuaLimits){.steps = 100000});
  expect(f, "local n = 0\nwhile true do\n  n = n + 1 end",
         "t.lua:3: error: the Lua code took more than 100000 steps (a loop without an end?)\n"
         "      n = n + 1 end\n");
  // Neither pcall nor a handler inside it gets hold of the limit.
  lua_env_limit(f->e, (LuaLimits){.steps = 100000});
  fails(f, "while true do pcall(function() while true do end end) end", "more than 100000 steps");
  lua_env_limit(f->e, (LuaLimits){.steps = 100000});
  expect(f, "for i = 1, 10000 do end return 'fine'", "fine");
  fails(f, "for i = 1, 1000000 do end", "more than 100000 steps"); // the counter goes on
}

static void library_work_is_bounded(void **state) {
  static const char *const endless[] = {
      "return ('a'):rep(3000):find('.-.-.-.-.-b')",
      "return string.gsub(('a'):rep(30000), 'a*b', '')",
      "for w in (('('):rep(30000)):gmatch('%b()') do end",
      "return ('ab'):rep(1 << 40)",
      "local t = {} for i = 1, 20000 do t[i] = i end while true do table.insert(t, 1, 0) end",
      "local t = {} while true do for k in pairs(string.format and {1, 2, 3}) do end end",
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof endless / sizeof *endless; i++) {
    lua_env_limit(f->e, (LuaLimits){.steps = 2000000});
    fails(f, endless[i], "more than 2000000 steps");
  }
  lua_env_limit(f->e, (LuaLimits){0});
  expect(f, "return #string.rep('', 1 << 60)", "0");
  fails(f, "return table.concat({}, '', 1, 1 << 50)", "far outside");
  fails(f, "return table.unpack({}, 1, 100000000)", "far outside");
  fails(f, "table.insert(setmetatable({}, {__len = function() return 1 << 60 end}), 1, 0)",
        "a plain table");
}

static void memory_is_bounded(void **state) {
  static const char *const hogs[] = {
      "local s = 'x'\nwhile true do s = s .. s end",
      "local t = {}\nwhile true do t[#t + 1] = {} end",
      "local t, i = {}, 0\nwhile true do i = i + 1 t[i] = 'a string of its own ' .. i end",
      "local s = 1\ns = ('x'):rep(1000000):rep(1000)",
      "local t = {}\npcall(function() while true do t = {t} end end)",
  };
  Fixture *f = *state;
  for (size_t i = 0; i < sizeof hogs / sizeof *hogs; i++) {
    lua_env_limit(f->e, (LuaLimits){.steps = 1 << 30, .memory = 32 << 20});
    fails(f, hogs[i], "more than 32 MiB of memory");
    assert_string_equal(f->d->first->file, "t.lua"); // with its place
    assert_int_equal(f->d->first->line, 2);
  }
  // Garbage is no hog.
  lua_env_limit(f->e, (LuaLimits){.steps = 1 << 30, .memory = 32 << 20});
  expect(f, "local s for i = 1, 200 do s = ('x'):rep(1000000 + i) end return #s", "1000200");
}

static void deep_recursion_is_an_error(void **state) {
  fails(*state, "local function f() return 1 + f() end f()", "stack overflow");
  fails(*state, "local function f() pcall(f) f() end f()", "stack overflow");
}

static void nothing_prints_as_an_address(void **state) {
  expect(*state, "return tostring({}) .. tostring(tostring)", "tablefunction");
  fails(*state, "return string.format('%s', {})", "argument 1 is a table");
  fails(*state, "return ('%p'):format('x')", "%p is another number in every run");
  expect(*state, "return ('%5.2f|%s|%d%%'):format(1.5, 'a', 4.0)", " 1.50|a|4%");
}

// Each line: an expression, and what Lua's own library gives for it.
static void patterns_mean_what_they_mean_in_lua(void **state) {
  static const char *const cases[][2] = {
      {"('hello world'):find('o w')", "5"},
      {"('hello'):find('l', 1, true)", "3"},
      {"('hello'):find('xyz') == nil", "true"},
      {"('hello'):find('', 10) == nil", "true"},
      {"('hello'):find('', 6)", "6"},
      {"('a.b'):find('.', 2, true)", "2"},
      {"('key = value'):match('^(%w+)%s*=%s*(%w+)$')", "key"},
      {"select(2, ('key = value'):match('^(%w+)%s*=%s*(%w+)$'))", "value"},
      {"('  trim  '):match('^%s*(.-)%s*$') .. '|'", "trim|"},
      {"('f(a(b)c)d'):match('%b()')", "(a(b)c)"},
      {"('THE (quick) fox'):find('%((%a+)%)')", "5"},
      {"('abc'):match('()b()')", "2"},
      {"select(2, ('abc'):match('()b()'))", "3"},
      {"('x=\"it\"s'):match('([\"\\'])(.-)%1')", "\""},
      {"('[]]'):match('[]]+')", "]]"},
      {"('a-z'):match('[a%-]+')", "a-"},
      {"('abc123'):match('[^%d]+')", "abc"},
      {"('THE (quick) fox'):gsub('%f[%a]%a+', 'w')", "w (w) w"},
      {"('abc'):gsub('', '-')", "-a-b-c-"},
      {"('abc'):gsub('%w', '%0%0')", "aabbcc"},
      {"('hello world'):gsub('o', {o = '0'})", "hell0 w0rld"},
      {"('abc'):gsub('b', function() return nil end)", "abc"},
      {"('a b c'):gsub('%s', '%%', 1)", "a%b c"},
      {"('aaa'):gsub('^a', 'b')", "baa"},
      {"select(2, ('aaa'):gsub('a', 'b'))", "3"},
      {"('abc'):gsub('(b)', '<%1>')", "a<b>c"},
      {"('ab'):match('a?b?c?')", "ab"},
      {"('b'):match('a?b')", "b"},
      {"('aab'):match('a-b')", "aab"},
      {"('x'):match('y*') == ''", "true"},
      {"('a$'):match('a$') == nil", "true"},
      {"('a$b'):match('$b')", "$b"},
      {"('\\0a'):match('%z') == nil", "true"},
  };
  char code[200];
  for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
    snprintf(code, sizeof code, "return (%s)", cases[i][0]);
    expect(*state, code, cases[i][1]);
  }
  expect(
      *state,
      "local s = '' for k, v in ('a=1, b=2'):gmatch('(%w+)=(%w+)') do s = s .. k .. v end return s",
      "a1b2");
  expect(*state, "local n = 0 for w in ('abc'):gmatch('%w*') do n = n + 1 end return n", "1");
  fails(*state, "return ('a'):find('[a')", "missing ']'");
  fails(*state, "return ('a'):find('%')", "ends with '%'");
  fails(*state, "return ('a'):find('(a')", "'(' without ')'");
  fails(*state, "return ('ab'):find('a.)')", "')' without '('");
  fails(*state, "return ('a'):find('%1')", "no such capture");
  fails(*state, "return ('a'):find('%b(')", "missing arguments to %b");
  fails(*state, "return ('a'):gsub('a', '%2')", "no capture %2");
  fails(*state, "return ('a'):rep(50):find(('(a)'):rep(40))", "too many captures");
}

static int ask_to_stop(lua_State *L) { return lua_env_stop(L); }
static int complain(lua_State *L) { return lua_env_error(L, "told by C: %d", 7); }

static void functions_written_in_c(void **state) {
  Fixture *f = *state;
  static const luaL_Reg fns[] = {{"stop", ask_to_stop}, {"complain", complain}, {NULL, NULL}};
  lua_env_register(f->e, NULL, fns);
  lua_env_register(f->e, "mod", fns);
  Source *s = source_new(f->arena, "s", "pcall(mod.stop) complain()", 26);
  lua_State *L = lua_env_state(f->e);
  assert_int_equal(lua_env_run(f->e, s, 0, f->d), ST_OK); // through pcall, and nothing is left
  assert_int_equal(lua_gettop(L), 0);
  expect(f, "\ncomplain()", "t.lua:2: error: told by C: 7\n    complain()\n");
  fails(f, "mod.stop = 1", "'mod' can't be changed");
  // Bytecode is refused.
  Source *b = source_new(f->arena, "b", "\033Lua", 4);
  assert_int_equal(lua_env_load(f->e, b, NULL, 0, ORIGIN_FILE, f->d), ST_INPUT);
  assert_int_equal(lua_gettop(L), 0);
}

static void text_of_values(void **state) {
  Fixture *f = *state;
  lua_State *L = lua_env_state(f->e);
  size_t n;
  const char *why = NULL;
  lua_pushinteger(L, -12);
  assert_string_equal(lua_env_text(L, -1, &n, &why), "-12");
  lua_pushboolean(L, 1);
  assert_string_equal(lua_env_text(L, -1, &n, &why), "1");
  lua_pushnumber(L, 4.0);
  assert_null(lua_env_text(L, -1, &n, &why));
  assert_non_null(strstr(why, "//"));
  lua_pushnil(L);
  assert_null(lua_env_text(L, -1, &n, &why));
  assert_string_equal(why, "is nil");
}

int main(void) {
#define TEST(f) cmocka_unit_test_setup_teardown(f, setup, teardown)
  const struct CMUnitTest tests[] = {
      TEST(order_is_sorted),
      TEST(nothing_outside_is_reachable),
      TEST(one_chunk_does_not_see_anothers_globals),
      TEST(undefined_names_suggest),
      TEST(errors_have_their_place),
      TEST(steps_are_bounded),
      TEST(library_work_is_bounded),
      TEST(memory_is_bounded),
      TEST(deep_recursion_is_an_error),
      TEST(nothing_prints_as_an_address),
      TEST(patterns_mean_what_they_mean_in_lua),
      TEST(functions_written_in_c),
      TEST(text_of_values),
  };
  return cmocka_run_group_tests(tests, NULL, NULL);
}
