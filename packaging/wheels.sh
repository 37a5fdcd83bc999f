#!/usr/bin/env bash
# Builds wheels and the source distribution into dist/ and checks them: packaging/wheels.sh [TARGET...]
# Without targets it builds for all of them. A target takes several minutes: the whole program is optimized at once.
set -euo pipefail
cd "$(dirname "$0")/.."

declare -A PLATFORMS=(
    [x86_64-unknown-linux-gnu]=manylinux_2_28
    [aarch64-unknown-linux-gnu]=manylinux_2_28
    [x86_64-unknown-linux-musl]=musllinux_1_2
    [aarch64-unknown-linux-musl]=musllinux_1_2
)
# The same platforms, as zig names them.
declare -A COMPILERS=(
    [x86_64-unknown-linux-gnu]=x86_64-linux-gnu.2.28
    [aarch64-unknown-linux-gnu]=aarch64-linux-gnu.2.28
    [x86_64-unknown-linux-musl]=x86_64-linux-musl
    [aarch64-unknown-linux-musl]=aarch64-linux-musl
)
ACCELERATOR=workers/python/src/parkade/_accelerator.abi3.so
TARGETS=("$@")
[ $# -gt 0 ] || TARGETS=(x86_64-unknown-linux-gnu aarch64-unknown-linux-gnu x86_64-unknown-linux-musl aarch64-unknown-linux-musl)

TOOLS=.venv-wheels
[ -x $TOOLS/bin/python ] || "${PYTHON:-python3}" -m venv $TOOLS
$TOOLS/bin/python -m pip install --quiet --upgrade pip -r packaging/requirements.txt
export PATH="$PWD/$TOOLS/bin:$PATH"

rm -rf dist
kept=$(mktemp -d)
[ ! -e $ACCELERATOR ] || cp -p $ACCELERATOR "$kept/"  # that of this machine, which the checkout runs with
trap 'rm -f $ACCELERATOR; cp -p "$kept"/* "$(dirname $ACCELERATOR)/" 2> /dev/null; rm -rf "$kept"' EXIT
for target in "${TARGETS[@]}"; do
    platform=${PLATFORMS[$target]:-}
    [ -n "$platform" ] || { echo "$target is not a target: ${!PLATFORMS[*]}" >&2; exit 2; }
    echo "$target: building, which takes several minutes"
    rustup target add "$target"
    CC="$PWD/$TOOLS/bin/python -m ziglang cc -target ${COMPILERS[$target]}" CFLAGS=-Wl,-s \
        workers/python/accelerator/build.sh "${PYTHON:-python3}"
    [ -e $ACCELERATOR ] || { echo "a wheel contains the accelerator: Python's headers are needed (python3-dev)" >&2; exit 1; }
    # These builds share no folder with `make setup`, because compilers and flags are different.
    maturin build --release --locked --zig --target "$target" --compatibility "$platform" --target-dir target/wheels --out dist
done
maturin sdist --out dist

twine check --strict dist/*
for wheel in dist/*.whl; do
    # auditwheel names the oldest platform that the binary runs on, which must be the one that the file's name claims.
    report=$(auditwheel show "$wheel" | tr '\n' ' ')
    platform=$(basename "$wheel" .whl)
    [[ "$report" == *"consistent with the following platform tag: \"${platform##*-}\""* ]] \
        || { echo "$wheel does not run where its name says: $report" >&2; exit 1; }
    echo "$wheel: runs where its name says"
done
case " ${TARGETS[*]} " in *" $(uname -m)-unknown-linux-gnu "*)
    packaging/first_request.sh "dist/"*"manylinux"*"$(uname -m)"*.whl
esac
ls -l dist
