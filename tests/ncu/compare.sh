#!/usr/bin/env bash
# Our counters beside those of Nsight Compute, on a machine with a GPU that allows its counters.
#   tests/ncu/compare.sh [LAUNCH] [LIST]    build/tests/ncu_launch and tests/ncu/kernels.list by default
# Exit 0 when every compared figure is the same, or what explained.py makes of it; 1 when one is not; 3 without
# ncu, python3 or a GPU.
# Figures that are no pair are shown with the reason.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
launch=${1:-build/tests/ncu_launch}
list=${2:-tests/ncu/kernels.list}
for tool in ncu python3; do
  command -v "$tool" >/dev/null || { echo "compare.sh: $tool is not on the PATH" >&2; exit 3; }
done
"$launch" cuda:0 /dev/null || exit 3
exec python3 -u tests/ncu/compare.py "$launch" "$list"
