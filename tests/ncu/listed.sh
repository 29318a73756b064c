#!/usr/bin/env bash
# compare.sh measures every template: each stands in kernels.list, behind # if another one's line launches it.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
missing=0
for path in templates/*.ptx.in; do
  name=$(basename "$path" .ptx.in)
  if grep -Eq "^$name |# (.* )?$name\b" tests/ncu/kernels.list; then continue; fi
  echo "tests/ncu/kernels.list: $name is not in it"
  missing=1
done
exit $missing
