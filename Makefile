# `make reproduce` and `make test` are the main commands. Each creates the environment .venv that it needs.

PYTHON ?= python3
PYTHONS ?= python3.11 python3.12 python3.13
BIN := .venv/bin
READY := .venv/ready
SIZE ?= quick
OUT ?= results/reproduction
PRESET ?= $(if $(filter full,$(SIZE)),text$(COMMA)authors,text)
COMMA := ,
EACH ?= -n logical --dist worksteal -p no:benchmark

# Write bytecode even if PYTHONDONTWRITEBYTECODE is set: it halves the start time of tests.
test-plain test-long test-python test-compiled test-slow: export PYTHONDONTWRITEBYTECODE :=

.PHONY: browser certificates certificate-pages clients release reproduce serve studies test test-all test-plain test-long test-python test-compiled test-slow simulate-server simulate-stores test-engines test-gpu bench-gpu lint bench bench-server docs clean

.venv/ready: requirements.lock pyproject.toml reproduction/pyproject.toml studies/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stagewise needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./reproduction --editable ./studies
	@touch .venv/ready

reproduce: .venv/ready
	$(BIN)/stagewise reproduce --size $(SIZE) --preset $(PRESET) --out $(OUT)

# Studies of real data, downloaded into a cache (docs/explanation/studies.md); one study: make studies STUDY=warfarin
studies: .venv/ready
	$(BIN)/python -m stagewise_studies $(STUDY)

# A server of an example with simulated users; prints the address of its page and its keys.
serve: .venv/ready
	@mkdir -p results/server
	@if [ -f results/server/keys.txt ]; then echo "The keys are in results/server/keys.txt"; fi
	$(BIN)/stagewise serve examples/notifications.toml --demo --quiet --store results/server/notifications.db --keys results/server/keys.txt

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint browser test-python test-compiled

# Everything: thousands of kills, long contention, statistics of many runs. Hours.
test-all: test test-slow

# Tests of pages need Chromium; root can install Debian's.
browser:
	@rm -f .venv/no-browser
	@[ -n "$$(which chromium chromium-browser google-chrome 2> /dev/null)" ] || \
		{ [ "$$(id -u)" = 0 ] && which apt-get > /dev/null 2>&1 && apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } || \
		{ echo "chromium is missing and cannot be installed: tests of pages in a browser are skipped"; \
		  mkdir -p .venv && touch .venv/no-browser; }

# Fast tests, with interpreted kernels; run them for every change.
test-plain: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not long and not compiled and not slow and not gpu"

# Longer tests with interpreted kernels: the server, its stores and its page, every command, the paper's figures, many rounds.
test-long: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "long and not compiled and not slow and not gpu"

# Both of these at once, with one collection.
test-python: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not compiled and not slow and not gpu"

# Tests that need compiled kernels.
test-compiled: .venv/ready
	NUMBA_DISABLE_JIT=0 $(BIN)/python -m pytest -n 2 --dist loadfile -q -m "compiled and not slow and not gpu" tests reproduction/tests

test-slow: .venv/ready
	$(BIN)/python -m pytest -n 2 -q -m slow

# Servers, clients and faults by seed; 100,000 schedules take a night on two cores. A seed that fails replays: SEEDS="17 1".
SEEDS = 1 100000
simulate-server: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.server.simulated.world $(SEEDS) --processes 2

# The same on the real stores: an SQLite file, and a PostgreSQL statement by statement (see CONTRIBUTING.md).
simulate-stores: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.server.simulated.file $(SEEDS) --processes 2
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m tests.server.simulated.postgres $(SEEDS)

# Wheel and source archive, checked, and tried in an empty environment of each Python that is there.
release: .venv/ready
	rm -rf dist
	$(BIN)/python -m hatchling build -d dist
	$(PYTHON) -m venv .venv-release
	.venv-release/bin/python -m pip install --quiet --disable-pip-version-check twine uv
	.venv-release/bin/python -m twine check --strict dist/*
	.venv-release/bin/python benchmarks/install.py dist/*.whl --pythons $(PYTHONS)
	.venv-release/bin/python benchmarks/install.py dist/*.whl --pythons $(PYTHON) --lowest

# The TypeScript client: types from the server's OpenAPI description, build, tests in Node against the real server, package.
clients: .venv/ready
	@which npm > /dev/null || { echo "npm is missing: install Node.js 20 or newer"; exit 1; }
	mkdir -p clients/typescript/build
	$(BIN)/python -m stagewise.server.web.openapi > clients/typescript/build/openapi.json
	cd clients/typescript && npm ci --no-progress && npm run build && npm test && npm pack
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -q tests/clients -m "not slow"

# Most of the time is compilation for the device, one loop per kind of policy; so one process per core.
# Without access to a package registry: make test-gpu READY= BIN=/folder/of/python
# Without pytest-xdist: make test-gpu EACH=   (pytest-benchmark warns of xdist, and warnings are errors)
test-gpu: $(READY)
	PYTHONPATH=src:reproduction/src $(BIN)/python -m pytest -q $(EACH) -m gpu tests/gpu

# Measures times; nothing else may use the device.
bench-gpu: $(READY)
	PYTHONPATH=src:reproduction/src $(BIN)/python benchmarks/gpu.py

.venv-bench/ready: benchmarks/requirements.lock pyproject.toml reproduction/pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.lock
	-.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check contextualbandits==0.3.30  # needs a compiler; optional
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./reproduction
	@touch .venv-bench/ready

# Spark and Ray need Java 17 and large packages, so they have an environment of their own.
.venv-engines/ready: requirements.lock tests/engines/requirements.lock pyproject.toml
	$(PYTHON) -m venv .venv-engines
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-compile -r requirements.lock -r tests/engines/requirements.lock
	.venv-engines/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./reproduction --editable ./studies
	@touch .venv-engines/ready

# Tables decided by Spark, Ray, Dask and MLflow, and frames of pandas, polars and PyArrow.
test-engines: .venv-engines/ready
	.venv-engines/bin/python -m pytest -q -p no:cacheprovider tests/engines

bench: .venv-bench/ready
	.venv-bench/bin/python benchmarks/by_hand.py
	.venv-bench/bin/python benchmarks/mixture.py
	.venv-bench/bin/python benchmarks/drift.py
	.venv-bench/bin/python benchmarks/engine.py
	.venv-bench/bin/python benchmarks/profile_rays.py
	.venv-bench/bin/python benchmarks/many_runs.py
	.venv-bench/bin/python benchmarks/growth.py
	.venv-bench/bin/python benchmarks/tables.py
	.venv-bench/bin/python benchmarks/cone.py
	.venv-bench/bin/python benchmarks/function_classes.py
	.venv-bench/bin/python benchmarks/kernel_growth.py
	.venv-bench/bin/python benchmarks/rare_costs.py
	.venv-bench/bin/python benchmarks/caps.py
	.venv-bench/bin/python benchmarks/watch.py
	.venv-bench/bin/python benchmarks/drift_found.py
	.venv-bench/bin/python benchmarks/mismatch.py --runs 20
	.venv-bench/bin/python benchmarks/evaluation.py
	.venv-bench/bin/python benchmarks/convex_sets.py --rounds 1000 --instances 10

# The server compared with a bare echo; with PostgreSQL: make bench-server MORE="--postgres postgresql://user@host/empty_database"
bench-server: .venv/ready
	$(BIN)/python benchmarks/server.py $(MORE)

# Policies that call a solver depend on the routines that OpenBLAS chooses; every x86-64 processor with AVX2 has these.
certificates: export OPENBLAS_CORETYPE := Haswell
certificates: .venv/ready
	$(BIN)/python -m stagewise_reproduction.certificates --runs 4000 --out docs/certificates

# Build the pages of the certificates in docs/certificates from their JSON files, without new runs. They are not committed.
certificate-pages: .venv/ready
	$(BIN)/python -m stagewise_reproduction.certificates --redraw --out docs/certificates

docs: .venv/ready browser certificate-pages
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.lock
	$(BIN)/python docs/making/gallery.py
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/making/check.py docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf .venv .venv-bench .venv-engines docs/_build results/reproduction .pytest_cache .mypy_cache .ruff_cache .hypothesis
