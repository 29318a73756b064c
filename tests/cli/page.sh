#!/usr/bin/env bash
# Holds a page's examples against the program: in every ``` block that begins with "$ ", each command
# must print the lines below it, standard output first.  "..." at the end leaves the rest out.
#
#   page.sh PROGRAM PAGE.md
#
# The README's template lies in mine/templates, as the pages assume, and runs are on `sim`.
set -euo pipefail
bin=$(dirname "$(realpath "$1")") page=$(realpath "$2")
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
export PATH="$bin:$PATH" PTXSMITH_LIBCUDA=$scratch/no-driver

mkdir -p "$scratch/in/mine/templates" "$scratch/in/build"
ln -s "$bin/ptxsmith" "$scratch/in/build/ptxsmith"
ln -s "$top/tests" "$top/lua" "$scratch/in/"
# shellcheck disable=SC2016 # the quoted backquotes are meant
sed -n '/^```ptx$/,/^```$/p' "$top/README.md" | sed '1d;$d' >"$scratch/in/mine/templates/scale_by.ptx.in"
cd "$scratch/in"

count=0 bad=0 command='' more=0 inside=0 number=0 at=0
: >"$scratch/want"

finish() { # runs the command that is complete and compares
  # `info` speaks of the machine that it runs on.
  case $command in '' | *' info') command='' && : >"$scratch/want" && return 0 ;; esac
  count=$((count + 1))
  bash -c "$command" >"$scratch/out" 2>"$scratch/err" </dev/null || true
  cat "$scratch/out" "$scratch/err" >"$scratch/got"
  if [ "$(tail -n 1 "$scratch/want")" = ... ]; then
    sed -i '$d' "$scratch/want"
    head -n "$(wc -l <"$scratch/want")" "$scratch/got" >"$scratch/head"
    mv "$scratch/head" "$scratch/got"
  fi
  if ! diff "$scratch/want" "$scratch/got" >"$scratch/diff"; then
    bad=$((bad + 1))
    printf '%s:%s: %s\n' "$page" "$at" "$command"
    sed 's/^</  page:    /; s/^>/  program: /' "$scratch/diff"
  fi
  command=''
  : >"$scratch/want"
}

while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  if [ $more = 1 ]; then
    command+=" ${line%\\}"
    case $line in *\\) ;; *) more=0 ;; esac
  elif [ $inside = 1 ] && [ "$line" = '```' ]; then
    finish
    inside=0
  elif [ $inside = 1 ] && [ "${line:0:2}" = '$ ' ]; then
    finish
    command=${line:2} at=$number
    case $line in *\\) more=1 command=${command%\\} ;; esac
  elif [ $inside = 1 ] && [ -n "$command" ]; then
    printf '%s\n' "$line" >>"$scratch/want"
  elif [ "$line" = '```' ]; then
    inside=1
  elif [ "${line:0:3}" = '```' ]; then
    inside=2 # a template, say: up to its end
  fi
  if [ $inside = 2 ] && [ "$line" = '```' ]; then inside=0; fi
done <"$page"
printf '%s commands, %s differ\n' "$count" "$bad"
[ "$bad" = 0 ] && [ "$count" -gt 0 ]
