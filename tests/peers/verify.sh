#!/usr/bin/env bash
# Verifies every line of verify.list on a device; prints one line each.  Exit 1 when one failed.
#   tests/peers/verify.sh PTXSMITH [DEVICE]    cuda:0 by default
set -uo pipefail
smith=${1:?usage: verify.sh PTXSMITH [DEVICE]} device=${2:-cuda:0}
failed=0
while read -r -a words; do
  case "${words[0]:-#}" in '#'*) continue ;; esac
  if out=$("$smith" verify "${words[@]::${#words[@]}-1}" --problem "${words[-1]}" \
    --device "$device" 2>&1 </dev/null); then
    printf 'ok      %s\n' "${words[*]}"
  else
    printf 'FAILED  %s\n%s\n' "${words[*]}" "$out"
    failed=1
  fi
done <"$(dirname "${BASH_SOURCE[0]}")/verify.list"
exit $failed
