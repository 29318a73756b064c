#!/usr/bin/env bash
# The figures of a page's tables of measurements stand in docs/measurements.md or docs/ladder.md: for
# each row of a table under a heading that begins with "Measured", one line there has all numbers of
# its last two columns.
#
#   figures.sh PAGE.md
set -euo pipefail
page=$(realpath "$1")
docs=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)/docs
cat "$docs/measurements.md" "$docs/ladder.md" |
  awk -v page="$page" '
  function numbers(text, list,  n) { # 1,234.5 is one; a name such as bf16 or FlashAttention-3 none
    n = 0
    text = " " text
    gsub(/[A-Za-z][-A-Za-z_0-9]*/, " ", text)
    while (match(text, /[0-9][0-9,]*(\.[0-9]+)?/)) {
      list[++n] = substr(text, RSTART, RLENGTH)
      sub(/,$/, "", list[n])
      text = substr(text, RSTART + RLENGTH)
    }
    return n
  }
  function has(line, number,  at, before, after) { # as a whole number
    at = 1
    while ((i = index(substr(line, at), number)) > 0) {
      at += i
      before = at > 2 ? substr(line, at - 2, 1) : " "
      after = substr(line, at - 1 + length(number), 2)
      if (before !~ /[0-9.]/ && after !~ /^([0-9]|[.,][0-9])/) return 1
    }
    return 0
  }
  FNR == NR { record[++lines] = $0; next }
  /^## / { measured = /^## Measured/ }
  measured && /^\|/ && !/^\|[-|]*$/ {
    cells = split($0, cell, "|")
    n = numbers(cell[cells - 2] " " cell[cells - 1], want)
    if (!n) next # the head
    rows++
    found = 0
    for (r = 1; r <= lines && !found; r++) {
      found = 1
      for (k = 1; k <= n && found; k++) found = has(record[r], want[k])
    }
    if (!found) { printf "%s:%d: no line of the record has these figures: %s\n", page, FNR, $0; bad++ }
  }
  END { printf "%d rows, %d not found\n", rows, bad; exit bad > 0 || rows == 0 }
' - "$page"
