#!/usr/bin/env bash
# No line of the C sources is longer than 100 columns; fractions are read by number_parse(), which no
# locale changes.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
find gen runtime include tests examples \( -name '*.c' -o -name '*.h' \) -exec \
  awk 'length($0) > 100 { printf "%s:%d: %d columns\n", FILENAME, FNR, length($0); bad++ }
       END { exit bad > 0 }' {} +
if grep -nE '\bstrtod\(|\batof\(|"[^"]*%l[efg][^"]*", *&' -r gen runtime --include='*.c' --include='*.h' |
  grep -v '^gen/number.c:'; then exit 1; fi
