#!/usr/bin/env bash
# What cmake --install leaves is enough for a program of someone else's: with find_package, with the
# static library by hand, and with pkg-config where it is there.
set -euo pipefail
build=$1 examples=$2 version=$3
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
at=$scratch/usr
cmake --install "$build" --prefix "$at" >"$scratch/log"
"$at/bin/ptxsmith" gen decode_splitk head_dim=64 dtype=bf16 --target sm_90 >"$scratch/want.ptx"
[ -s "$scratch/want.ptx" ]

# A program built against the installed files generates what the installed one does.
same() { "$1" decode_splitk "head_dim=64 dtype=bf16" sm_90 | diff "$scratch/want.ptx" -; }

mkdir "$scratch/mine"
cat >"$scratch/mine/CMakeLists.txt" <<EOF
cmake_minimum_required(VERSION 3.20)
project(mine LANGUAGES C)
find_package(ptxsmith $version REQUIRED)
add_executable(mine $examples/embed.c)
target_link_libraries(mine PRIVATE ptxsmith::ptxsmith)
EOF
cmake -S "$scratch/mine" -B "$scratch/mine/build" -DCMAKE_PREFIX_PATH="$at" >>"$scratch/log"
cmake --build "$scratch/mine/build" >>"$scratch/log"
same "$scratch/mine/build/mine"

lib=$(dirname "$(find "$at" -name libptxsmith.a)")
cc "$examples/embed.c" "-I$at/include" "$lib/libptxsmith.a" -llua5.4 -pthread -ldl -lm -o "$scratch/static"
same "$scratch/static"

if command -v pkg-config >/dev/null; then
  export PKG_CONFIG_PATH=$lib/pkgconfig
  [ "$(pkg-config --modversion ptxsmith)" = "$version" ]
  # shellcheck disable=SC2046 # words are meant
  cc "$examples/embed.c" $(pkg-config --cflags --libs ptxsmith) "-Wl,-rpath,$lib" -o "$scratch/shared"
  same "$scratch/shared"
fi

# Absolute folders stand in the .pc file as they are.
cmake -S "$examples/.." -B "$scratch/absolute" -DBUILD_TESTING=OFF -DCMAKE_INSTALL_PREFIX="$scratch/p" \
  -DCMAKE_INSTALL_LIBDIR="$scratch/l" >>"$scratch/log"
grep -qx "prefix=$scratch/p" "$scratch/absolute/ptxsmith.pc"
grep -qx "libdir=$scratch/l" "$scratch/absolute/ptxsmith.pc"
grep -qxF 'includedir=${prefix}/include' "$scratch/absolute/ptxsmith.pc"
