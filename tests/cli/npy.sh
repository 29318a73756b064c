# shellcheck shell=bash
# npy FILE TYPE "SHAPE" BYTES: a NumPy file (format 1.0) whose data are BYTES zero bytes.
npy() {
  local header="{'descr': '$2', 'fortran_order': False, 'shape': ($3), }"
  while [ $(((10 + ${#header} + 1) % 64)) != 0 ]; do header+=' '; done
  local n=$((${#header} + 1))
  { printf '\x93NUMPY\x01\x00'
    # the header's length, two bytes, least significant first
    printf '%b' "$(printf '\\x%02x\\x%02x' $((n % 256)) $((n / 256)))"
    printf '%s\n' "$header"
    head -c "$4" /dev/zero
  } >"$1"
}
