#!/usr/bin/env bash
# Our counters beside those of Nsight Compute, on a machine with a GPU that allows its counters.
#   tests/ncu/compare.sh [PROGRAM]      PROGRAM: build/ptxsmith by default
# Figures that are no pair (compare.py names the reason) are shown, not compared.  Exit 0 when every
# compared figure is within its bound (sectors 1 %, wavefronts 3 %), 1 when one is not, 3 without ncu,
# python3 or a GPU.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
program=${1:-build/ptxsmith}
for tool in ncu python3; do
  command -v "$tool" >/dev/null || { echo "compare.sh: $tool is not on the PATH" >&2; exit 3; }
done
"$program" info --device cuda:0 >/dev/null 2>&1 || { echo "compare.sh: no GPU" >&2; exit 3; }
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
PROGRAM=$program WORK=$work exec python3 -u tests/ncu/compare.py
