#!/usr/bin/env bash
# Compiles the accelerator of the Python worker into the package: build.sh [PYTHON]. Flags for the compiler: CFLAGS.
# Without a C compiler or Python's headers it says so, and succeeds: the worker then runs in Python alone.
set -euo pipefail

python=${1:-python3}
compiler=${CC:-cc}
include=$("$python" -c 'import sysconfig; print(sysconfig.get_path("include"))')
cd "$(dirname "$0")"
target=../src/parkade/_accelerator.abi3.so
shared=(-shared)
[ "$(uname -s)" != Darwin ] || shared=(-bundle -undefined dynamic_lookup)

if ! command -v "${compiler%% *}" > /dev/null || [ ! -f "$include/Python.h" ]; then
    echo "the accelerator is not built: it needs a C compiler and Python's headers; the worker runs without it, slower"
    rm -f "$target"
    exit 0
fi
# shellcheck disable=SC2086 # both may be several words
$compiler -O2 -Wall -Wextra -Werror -fPIC "${shared[@]}" -I"$include" ${CFLAGS:-} accelerator.c -o "$target.new"
mv "$target.new" "$target"
