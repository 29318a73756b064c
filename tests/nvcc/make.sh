#!/usr/bin/env bash
# Remakes the compiler-made PTX beside the kernels.  Needs nvcc (made with CUDA 13.0).
set -euo pipefail
cd "$(dirname "$0")"
command -v nvcc >/dev/null || { echo "make.sh: nvcc is not on the PATH" >&2; exit 3; }
one() { # FILE TARGET NAME FLAGS...
  local file=$1 target=$2 name=$3
  shift 3
  nvcc -ptx -arch="$target" "$@" -o "${file%.cu}.$target.$name.ptx" "$file"
  # The build path and the date must not enter the repository.
  sed -i -E 's|"/[^"]*/([^/"]+)"|"\1"|' "${file%.cu}.$target.$name.ptx"
}
for file in scalar.cu half.cu shared.cu; do
  for target in sm_80 sm_90a; do
    one "$file" "$target" O3 -O3
    one "$file" "$target" debug -O0 -G
  done
done
one wmma.cu sm_80 O3 -O3
one wmma.cu sm_90a O3 -O3
one hopper.cu sm_90a O3 -O3
one hopper.cu sm_90a lineinfo -O3 -lineinfo
for target in sm_80 sm_90a; do
  for file in idioms.cu pointers.cu; do
    one $file "$target" O3 -O3
    one $file "$target" O0 -Xcicc -O0
    one $file "$target" debug -O0 -G
  done
  # Without optimisation cooperative groups ask for %reserved_smem_offset_1, which is not executed.
  one groups.cu "$target" O3 -O3
  one tensor.cu "$target" O3 -O3
  one tensor.cu "$target" O0 -Xcicc -O0
done
