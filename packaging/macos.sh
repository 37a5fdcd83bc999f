#!/usr/bin/env bash
# Checks that the core compiles for macOS, on any machine: zig is the C compiler for it. Nothing is linked, which would need Apple's SDK.
set -euo pipefail
cd "$(dirname "$0")/.."
TARGET=aarch64-apple-darwin
TOOLS=$PWD/.venv-wheels
[ -x "$TOOLS/bin/python" ] || "${PYTHON:-python3}" -m venv "$TOOLS"
"$TOOLS/bin/python" -m pip install --quiet --upgrade pip -r packaging/requirements.txt

wrappers=$(mktemp -d)
trap 'rm -rf "$wrappers"' EXIT
# Crates that compile C name the platform as clang does; zig has names of its own.
cat > "$wrappers/cc" << CC
#!/usr/bin/env bash
kept=()
for argument in "\$@"; do
    case "\$argument" in --target=* | -arch | arm64) ;; *) kept+=("\$argument") ;; esac
done
exec "$TOOLS/bin/python" -m ziglang cc -target aarch64-macos "\${kept[@]}"
CC
printf '#!/bin/sh\nexec "%s" -m ziglang ar "$@"\n' "$TOOLS/bin/python" > "$wrappers/ar"
chmod +x "$wrappers"/*

rustup target add "$TARGET"
CC_aarch64_apple_darwin="$wrappers/cc" AR_aarch64_apple_darwin="$wrappers/ar" cargo check --locked --workspace --target "$TARGET"
