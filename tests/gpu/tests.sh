#!/usr/bin/env bash
# The unit tests that run on any device, on a GPU: what the interpreter answers is what it answers.
#   tests/gpu/tests.sh [BUILD [DEVICE]]    build, cuda:0 by default; exit 1 when one failed
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=${1:-build} failed=0
export PTXSMITH_DEVICE=${2:-cuda:0}
for source in $(grep -l 'kit_setup_anywhere\|PTXSMITH_DEVICE' tests/test_*.c); do
  name=$(basename "$source" .c)
  if out=$("$build/tests/$name" 2>&1); then
    printf 'ok      %s: %s\n' "$name" "$(grep -c '\[       OK' <<<"$out") tests"
  else
    printf 'FAILED  %s\n' "$name"
    grep -v 'RUN  \|  OK ' <<<"$out" | tail -n 30
    failed=1
  fi
done
exit $failed
