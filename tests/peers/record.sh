#!/usr/bin/env bash
# Takes the tables of docs/measurements.md again, on a machine with a GPU.
#
#   tests/peers/record.sh FOLDER [SECTION...]     all sections, or those named, in the order given
#   tests/peers/record.sh --list                  the sections: seconds at most, command
#
# FOLDER/SECTION.md gets what a section prints, FOLDER/SECTION.log its messages, FOLDER/summary.txt a
# line a section: exit status (124: cut off by its limit; what it had printed stays), seconds.  One
# section's failure does not stop the next.  BUILD names the build folder (build), PYTHONPATH the place
# of FlashAttention-3's package where it is not installed.  Exit 1 when a section failed.
set -uo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.." || exit 2
build=${BUILD:-build}
smith=$build/ptxsmith lib=$build/libptxsmith.so
peers=tests/peers
prefill="$peers/prefill.py --library $lib"
decode="$peers/decode.py --library $lib --ptxsmith $smith"
features="$peers/features.py --lib $lib"

# name|seconds|command; the cheap ones and those that later ones depend on first
sections=(
  "verify|60|$peers/verify.sh $smith cuda:0"
  "tests|120|tests/gpu/tests.sh $build cuda:0"
  "planner|600|$smith sweep prefill_rows --device cuda:0 --out \$folder/store"
  "planner-features|600|$smith sweep features_rows --device cuda:0 --out \$folder/store"
  "campaign-prefill|120|$smith campaign prefill --device cuda:0 --out \$folder/store"
  "campaign-decode|120|$smith campaign decode --device cuda:0 --out \$folder/store"
  "prefill|300|$prefill --random 6"
  "prefill-e4m3|150|$prefill --dtype e4m3 --dims 128,256 --lengths 2048,8192,16384"
  "prefill-mma|200|$prefill --template prefill_mma"
  "prefill-tf32|150|$prefill --template prefill_mma --dtype f32 --dims 64,128"
  "prefill-fma|150|$prefill --template prefill_fma --dtype f32 --dims 64,128 --lengths 1024,4096"
  "features|200|$features"
  "decode|200|$decode --random 8 --peers cuDNN,FA2,FA3"
  "decode-fp8|100|$decode --kv e4m3 --no-peers"
  "combine|60|$peers/combine.py --library $lib"
  "serving|100|$decode --serving"
  "decode-latent|150|$decode --latent"
  "decode-latent-few|60|$decode --latent --template decode_latent_few --rows 0,1,2 --no-peers"
  "read|100|$peers/read.py --ptxsmith $smith --library $lib"
  "foundation|150|$peers/foundation.py --ptxsmith $smith"
  "counters|150|tests/ncu/compare.sh $build/tests/ncu_launch"
)

usage() { sed -n '4,5s/^# *//p' "$0" >&2; exit 2; }

field() { # NAME: the section's row, or nothing
  local row
  for row in "${sections[@]}"; do
    if [ "${row%%|*}" = "$1" ]; then printf '%s\n' "$row"; fi
  done
}

[ $# -gt 0 ] || usage
if [ "$1" = --list ]; then
  printf '%s\n' "${sections[@]}" | column -t -s '|'
  exit 0
fi
case "$1" in -*) usage ;; esac
folder=$1
shift
if [ $# = 0 ]; then set -- "${sections[@]%%|*}"; fi
for name; do # before any of them runs
  [ -n "$(field "$name")" ] || { echo "record.sh: no section \"$name\"; see --list" >&2; exit 2; }
done
mkdir -p "$folder" || exit 2

failed=0
for name; do
  IFS='|' read -r _ limit command <<<"$(field "$name")"
  began=$SECONDS
  # shellcheck disable=SC2086 # words are meant
  timeout "$limit" ${command//\$folder/$folder} >"$folder/$name.md" 2>"$folder/$name.log" </dev/null
  rc=$?
  [ $rc = 0 ] || failed=1
  printf '%-18s exit %-3d %4d s of %d\n' "$name" $rc $((SECONDS - began)) "$limit" |
    tee -a "$folder/summary.txt"
done
exit $failed
