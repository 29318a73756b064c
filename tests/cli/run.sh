#!/usr/bin/env bash
# Runs one .case file against the program.  A file is a list of cases:
#
#   == what is shown                 begins a case, in an empty folder of its own
#   file NAME                        the indented lines that follow are the file's text
#   sh COMMAND                       anything else that must succeed; $PROGRAM is the program,
#                                    $FAKE a driver that is told what to answer (fake_cuda.h)
#   env NAME=VALUE                   in the environment of the case's runs from here on
#   run ARGUMENTS                    the program; quotes as in a shell.  $TESTS is the tests folder
#   exit N                           its exit code (0 when the line is left out)
#   err LINE                         standard error's lines, in order, from the first one on
#   noerr                            standard error is empty
#   out LINE                         standard output's lines, in order, from the first one on
#   has TEXT                         standard output holds this text somewhere
#   noout                            standard output is empty
#   absent NAME                      this file is not there afterwards, nor any NAME.*
#   left N                           so many files are in the folder afterwards
#
# A case may hold several runs; expectations are about the run above them.
set -euo pipefail
program=$(realpath "$1") cases=$2
TESTS=$(cd "$(dirname "${BASH_SOURCE[0]}")/.." && pwd)
PROGRAM=$program
FAKE=$(dirname "$program")/tests/libfake_cuda.so
export TESTS PROGRAM FAKE
top=$(mktemp -d)
trap 'rm -rf "$top"' EXIT

count=0 bad=0 title='' number=0 ran=0 want=0 code=0 err_at=0 out_at=0 file='' environment=()

fail() {
  bad=$((bad + 1))
  printf '%s:%s: %s\n  %s\n' "$cases" "$number" "$title" "$1"
  if [ $ran = 1 ] && [ $bad -le 5 ]; then
    printf '  it exited %s and said:\n' "$code"
    sed 's/^/    out: /' <"$top/out" | head -n 12
    sed 's/^/    err: /' <"$top/err" | head -n 12
  fi
}

end_run() { # the exit code is known to be wanted only when the next run or case begins
  if [ $ran = 1 ] && [ "$code" != "$want" ]; then fail "exit code $code, not $want"; fi
  ran=0 want=0 err_at=0 out_at=0
}

line_of() { sed -n "$2p" "$top/$1"; }

expect() { # stream, line number, text
  local got
  got=$(line_of "$1" "$2")
  if [ "$got" != "$3" ]; then fail "$1 line $2 is: $got
  not:           $3"; fi
}

while IFS= read -r line || [ -n "$line" ]; do
  number=$((number + 1))
  if [ -n "$file" ]; then
    case $line in
      '  '*) printf '%s\n' "${line#  }" >>"$file"; continue ;;
      *) file='' ;;
    esac
  fi
  word=${line%% *} rest=${line#"$word"}
  rest=${rest# }
  case $word in
    '' | '#'*) ;;
    '==') end_run; title=$rest; count=$((count + 1)); dir=$top/$count environment=(); mkdir "$dir" ;;
    env) eval "environment+=(\"$rest\")" ;;
    file) file=$dir/$rest; : >"$file" ;;
    sh) if ! (cd "$dir" && export TESTS "${environment[@]}" && eval "$rest"); then fail "failed: $rest"; fi ;;
    run)
      end_run
      ran=1 code=0
      (cd "$dir" && export TESTS "${environment[@]}" && eval "\"$program\" $rest") >"$top/out" 2>"$top/err" </dev/null || code=$?
      ;;
    exit) want=$rest ;;
    err) err_at=$((err_at + 1)); expect err $err_at "$rest" ;;
    out) out_at=$((out_at + 1)); expect out $out_at "$rest" ;;
    has) if ! grep -qF -- "$rest" "$top/out"; then fail "output lacks: $rest"; fi ;;
    noerr) if [ -s "$top/err" ]; then fail "standard error is not empty"; fi ;;
    noout) if [ -s "$top/out" ]; then fail "standard output is not empty"; fi ;;
    absent) if compgen -G "$dir/$rest*" >/dev/null; then fail "$rest was left behind"; fi ;;
    left)
      n=$(find "$dir" -type f | wc -l)
      if [ "$n" != "$rest" ]; then fail "$n files are in the folder, not $rest"; fi
      ;;
    *) printf '%s:%s: no such line: %s\n' "$cases" "$number" "$word"; exit 1 ;;
  esac
done <"$cases"
end_run
printf '%s cases, %s failed\n' "$count" "$bad"
if [ $count = 0 ] || [ $bad != 0 ]; then exit 1; fi
