# syntax=docker/dockerfile:1
# Parkade with the demo; for your own application see "Containers" in docs/operations.md.
#
#     docker build -t parkade .                      several minutes: the server is compiled
#     docker run --rm --init -p 8000:8000 parkade
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update \
    && apt-get install --yes --no-install-recommends gcc libc6-dev python3 python3-pip python3-venv \
    && rm -rf /var/lib/apt/lists/*
RUN python3 -m venv /tools && /tools/bin/pip install --no-cache-dir 'maturin>=1.9,<2'
WORKDIR /source
COPY . .
# For `parkade --version`: the image has no repository to read it from.
ARG PARKADE_COMMIT=
RUN /tools/bin/maturin build --release --locked --out /wheels

FROM python:3.13-slim-bookworm
RUN useradd --system --uid 10001 --create-home --home-dir /srv/web web
COPY --from=build /wheels /wheels
RUN pip install --no-cache-dir /wheels/*.whl uvloop && rm -r /wheels
COPY --chown=web examples/style.css /srv/web/style.css
COPY --chown=web examples/demo /srv/web/demo
USER web
WORKDIR /srv/web
# Jobs are stored here: a volume keeps them when the container is replaced.
RUN mkdir state
VOLUME /srv/web/state
# Anyone who reaches the admin address can read everything there: it stays inside the container.
ENV PARKADE_BIND=0.0.0.0:8000 PARKADE_STATE=/srv/web/state PARKADE_ADMIN=127.0.0.1:9000 DEMO_ADMIN=127.0.0.1:9000
EXPOSE 8000
HEALTHCHECK --interval=10s --timeout=3s --start-period=20s \
    CMD ["python", "-c", "import urllib.request as r; r.urlopen('http://127.0.0.1:9000/health/ready', timeout=2)"]
# The core passes signals on to its workers itself: SIGTERM drains.
STOPSIGNAL SIGTERM
CMD ["parkade", "serve", "demo/app.py"]
