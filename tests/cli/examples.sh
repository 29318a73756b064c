#!/usr/bin/env bash
# An example that is given an argument which it does not take says how it is used and exits with 2.
set -euo pipefail
build=$1
refuses() {
  local code=0
  "$build/$@" >/dev/null 2>"$err" || code=$?
  [ $code = 2 ] && grep -q '^usage: ' "$err" || { echo "$* exited $code: $(cat "$err")"; exit 1; }
}
err=$(mktemp)
trap 'rm -f "$err"' EXIT
refuses example_decode sim 1000x
refuses example_decode sim 1000 more
refuses example_decode sim ''
refuses example_embed decode_splitk head_dim=64 sm_90 more
refuses example_paged sim more
refuses example_paged cuda:0x
refuses example_paged cuda:
refuses example_paged gpu
refuses example_varlen sim prefill_mma more
