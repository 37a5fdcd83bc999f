#!/usr/bin/env bash
# Installs a wheel as a newcomer does, without a compiler, and asks for a first page: packaging/first_request.sh WHEEL
# It fails if that takes more than a minute.
set -euo pipefail
wheel=$(realpath "$1")
python=$("${PYTHON:-python3}" -c 'import sys; print(sys.executable)')
folder=$(mktemp -d)
server=
cleanup() {
    [ -z "$server" ] || { kill "$server" && wait "$server"; } 2> /dev/null || true
    rm -rf "$folder"
}
trap cleanup EXIT
cd "$folder"
cat > app.py << 'APP'
from parkade import App

app = App()


@app.get("/hola/{name}")
def hola(name: str):
    return f"Hola {name}"
APP

# No cargo, no rustc, no C compiler: everything must be in the wheel.
bare() { env PATH=/nonexistent "$@"; }
SECONDS=0
bare "$python" -m venv venv
bare venv/bin/python -m pip install --quiet "$wheel"
env PATH=/nonexistent venv/bin/parkade serve app.py --bind 127.0.0.1:0 > log 2>&1 &
server=$!
address=
until address=$(grep -oE 'http://127\.0\.0\.1:[0-9]+' log | head -1) && [ -n "$address" ]; do
    kill -0 $server 2> /dev/null || { cat log; echo "the server ended" >&2; exit 1; }
    [ $SECONDS -lt 60 ] || { cat log; echo "the server has not started" >&2; exit 1; }
    sleep 0.1
done
answer=$(bare venv/bin/python -c 'import sys, urllib.request; print(urllib.request.urlopen(sys.argv[1] + "/hola/Ana").read().decode())' "$address")
[ "$answer" = "Hola Ana" ] || { echo "the answer was: $answer" >&2; exit 1; }
echo "$(basename "$wheel"): installed and answered in $SECONDS s"
[ $SECONDS -lt 60 ] || { echo "that is more than a minute" >&2; exit 1; }
