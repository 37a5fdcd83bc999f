# The commands of this repository. `make` alone lists them; every other target does its own setup.

PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
RUST_SOURCES := $(shell find crates -name '*.rs' -o -name 'Cargo.toml') Cargo.toml Cargo.lock
ACCELERATOR := workers/python/accelerator
PERL_WORKER := workers/perl
PYTHON_SOURCES := $(shell find workers/python/src -name '*.py')

.DEFAULT_GOAL := help
.PHONY: help setup demo docs test check soak bench wheels fmt clean

help: ## List the commands
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-8s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

setup: $(VENV)/.parkade $(VENV)/.bytecode $(VENV)/.tools $(VENV)/.perl ## Build parkade and its Python package into .venv, and the part of its Perl package that is in C

$(VENV)/bin/python:
	$(PYTHON) -c 'import sys; sys.exit("Python 3.10 or newer is needed; set PYTHON=") if sys.version_info < (3, 10) else None'
	$(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip

$(VENV)/.tools: $(BIN)/python tests/requirements.txt requirements-dev.txt tests/programs.sh tests/perl_suites.sh tests/perl_products.sh
	tests/programs.sh
	$(BIN)/python -m pip install --quiet -r requirements-dev.txt -r tests/requirements.txt
	touch $@

# The binary and the package, where `pip install` would put them; the package is linked, so that it is always the one of this checkout.
$(VENV)/.parkade: $(BIN)/python $(RUST_SOURCES) $(wildcard $(ACCELERATOR)/*.[ch]) $(ACCELERATOR)/build.sh pyproject.toml
	@command -v cargo > /dev/null || { echo "A stable Rust toolchain is needed: see https://rustup.rs"; exit 1; }
	$(BIN)/python -m pip install --quiet 'maturin>=1.9,<2' 'msgspec>=0.19' 'uvloop>=0.20'
	cargo build --release --locked
	$(ACCELERATOR)/build.sh $(BIN)/python
	ln -sf ../../target/release/parkade $(BIN)/parkade
	echo "$(CURDIR)/workers/python/src" > "$$($(BIN)/python -c 'import sysconfig; print(sysconfig.get_path("purelib"))')/parkade.pth"
	touch $@

# With PYTHONDONTWRITEBYTECODE, every worker of every test would compile the package anew: half of what its start takes.
$(VENV)/.bytecode: $(VENV)/.parkade $(PYTHON_SOURCES)
	$(BIN)/python -m compileall -q workers/python/src
	touch $@

# After .tools, which gets Perl's headers; without them, or without a compiler, it says so and succeeds.
$(VENV)/.perl: $(PERL_WORKER)/Parkade.xs $(PERL_WORKER)/Makefile.PL $(PERL_WORKER)/build.sh $(VENV)/.tools
	$(PERL_WORKER)/build.sh
	touch $@

demo: $(VENV)/.parkade ## Serve the demo at http://127.0.0.1:8000
	$(BIN)/parkade serve examples/demo/app.py --bind 127.0.0.1:8000 --admin 127.0.0.1:8001

docs: setup ## Make the API reference from the docstrings, in target/reference
	$(BIN)/python scripts/reference.py

test: setup ## Run every test: what CI runs
	cargo test --locked --quiet --workspace
	$(BIN)/python -m pytest -q -n 2 --dist worksteal workers/python/tests
	cd $(PERL_WORKER) && prove -l t && PARKADE_ACCELERATOR=0 prove -l t
	$(BIN)/python scripts/black_box.py -n 4 --dist worksteal tests
	PARKADE_ACCELERATOR=0 $(BIN)/python scripts/black_box.py -n 4 --dist worksteal tests/test_wsgi.py tests/test_asgi.py tests/test_hosted_uploads.py

check: setup ## The quick loop: format, lints, types, unit tests; then what the structure measures
	cargo fmt --all --check
	cargo clippy --locked --quiet --workspace --all-targets -- -D warnings
	cargo test --locked --quiet --workspace
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/python -m pytest -q -n 2 --dist worksteal workers/python/tests
	cd $(PERL_WORKER) && prove -l t
	$(BIN)/python scripts/house.py --list names
	$(BIN)/python scripts/house.py

soak: setup ## Ten minutes each of queries, jobs, and jobs of three servers, with clients that leave, restarts, kill -9: no query is cancelled by mistake, no job lost
	PARKADE_FUZZ_SECONDS=60 cargo test --locked --quiet -p parkade -p parkade-postgres -p parkade-wire fuzz_ -- --nocapture
	$(BIN)/python soak/connections.py --count 200000
	$(BIN)/python soak/queries.py --seconds 600 --cancels 100000
	$(BIN)/python soak/jobs.py --seconds 600
	$(BIN)/python soak/jobs.py --seconds 600 --servers 3
	$(BIN)/python soak/queries.py --seconds 300 --cancels 20000 --language perl
	$(BIN)/python soak/jobs.py --seconds 120 --jobs 20000 --language perl
	$(BIN)/python soak/input.py --seconds 60
	cd $(PERL_WORKER) && PARKADE_FUZZ_SECONDS=60 prove -l t/fuzz.t && PARKADE_MEMORY_REQUESTS=1000000 prove -l t/memory.t

bench: $(VENV)/.parkade $(VENV)/.perl ## Measure parkade and its peers; writes bench/results and the figures in both READMEs
	bench/install.sh
	$(BIN)/python bench/run.py
	$(BIN)/python bench/figures.py

wheels: ## Build and check wheels for Linux (x86-64 and ARM, glibc and musl) and the source distribution, in dist/; takes about 20 minutes
	packaging/wheels.sh
	packaging/macos.sh

fmt: setup ## Format everything
	cargo fmt --all
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

clean: ## Remove what was built
	rm -rf $(VENV) .venv-wheels target dist $(PERL_WORKER)/arch
