# `make demo` and `make test` are all a newcomer needs; each sets up .venv by itself.
PYTHON ?= python3
BIN := .venv/bin
PIP_INSTALL := $(BIN)/python -m pip install --quiet --disable-pip-version-check --constraint constraints.txt
# One BLAS/torch thread a process: several processes share the cores, and more threads than cores are slower.
export OMP_NUM_THREADS ?= 1
# Where this is set, every process that tests start would compile what it imports, and pytest the tests.
unexport PYTHONDONTWRITEBYTECODE

# What makes MKL, OpenBLAS and torch take other kernels than they would here: those of older processors.
KERNELS := MKL_CBWR=COMPATIBLE MKL_CBWR=AVX2 MKL_ENABLE_INSTRUCTIONS=SSE4_2 \
	OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=default

# With -n, tests that share fixtures stay in one process, the longest first: tests/conftest.py.
PYTEST := $(BIN)/python -m pytest

.PHONY: help demo serve lint fast-tests all-tests check test test-release test-kernels format openapi client bench bench-estimates bench-service bench-quick bench-validity bench-trust clean

help:  ## show these targets
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | expand -t 16

.venv/bin/python:
	$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "Python 3.11 or newer is needed")'
	$(PYTHON) -m venv .venv

# torch goes first and by its exact version, so that a CPU build in reach of pip is taken.
.venv/.runtime: .venv/bin/python pyproject.toml constraints.txt
	$(PIP_INSTALL) "$$(grep -m1 '^torch==' constraints.txt)"
	$(PIP_INSTALL) --editable '.[worker]'
	@touch $@

.venv/.dev: .venv/.runtime
	$(PIP_INSTALL) --editable '.[dev]'
	@touch $@

demo: .venv/.runtime  ## run the main job end to end over HTTP and write its files to ./vnce-demo
	$(BIN)/vnce demo

serve: .venv/.runtime  ## keep the embedded service running
	$(BIN)/vnce serve

lint: .venv/.dev
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports
	$(BIN)/yamllint --strict docker-compose*.yml monitoring
	$(BIN)/check-jsonschema --builtin-schema vendor.compose-spec docker-compose*.yml
	$(BIN)/hadolint docker/*.Dockerfile

fast-tests: .venv/.dev
	$(PYTEST) -q -n 2 -m "not slow and not integration and not faults and not release"

check: .venv/.dev  ## format, lint, types, import contracts, fast tests
	$(MAKE) --no-print-directory --jobs=2 lint fast-tests

# Three processes on two cores: those of stacks mostly wait.
all-tests: .venv/.dev
	$(PYTEST) -n 3 -m "not release"

test: .venv/.dev  ## format, lint, types, import contracts, the tests, with real servers
	$(MAKE) --no-print-directory --jobs=2 lint all-tests

test-release: .venv/.dev  ## the longest: repeated samples, generated input in numbers, images' command lines, wheels in new environments, an outage of two minutes
	$(PYTEST) -n 3 -m "release or hypothesis" --hypothesis-profile release

test-kernels: .venv/.dev  ## the engine's tests with the kernels of other processors, once each; about 40 minutes
	@red=; for kernels in $(KERNELS); do \
		echo "$$kernels"; \
		env "$$kernels" $(PYTEST) -q -n 2 \
			tests/engine tests/recovery tests/contracts/test_engine_limits.py || red="$$red $$kernels"; \
	done; \
	test -z "$$red" || { echo "red under$$red"; exit 1; }

format: .venv/.dev  ## format and fix what can be fixed
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

openapi: .venv/.dev  ## write openapi.yaml from the app
	$(BIN)/python -m service openapi openapi.yaml

client: .venv/.dev  ## generate the Python client into build/client
	rm -rf build/client
	mkdir -p build
	PATH="$(CURDIR)/$(BIN):$$PATH" openapi-python-client generate --path openapi.yaml --config client.yaml --meta setup --output-path build/client --fail-on-warning
	cp docs/client.md build/client/README.md

bench: .venv/.dev  ## all figures, into benchmarks/results; hours: it goes on where it was cut off
	$(BIN)/python -m benchmarks.speed
	$(BIN)/python -m benchmarks.accuracy

# PYGEOAPI names the Python of an environment that has pygeoapi and gunicorn; left out: not compared.
bench-service: .venv/.dev  ## the service under load, with wrk
	$(BIN)/python -m benchmarks.service $(if $(PYGEOAPI),--pygeoapi $(PYGEOAPI))

bench-quick: .venv/.dev  ## the engine's figures: AUC and CPU time on ring and hub graphs
	$(BIN)/python -m benchmarks.quick

# Kernels that every processor has, so that figures stored on one machine hold on another. ESTIMATES=--write stores.
bench-estimates: .venv/.dev  ## whether every estimator gives what it gave: K and h beside benchmarks/estimates.npz
	MKL_CBWR=COMPATIBLE OPENBLAS_CORETYPE=Haswell ATEN_CPU_CAPABILITY=default \
		$(BIN)/python -m benchmarks.estimates $(ESTIMATES)

# VALIDITY passes options on, such as VALIDITY="--full --data DIR".
bench-validity: .venv/.dev  ## whether estimates are right and repeatable: tables, in 10 minutes
	$(BIN)/python -m benchmarks.validity $(VALIDITY)

bench-trust: .venv/.dev  ## how far answers can be trusted, in small: see docs/trust.md
	$(BIN)/vnce reproduce coverage --seed 0 --sample-sizes 500 --n-data-sets 2 --out benchmarks/results/coverage
	$(BIN)/python -m benchmarks.bootstrap --only ring --fractions 0 --resamples 20
	$(BIN)/python -W ignore -m benchmarks.dependence --tables 2
	$(BIN)/python -W ignore -m benchmarks.heavy_tails --tables 10
	$(BIN)/python -W ignore -m benchmarks.clusters --tables 10
	$(BIN)/python -W ignore -m benchmarks.difference --tables 4 --global-tables 2 --fractions 0
	$(BIN)/python -W ignore -m benchmarks.centrality --tables 5 --rows 30
	$(BIN)/python -m benchmarks.imputation --masks 1 --only wine iris
	$(BIN)/python -m benchmarks.transforms --seeds 1 --gaussian
	$(BIN)/python -W ignore -m benchmarks.comparison --tables 1

clean:  ## remove what the build made
	rm -rf .venv build vnce-demo
