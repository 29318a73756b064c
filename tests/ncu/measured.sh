#!/usr/bin/env bash
# Our counters of the patterns in kernels.list beside what an H200 counted (measured.csv): no GPU needed.
#   tests/ncu/measured.sh [LAUNCH]          build/tests/ncu_launch by default
# Exit 0 when every figure is the same, or what explained.py makes of it; 77 without python3.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
command -v python3 >/dev/null || { echo "skipped: no python3 on the PATH"; exit 77; }
list=$(mktemp)
trap 'rm -f "$list"' EXIT
grep -E '^tests/[a-z/_]*\.ptx ' tests/ncu/kernels.list > "$list"
NCU_CSV=tests/ncu/measured.csv python3 -B tests/ncu/compare.py "${1:-build/tests/ncu_launch}" "$list" |
  grep -E 'BEYOND|launches:'
exit "${PIPESTATUS[0]}"
