# Two commands are all a newcomer needs: `make reproduce` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
SIZE ?= quick
OUT ?= results/reproduction
PRESET ?= $(if $(filter full,$(SIZE)),text$(COMMA)authors,text)
COMMA := ,
EACH ?= -n logical --dist worksteal -p no:benchmark

# Files that Python compiled are kept even where it is told not to: half of the time that tests take to start.
test-plain test-long test-python test-compiled test-slow: export PYTHONDONTWRITEBYTECODE :=

.PHONY: browser certificates certificate-pages reproduce serve studies test test-plain test-long test-python test-compiled test-slow test-gpu bench-gpu lint bench bench-desk docs clean

.venv/ready: requirements.lock pyproject.toml reproduction/pyproject.toml studies/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stagewise needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./reproduction --editable ./studies
	@touch .venv/ready

reproduce: .venv/ready
	$(BIN)/stagewise reproduce --size $(SIZE) --preset $(PRESET) --out $(OUT)

# Real data, fetched into a cache and never put here (docs/explanation/studies.md): all studies, or one: make studies STUDY=warfarin
studies: .venv/ready
	$(BIN)/python -m stagewise_studies $(STUDY)

# The desk on an example, with simulated users: the address of its page and the keys to it are printed.
serve: .venv/ready
	@mkdir -p results/desk
	@if [ -f results/desk/keys.txt ]; then echo "The keys are in results/desk/keys.txt"; fi
	$(BIN)/stagewise serve examples/notifications.toml --demo --quiet --store results/desk/notifications.db --keys results/desk/keys.txt

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint browser test-python test-compiled

# Pages are looked at in a browser: Debian's, which root can install.
browser:
	@rm -f .venv/no-browser
	@[ -n "$$(which chromium chromium-browser google-chrome 2> /dev/null)" ] || \
		{ [ "$$(id -u)" = 0 ] && which apt-get > /dev/null 2>&1 && apt-get update -qq && apt-get install -y -qq chromium > /dev/null; } || \
		{ echo "no chromium here, and it cannot be installed: tests that look at pages in a browser are skipped"; \
		  mkdir -p .venv && touch .venv/no-browser; }

# Kernels as the Python they are: nothing is compiled, so this is the lane for every change.
test-plain: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not long and not compiled and not slow and not gpu"

# The same, of what takes longer than a moment: the desk, its stores and its page, every command, the paper's figures, many rounds.
test-long: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "long and not compiled and not slow and not gpu"

# Both of these at once: what is collected for one is collected for the other.
test-python: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not compiled and not slow and not gpu"

# What only machine code can show, and what takes more rounds than Python plays.
test-compiled: .venv/ready
	NUMBA_DISABLE_JIT=0 $(BIN)/python -m pytest -n 2 --dist loadfile -q -m "compiled and not slow and not gpu" tests reproduction/tests

test-slow: .venv/ready
	$(BIN)/python -m pytest -n 2 -q -m slow

# Nearly all of it is compiling for the device, a loop for each kind of policy: so a process a core, with tests of its own.
# Where packages are installed and no registry can be reached: make test-gpu READY= BIN=/folder/of/python
# Without pytest-xdist: make test-gpu EACH=   (where pytest-benchmark is installed, it warns of xdist, and warnings are errors)
test-gpu: $(READY)
	PYTHONPATH=src:reproduction/src $(BIN)/python -m pytest -q $(EACH) -m gpu tests/gpu

# What it measures must have the device to itself.
bench-gpu: $(READY)
	PYTHONPATH=src:reproduction/src $(BIN)/python benchmarks/gpu.py

.venv-bench/ready: benchmarks/requirements.lock pyproject.toml reproduction/pyproject.toml
	$(PYTHON) -m venv .venv-bench
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check -r benchmarks/requirements.lock
	-.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check contextualbandits==0.3.30  # compiles; the table does without it
	.venv-bench/bin/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./reproduction
	@touch .venv-bench/ready

bench: .venv-bench/ready
	.venv-bench/bin/python benchmarks/by_hand.py
	.venv-bench/bin/python benchmarks/mixture.py
	.venv-bench/bin/python benchmarks/drift.py
	.venv-bench/bin/python benchmarks/engine.py
	.venv-bench/bin/python benchmarks/profile_rays.py
	.venv-bench/bin/python benchmarks/many_runs.py
	.venv-bench/bin/python benchmarks/growth.py
	.venv-bench/bin/python benchmarks/cone.py
	.venv-bench/bin/python benchmarks/function_classes.py
	.venv-bench/bin/python benchmarks/kernel_growth.py
	.venv-bench/bin/python benchmarks/rare_costs.py
	.venv-bench/bin/python benchmarks/caps.py
	.venv-bench/bin/python benchmarks/watch.py
	.venv-bench/bin/python benchmarks/drift_found.py
	.venv-bench/bin/python benchmarks/evaluation.py
	.venv-bench/bin/python benchmarks/convex_sets.py --rounds 1000 --instances 10

# The desk beside a bare echo; with PostgreSQL too: make bench-desk MORE="--postgres postgresql://user@host/empty_database"
bench-desk: .venv/ready
	$(BIN)/python benchmarks/desk.py $(MORE)

certificates: .venv/ready
	$(BIN)/python -m stagewise_reproduction.certificates --runs 4000 --out docs/certificates

# The pages of certificates that are there, drawn again from their files; nothing is played.
certificate-pages: .venv/ready
	$(BIN)/python -m stagewise_reproduction.certificates --redraw --out docs/certificates

docs: .venv/ready browser
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.lock
	$(BIN)/python docs/making/gallery.py
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	$(BIN)/python docs/making/check.py docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf .venv .venv-bench docs/_build results/reproduction .pytest_cache .mypy_cache .ruff_cache .hypothesis
