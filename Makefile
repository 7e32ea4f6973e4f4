# `make help` lists what there is. CMake does the work; this file is the short way to it.

PRESET ?= release
PREFIX ?= /usr/local
# One compiler needs up to 2 GB.
JOBS ?= $(shell awk -v cpus=$$(nproc) '/MemAvailable/ { jobs = int($$2 / 2097152); print jobs < 1 ? 1 : jobs < cpus ? jobs : cpus }' /proc/meminfo)
LABEL ?=
ARGS ?=
MODEL ?= cnn
BUILD := build/$(PRESET)

.DEFAULT_GOAL := help
.PHONY: help setup configure build test python-package python wheel conformance demo bench lint format install clean

help: ## Show this
	@awk -F ':.*## ' '/^[a-z]+:.*## / { printf "  make %-12s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)
	@printf '\n  Settings, name=value: PRESET=release|debug|asan|tsan|clang  JOBS=%s  LABEL=<test label>\n' '$(JOBS)'
	@printf '                        PREFIX=%s  MODEL=mlp|cnn  Torch_DIR=, CMAKE_PREFIX_PATH= (your own libtorch)\n' '$(PREFIX)'

setup: ## Install packages and libtorch, whatever is missing
	@scripts/setup.sh

configure: setup
	@mkdir -p build
	@cmake --preset $(PRESET) >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }

build: configure ## Build everything (does the set-up first)
	cmake --build --preset $(PRESET) --parallel $(JOBS)

test: build ## Build and run the tests
	ctest --preset $(PRESET) --parallel $(JOBS) $(if $(LABEL),-L '$(LABEL)')

python-package: configure
	@python=$$(scripts/setup.sh python | tail -1) && cmake --preset $(PRESET) -DFOREGRAD_PYTHON=ON \
	  -DPython3_EXECUTABLE=$$python >$(BUILD).log 2>&1 || { cat $(BUILD).log; exit 1; }
	cmake --build --preset $(PRESET) --parallel $(JOBS) --target foregrad_python

python: python-package ## Build the Python package and run its tests, with a torch of its own
	PYTHONPATH=$(BUILD)/python $$(scripts/setup.sh python | tail -1) -m pytest -q tests/python

wheel: setup ## Build a wheel of the Python package in build/
	$$(scripts/setup.sh python | tail -1) -m pip wheel --no-deps --no-build-isolation --wheel-dir build .

conformance: python-package ## Run PyTorch's operator and module databases (ARGS='--dtype float32 --op add')
	OMP_NUM_THREADS=1 PYTHONPATH=$(BUILD)/python $$(scripts/setup.sh python | tail -1) tests/conformance/run.py \
	  --json build/conformance.json --jobs $(JOBS) $(ARGS)

demo: build ## Train on Fashion-MNIST, eager and compiled side by side
	OMP_WAIT_POLICY=$${OMP_WAIT_POLICY:-passive} $(BUILD)/bin/foregrad train --data fashion-mnist --model $(MODEL) --compare \
	  --out build/demo --json build/demo/results.json

bench: build ## Print trace, compile and call times
	$(BUILD)/bin/foregrad_bench

lint: setup ## Check format, rooms, a test for each file, clang-tidy (TIDY=sources|changed|all|none)
	@scripts/lint.sh $(JOBS)

format: setup ## Format all C++ files
	@scripts/cxx_files.sh | xargs -r clang-format -i

install: build ## Install the library, the tool and the CMake package below PREFIX
	cmake --install $(BUILD) --prefix $(PREFIX)

clean: ## Remove build/ (libtorch stays in the cache)
	rm -rf build
