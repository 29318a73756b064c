#!/usr/bin/env bash
# Every link of the README and of docs/ leads somewhere: the file is there, and a heading for what
# stands behind the #.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."

headings() { # of a page, as they stand in links
  awk '/^```/ { code = !code } !code && /^#+ /' "$1" | sed 's/^#* //' | tr '[:upper:]' '[:lower:]' |
    sed 's/[^a-z0-9 _-]//g; s/ /-/g'
}

count=0 bad=0
for page in README.md docs/*.md; do
  while IFS= read -r link; do
    case $link in *://*) continue ;; esac
    count=$((count + 1))
    file=${link%%#*} at=''
    case $link in *'#'*) at=${link#*#} ;; esac
    path=$page
    if [ -n "$file" ]; then path=$(dirname "$page")/$file; fi
    if [ ! -e "$path" ] || { [ -n "$at" ] && ! headings "$path" | grep -xF -- "$at" >/dev/null; }; then
      printf '%s: %s leads nowhere\n' "$page" "$link"
      bad=$((bad + 1))
    fi
  done < <(grep -oE '\]\([^)[:space:]]+\)' "$page" | sed 's/^](//; s/)$//')
done
printf '%s links, %s lead nowhere\n' "$count" "$bad"
[ "$bad" = 0 ] && [ "$count" -gt 20 ]
