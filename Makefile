# Two commands are all a newcomer needs: `make reproduce` and `make test`. Each sets up what it needs in .venv.

PYTHON ?= python3
BIN := .venv/bin
READY := .venv/ready
SIZE ?= quick
OUT ?= results/reproduction
PRESET ?= $(if $(filter full,$(SIZE)),text$(COMMA)authors,text)
COMMA := ,
EACH ?= -n logical --dist worksteal

# Files that Python compiled are kept even where it is told not to: half of the time that tests take to start.
test-plain test-compiled test-slow: export PYTHONDONTWRITEBYTECODE :=

.PHONY: certificates reproduce test test-plain test-compiled test-slow test-gpu bench-gpu lint bench docs clean

.venv/ready: requirements.lock pyproject.toml reproduction/pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' || \
		{ echo "stagewise needs Python 3.11 or newer; $(PYTHON) is $$($(PYTHON) --version). Try: make $(MAKECMDGOALS) PYTHON=python3.12"; exit 1; }
	$(PYTHON) -m venv .venv
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r requirements.lock
	$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable . --editable ./reproduction
	@touch .venv/ready

reproduce: .venv/ready
	$(BIN)/stagewise reproduce --size $(SIZE) --preset $(PRESET) --out $(OUT)

lint: .venv/ready
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports --no-cache

test: lint test-plain test-compiled

# Kernels as the Python they are: nothing is compiled, so this is the lane for every change.
test-plain: .venv/ready
	NUMBA_DISABLE_JIT=1 $(BIN)/python -m pytest -n 2 --dist worksteal -q -m "not compiled and not slow and not gpu"

# What only machine code can show, and what takes more rounds than Python plays.
test-compiled: .venv/ready
	NUMBA_DISABLE_JIT=0 $(BIN)/python -m pytest -n 2 --dist loadfile -q -m "compiled and not slow and not gpu"

test-slow: .venv/ready
	$(BIN)/python -m pytest -n 2 -q -m slow

# Nearly all of it is compiling for the device, a loop for each kind of policy: so a process a core, with tests of its own.
# Where packages are installed and no registry can be reached: make test-gpu READY= BIN=/folder/of/python
# Without pytest-xdist: make test-gpu EACH=
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
	.venv-bench/bin/python benchmarks/convex_sets.py --rounds 1000 --instances 10

certificates: .venv/ready
	$(BIN)/python -m stagewise_reproduction.certificates --runs 4000 --out docs/certificates

docs: .venv/ready
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -r docs/requirements.lock
	$(BIN)/sphinx-build -W --keep-going -q -b html docs docs/_build/html
	@echo "open docs/_build/html/index.html"

clean:
	rm -rf .venv .venv-bench docs/_build results/reproduction .pytest_cache .mypy_cache .ruff_cache .hypothesis
