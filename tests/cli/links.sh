#!/usr/bin/env bash
# What the README and docs/ name is there: the file of every link, and a heading for what stands behind
# its #; the file of every path between backquotes; the test of every "test_file: function".
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
# shellcheck disable=SC2016 # the quoted backquotes are meant
while IFS= read -r file; do
  count=$((count + 1))
  case $file in mine/* | out/* | */NAME.*) continue ;; esac
  if [ -e "$file" ] || [ -e "templates/$file" ]; then continue; fi
  printf 'there is no %s\n' "$file"
  bad=$((bad + 1))
done < <(grep -ohE '`[A-Za-z_0-9]+(/[A-Za-z_0-9.]+)+\.[a-z]+`' README.md docs/*.md | tr -d '`' | sort -u)

# shellcheck disable=SC2016
while IFS=': ' read -r file test; do
  count=$((count + 1))
  if grep -qw -- "$test" "tests/$file.c"; then continue; fi
  printf 'tests/%s.c has no %s\n' "$file" "$test"
  bad=$((bad + 1))
done < <(grep -ohE '`test_[a-z_0-9]+: [a-z_0-9]+`' README.md docs/*.md | tr -d '`' | sort -u)

printf '%s names, %s lead nowhere\n' "$count" "$bad"
[ "$bad" = 0 ] && [ "$count" -gt 20 ]
