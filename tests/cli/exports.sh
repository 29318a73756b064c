#!/usr/bin/env bash
# The shared library exports the public API and nothing else, and all of it.
set -euo pipefail
library=$1 header=$2
exported=$(nm -D --defined-only "$library" | awk '$2 ~ /[TDBRVWi]/ {print $3}' | sort)
declared=$(grep -oE '\bpsm_[a-z_0-9]+\(' "$header" | tr -d '(' | sort -u)
diff <(printf '%s\n' "$declared") <(printf '%s\n' "$exported")
printf '%s functions\n' "$(wc -l <<<"$declared")"
