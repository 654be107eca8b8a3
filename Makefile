# The first of these that exists and is Python 3.11 or later makes .venv; `make PYTHON=... setup` to choose.
PYTHON ?= python3.11 python3

BIN := .venv/bin
# A worker for each of two cores, and one thread of BLAS in each: more would wait for one another at full speed.
# Bytecode is kept even where the user keeps none: many tests start processes that import the package again.
PYTEST := OMP_NUM_THREADS=1 OPENBLAS_NUM_THREADS=1 PYTHONDONTWRITEBYTECODE= $(BIN)/python -m pytest -n 2 --dist worksteal
# Extra arguments, e.g. `make test ARGS="tests/laplacian/test_chain.py"`.
ARGS ?=
# What the CPU of `make test-isa` has, for XLA; and what OpenBLAS calls such a one. AVX2 is worth trying too.
ISA ?= SSE4_2
CORE_SSE4_2 := Nehalem
CORE_AVX2 := Haswell

# As variables rather than options, the pins also hold for the packages that build the wheel
# (pip before 25.3 reads the first there, later ones the second).
export PIP_CONSTRAINT := constraints.txt
export PIP_BUILD_CONSTRAINT := constraints.txt
export PIP_DISABLE_PIP_VERSION_CHECK := 1
# Never install anywhere but into .venv, whatever state it is in.
export PIP_REQUIRE_VIRTUALENV := 1
# uv installs in a quarter of pip's time but reads none of pip's settings: it is told of wheels on this machine,
# and where it finds a package nowhere, pip is asked.
export UV_FIND_LINKS ?= $(PIP_FIND_LINKS)
# Options of uv, options of pip, and what both are to install.
install = $(BIN)/uv pip install --python $(BIN)/python --constraints constraints.txt \
	    --build-constraints constraints.txt $(1) $(3) >/dev/null 2>&1 || $(BIN)/python -m pip install -qq $(2) $(3)
DEV := --editable '.[dev,docs]'
# pyright: run the copy inside the package, never fetch another one or look for it.
export PYRIGHT_PYTHON_USE_BUNDLED_PYRIGHT := 1
export PYRIGHT_PYTHON_IGNORE_WARNINGS := 1
# mkdocs-material: no advertisement for its successor in every build.
export NO_MKDOCS_2_WARNING := 1

.DEFAULT_GOAL := help
.PHONY: help demo setup test test-slow test-isa coverage lint bench torture docs clean

help: ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' Makefile

demo: .venv/.core ## learn a representation of FourRoom and draw it, in runs/demo
	$(BIN)/lapwing learn FourRoom --out runs/demo --overwrite
	@echo "The pictures:"
	@find runs/demo -name '*.png' | sort | sed 's/^/  /'

setup: .venv/.dev ## make .venv with the package, the development tools and the docs tools

# Most of the time of a first run is compilation: without LLVM's optimisation and the newer emitters of fused
# loops it takes half as long. The numeric tests run once more as users compile, in `make test-isa`.
QUICK := --xla_backend_optimization_level=0 --xla_cpu_use_fusion_emitters=false --xla_cpu_parallel_codegen_split_count=1
QUICK_COMPILATION = XLA_FLAGS="$${XLA_FLAGS:-$(QUICK)}"

test: .venv/.dev ## run the tests and the doctests, but for those that are marked slow
	$(QUICK_COMPILATION) $(PYTEST) -m 'not slow' $(ARGS)

test-slow: .venv/.dev ## run the slow tests
	$(PYTEST) -m slow $(ARGS)

NUMERIC = $(shell grep -rl --include='test_*.py' mark.numeric tests)

test-isa: .venv/.dev ## run the tests marked numeric as on one thread of a CPU that only has the instructions of ISA
	XLA_FLAGS="--xla_cpu_max_isa=$(ISA) --xla_cpu_multi_thread_eigen=false" OPENBLAS_CORETYPE=$(CORE_$(ISA)) $(PYTEST) -m 'numeric and not slow' $(NUMERIC) $(ARGS)

coverage: .venv/.dev ## run the tests and print how much of the package they reach
	$(QUICK_COMPILATION) $(PYTEST) -m 'not slow' --cov=lapwing --cov-report=term:skip-covered $(ARGS)

lint: .venv/.dev ## check style, format, types and which folder imports which
	$(BIN)/ruff check .
	$(BIN)/ruff check --isolated --select F821 tests
	$(BIN)/ruff format --check .
	$(BIN)/pyright
	$(BIN)/pyright -p benchmarks/pyrightconfig.json # calls that no longer fit: benchmarks are seldom run
	$(BIN)/lint-imports --no-cache

bench: .venv/.dev ## measure speed, memory and quality against their targets
	$(BIN)/python -m benchmarks $(ARGS)

torture: .venv/.dev ## kills, damage, full disks and mistakes by the thousand; resumes, and takes about an hour
	$(BIN)/python -W ignore -m torture $(ARGS)

docs: .venv/.dev ## build the site into site/, running its notebooks
	$(QUICK_COMPILATION) $(BIN)/mkdocs build --strict

clean: ## remove .venv, the site and the caches (runs/ stays)
	rm -rf .venv site dist build .pytest_cache .ruff_cache .hypothesis .coverage
	find . -name __pycache__ -type d -prune -exec rm -rf {} +

# The stamps say what .venv holds; pip runs again only when the requirements change.
.venv/.core: pyproject.toml constraints.txt
	@echo "setting up .venv (about a minute, first time only)"
	@if ! { test -f .venv/pyvenv.cfg && $(BIN)/python -m pip --version; } >/dev/null 2>&1; then \
	    for candidate in $(PYTHON); do \
	        if $$candidate -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null; then \
	            exec $$candidate -m venv --clear .venv; \
	        fi; \
	    done; \
	    echo "lapwing needs Python 3.11 or later; none of these is: $(PYTHON)." \
	        "Name one: make PYTHON=/path/to/python" >&2; \
	    exit 1; \
	fi
	@$(BIN)/python -m pip install -qq uv || echo "uv could not be installed: by pip alone, setting up takes longer"
	@$(call install,--compile-bytecode,,--editable .)
	@touch $@

.venv/.dev: .venv/.core
	@echo "adding the development tools to .venv (about a minute, first time only)"
	@$(call install,,--no-compile,$(DEV)) # most of it is never imported
	@touch $@
