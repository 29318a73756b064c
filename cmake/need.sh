# shellcheck shell=bash
# Sourced by quickstart and check: what must be installed, and how.
# need COMMAND-THAT-TESTS PACKAGE ... notes what is missing; need_install installs it all.

say() { printf '%s\n' "$*"; }
die() { printf '%s: %s\n' "${0##*/}" "$1" >&2; exit "${2:-2}"; }

missing=()

# need TEST PACKAGE...: when the shell command TEST fails, the packages are wanted.
need() {
  local test=$1
  shift
  if ! eval "$test" >/dev/null 2>&1; then missing+=("$@"); fi
}

has() { command -v "$1" >/dev/null 2>&1; }

has_header() { # of Lua 5.4 or cmocka, where the C compiler looks
  local cc=cc
  has cc || cc=gcc
  printf '#include <%s>\n' "$1" | "$cc" -I/usr/include/lua5.4 -I/usr/local/include/lua5.4 \
    -include stdarg.h -include stddef.h -include setjmp.h -include stdint.h -fsyntax-only -x c -
}

need_build() {
  need 'has cc || has gcc' gcc libc6-dev
  need 'has cmake' cmake
  need 'has ninja || has make' ninja-build
  need 'has_header lua.h' liblua5.4-dev
}

# Installs what is missing when root; otherwise prints the one line that does and stops.
need_install() {
  if [ ${#missing[@]} = 0 ]; then return 0; fi
  local line="apt-get install -y --no-install-recommends ${missing[*]}"
  if ! has apt-get; then
    die "missing: ${missing[*]} (names of Debian packages; this system has no apt-get)"
  fi
  if [ "$(id -u)" != 0 ]; then die "missing packages; as root run: $line"; fi
  say "installing ${missing[*]}"
  export DEBIAN_FRONTEND=noninteractive
  local log
  log=$(mktemp)
  if ! { apt-get update && $line; } >"$log" 2>&1 </dev/null; then
    tail -n 15 "$log" >&2
    rm -f "$log"
    die "installing failed: $line"
  fi
  rm -f "$log"
}

cores() { nproc 2>/dev/null || echo 2; }

# told LOG DONE: keeps what a build or CTest says in LOG, and prints a line for every tenth of it.
told() {
  local line tenth=0 now
  : >"$1"
  while IFS= read -r line; do
    printf '%s\n' "$line" >>"$1"
    now=$tenth
    if [[ $line =~ ^\[([0-9]+)/([0-9]+)\] || $line =~ ^\ *([0-9]+)/([0-9]+)\ Test ]]; then # ninja, ctest
      now=$((10 * BASH_REMATCH[1] / BASH_REMATCH[2]))
    elif [[ $line =~ ^\[\ *([0-9]+)%\] ]]; then # make
      now=$((BASH_REMATCH[1] / 10))
    fi
    if [ "$now" -gt "$tenth" ]; then
      tenth=$now
      say "  $2: ${tenth}0 %"
    fi
  done
}

# build PRESET TARGET...: configures and builds; what the tools say is shown when they fail.
build() {
  local preset=$1 log generator=()
  shift
  log=$(mktemp)
  # A new build folder uses ninja where it is there; an old one keeps what it has.
  if has ninja; then generator=(-G Ninja); fi
  local dir=build
  if [ "$preset" != default ]; then dir=build-$preset; fi
  if [ -f "$dir/CMakeCache.txt" ]; then generator=(); fi
  say "  configuring"
  if ! { cmake --preset "$preset" "${generator[@]}" >"$log" 2>&1 &&
    cmake --build "$dir" -j "$(cores)" ${1:+--target "$@"} 2>&1 | told "$log" built; }; then
    grep -E -A12 'error|Error' "$log" | head -n 60 >&2 || tail -n 40 "$log" >&2
    rm -f "$log"
    return 1
  fi
  rm -f "$log"
}
