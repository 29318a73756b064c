#!/usr/bin/env bash
# The public header alone is enough, for strict compilers of C99 and C++11 and later.
set -euo pipefail
cc=$1 cxx=$2 include=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
printf '#include "ptxsmith.h"\nint main(void) { return psm_version() == 0; }\n' >"$scratch/a.c"
cp "$scratch/a.c" "$scratch/a.cc"
strict=(-Wall -Wextra -Wpedantic -Werror "-I$include" -fsyntax-only)
for std in c99 c11 c17; do "$cc" -std=$std "${strict[@]}" "$scratch/a.c"; done
if ! command -v "$cxx" >/dev/null; then
  echo "no C++ compiler"
  exit 77
fi
for std in c++11 c++17; do "$cxx" -std=$std "${strict[@]}" "$scratch/a.cc"; done
