#!/usr/bin/env bash
# Remakes the compiler-made PTX beside the kernels.  Needs nvcc (made with CUDA 13.0).
set -euo pipefail
cd "$(dirname "$0")"
here=$PWD
command -v nvcc >/dev/null || { echo "make.sh: nvcc is not on the PATH" >&2; exit 3; }
# The compiler writes the folder into the debugger's tables, and its hash into names: always this one.
folder=/tmp/ptxsmith-nvcc
rm -rf "$folder"
mkdir "$folder"
cp ./*.cu "$folder"
cd "$folder"
one() { # FILE TARGET NAME FLAGS...
  local file=$1 target=$2 name=$3
  shift 3
  local out="${file%.cu}.$target.$name.ptx"
  nvcc -ptx -arch="$target" "$@" -o "$out" "$file"
  sed -i -E 's|"/[^"]*/([^/"]+)"|"\1"|' "$out" # headers, wherever they are installed
}
every() { # FILE TARGET
  one "$1" "$2" O3 -O3
  one "$1" "$2" O0 -Xcicc -O0
  one "$1" "$2" debug -O0 -G
}
for file in scalar half shared idioms pointers tensor groups wmma; do
  for target in sm_80 sm_90a; do every $file.cu $target; done
done
every hopper.cu sm_90a
one hopper.cu sm_90a lineinfo -O3 -lineinfo
# What is long and of which other files have enough: the debugger's tables.  Without them the target
# must not say "debug".
sed -i -e '/^\t*\.section\t/,/^\t*}/d' -e 's/^\(\.target sm_[0-9a]*\), debug/\1/' \
  groups.*.debug.ptx wmma.*.debug.ptx tensor.*.debug.ptx
mv ./*.ptx "$here"
