#!/usr/bin/env bash
# Installs what the benchmarks need: the load generator and the peers. It names peers that are not available; their rows are skipped.
# Safe to run again: each step first checks whether its result exists.
set -uo pipefail
cd "$(dirname "$0")"

source ./apt.sh

echo "system packages"
packages=(wrk apache2-utils nginx libnginx-mod-nchan twiggy starman libev-perl libdbd-pg-perl feersum uwsgi-plugin-psgi
  libmojolicious-perl libdancer2-perl libweb-simple-perl)
# The package would create a cluster, which is not needed; if there is an initdb, the package is not needed either.
ls /usr/lib/postgresql/*/bin/initdb >/dev/null 2>&1 || runs initdb || packages+=(postgresql)
for package in "${packages[@]}"; do apt_package "$package"; done

echo "Python peers (bench/.venv)"
[ -x .venv/bin/python ] || python3 -m venv .venv || lacks "bench/.venv" "python3 -m venv failed"
.venv/bin/python -c 'import arq, asyncpg, granian, httptools, orjson, pgqueuer, procrastinate, psycopg, starlette, uvicorn, uvloop' 2>/dev/null \
  || .venv/bin/pip install --quiet --disable-pip-version-check -r peers/requirements.txt \
  || lacks "granian, uvicorn, starlette, procrastinate, pgqueuer, arq" "pip install failed"

.venv/bin/python -c 'import django, fastapi, flask, gevent, gunicorn, websockets' 2>/dev/null \
  || .venv/bin/pip install --quiet --disable-pip-version-check -r peers/requirements_hosting.txt \
  || lacks "gunicorn, gevent, websockets, django, fastapi, flask" "pip install failed"
[ -x .venv/bin/uwsgi ] || .venv/bin/pip install --quiet --disable-pip-version-check uwsgi==2.0.31 \
  || lacks "uwsgi" "pip install failed: it needs a C compiler"

echo "Redis, for arq"
redis=peers/redis/target
# Unpacked here, not installed: the system is not changed, and no service starts. Its libraries are included; their dependencies are in every Debian.
if ! runs redis-server && [ ! -x $redis/usr/bin/redis-server ]; then
  rm -rf $redis && mkdir -p $redis/packages
  if (cd $redis/packages && apt-get download -qq redis-server redis-tools libatomic1 libjemalloc2 liblzf1) >/dev/null 2>&1; then
    for package in $redis/packages/*.deb; do dpkg-deb --extract "$package" $redis; done
    LD_LIBRARY_PATH=$(dirname $redis/usr/lib/*/libjemalloc.so.*) $redis/usr/bin/redis-server --version >/dev/null 2>&1 \
      || { lacks "redis" "it does not start"; rm -rf $redis; }
  else
    lacks "redis" "apt-get download failed"
  fi
fi

echo "load generator and axum peers"
for project in load peers/axum peers/axum_postgres; do
  if runs cargo; then
    CARGO_TARGET_DIR="$PWD/$project/target" cargo build --quiet --release --locked --manifest-path "$project/Cargo.toml" \
      || lacks "$project" "cargo build failed"
  else
    lacks "$project" "no cargo here"
  fi
done

echo "our own driver without a server"
if runs cargo; then
  (cd .. && cargo build --quiet --release --locked -p parkade-postgres --example serial) || lacks "serial" "cargo build failed"
fi

echo "Tomcat peer"
if [ ! -d peers/tomcat/target/lib ] || [ ! -d peers/tomcat/target/classes ]; then
  if runs mvn && runs javac; then
    mvn --quiet --batch-mode --file peers/tomcat/pom.xml package || lacks "tomcat" "mvn package failed"
  else
    lacks "tomcat" "no mvn or no javac here"
  fi
fi

if [ ${#missing[@]} -eq 0 ]; then echo "everything is installed"; else echo "without: ${missing[*]}"; fi
# Only the load generator is required: without it nothing can be measured.
[ -x load/target/release/load ]
