#!/usr/bin/env bash
# Holds a page's examples against the program.
#
#   page.sh PROGRAM PAGE.md [--write]
#
# --write puts what the program prints now into the page; look at the difference.
#
# - In a ``` block that begins with "$ " each command must print the lines below it, standard output
#   first.  "..." at the end leaves the rest out.
# - A ```sh block is run as one script and must succeed.
# - A ```ptx block is a template: the text after "// " up to ":" on its first line is its name, and it
#   lies in mine/templates.  The README's are there for every page.  A ```lua block is a script: its
#   first line is "-- FILE: ...".
# - Commands of ours stand in such blocks only: an indented one fails.
#
# Commands are run as from the project's folder, on `sim`.
set -euo pipefail
bin=$(dirname "$(realpath "$1")") page=$(realpath "$2") write=${3:-}
top=$(cd "$(dirname "${BASH_SOURCE[0]}")/../.." && pwd)
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
mkdir -p "$scratch/in/mine/templates" "$scratch/in/out" "$scratch/in/build" "$scratch/bin"
export PATH="$scratch/bin:$bin:$PATH" PTXSMITH_LIBCUDA=$scratch/no-driver

for f in ptxsmith libptxsmith.a libptxsmith.so libptxsmith.so.0; do
  ln -s "$bin/$f" "$scratch/in/build/$f"
done
ln -s "$top"/{examples,include,lua,templates,tests} "$scratch/in/"
cd "$scratch/in"
# A library built with sanitizers wants its users linked with them.
if grep -q '^PTXSMITH_SANITIZE:[A-Z]*=ON' "$bin/CMakeCache.txt"; then
  printf '#!/bin/sh\nexec %s -fsanitize=address,undefined "$@"\n' "$(command -v cc)" >"$scratch/bin/cc"
  chmod +x "$scratch/bin/cc"
fi

templates() { # of a page; and scripts
  awk '/^```(ptx|lua)$/ { inside = 1; name = ""; next }
       /^```/ { inside = 0 }
       inside && name == "" {
         name = $2
         sub(/:$/, "", name)
         if (name !~ /\.lua$/) name = "mine/templates/" name ".ptx.in"
       }
       inside { print > name }' "$1"
}
templates "$top/README.md"
templates "$page"

count=0 bad=0 command='' more=0 inside=no number=0 at=0
: >"$scratch/want"
: >"$scratch/new" # the page as it should be

wrong() { # what
  bad=$((bad + 1))
  printf '%s:%s: %s\n' "$page" "$at" "$1"
}

finish() { # runs the command that is complete and compares
  local rest=0
  case $command in
    '' | *' info') # which speaks of the machine that it runs on
      cat "$scratch/want" >>"$scratch/new"
      command='' && : >"$scratch/want" && return 0
      ;;
  esac
  count=$((count + 1))
  bash -c "$command" >"$scratch/out" 2>"$scratch/err" </dev/null || true
  cat "$scratch/out" "$scratch/err" >"$scratch/got"
  if [ "$(tail -n 1 "$scratch/want")" = ... ]; then
    rest=1
    sed -i '$d' "$scratch/want"
    head -n "$(wc -l <"$scratch/want")" "$scratch/got" >"$scratch/head"
    mv "$scratch/head" "$scratch/got"
  fi
  cat "$scratch/got" >>"$scratch/new"
  if [ $rest = 1 ]; then echo ... >>"$scratch/new"; fi
  if ! diff "$scratch/want" "$scratch/got" >"$scratch/diff"; then
    wrong "$command"
    sed 's/^</  page:    /; s/^>/  program: /' "$scratch/diff"
  fi
  command=''
  : >"$scratch/want"
}

script() { # runs a ```sh block
  count=$((count + 1))
  if ! bash -eux "$scratch/script" >"$scratch/got" 2>&1 </dev/null; then
    wrong "this block fails:"
    tail -n 20 "$scratch/got" | sed 's/^/  /'
  fi
}

while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1)) shown=1
  case $inside:$line in
    no:'```sh') inside=script at=$number && : >"$scratch/script" ;;
    no:'```') inside=console ;;
    no:'```'*) inside=other ;;
    no:'    ptxsmith '* | no:'    build/ptxsmith '*)
      at=$number
      wrong "an indented command is not run: put it into a \`\`\`sh block"
      ;;
    no:*) ;;
    console:'```') finish && inside=no ;;
    script:'```') script && inside=no ;;
    *:'```') inside=no ;;
    script:*) printf '%s\n' "$line" >>"$scratch/script" ;;
    console:*)
      if [ $more = 1 ]; then
        command+=" ${line%\\}"
        case $line in *\\) ;; *) more=0 ;; esac
      elif [ "${line:0:2}" = '$ ' ]; then
        finish
        command=${line:2} at=$number
        case $line in *\\) more=1 command=${command%\\} ;; esac
      elif [ -n "$command" ]; then
        printf '%s\n' "$line" >>"$scratch/want"
        shown=0
      fi
      ;;
  esac
  if [ $shown = 1 ]; then printf '%s\n' "$line" >>"$scratch/new"; fi
done <"$page"
if [ "$write" = --write ]; then cp "$scratch/new" "$page"; fi
printf '%s commands, %s differ\n' "$count" "$bad"
if [ "$bad" != 0 ]; then printf 'what is printed is right?  %s %s %s --write\n' "$0" "$1" "$2"; fi
[ "$bad" = 0 ] && [ "$count" -gt 0 ]
