# `make` lists the targets. Each does its own set-up: Debian packages, .venv, build.

SHELL := /bin/bash
.SHELLFLAGS := -euo pipefail -c
.DEFAULT_GOAL := help
.DELETE_ON_ERROR:
MAKEFLAGS += --no-print-directory --no-builtin-rules

JOBS ?= $(shell nproc)
GUIDE_OUT ?= guide-out
GUIDE_ARGS ?=
COPY_OUT ?= copy-out
COPY_ARGS ?=
MESSAGES_OUT ?= messages-out
MESSAGES_ARGS ?=
MPI_OUT ?= mpi-out
MPI_ARGS ?=
export CMAKE_BUILD_PARALLEL_LEVEL ?= $(JOBS)

python := .venv/bin/python

.PHONY: help
help: ## List the targets
	@awk -F ':.*## ' '/^[a-z-]+:.*## /{printf "  make %-15s %s\n", $$1, $$2}' Makefile

.PHONY: guide
guide: package ## Measure this machine and say which method to use (GUIDE_OUT=dir, GUIDE_ARGS=--quick)
	@echo "==> measuring this machine; results go to $(GUIDE_OUT)"
	@.venv/bin/lacuna guide --output $(GUIDE_OUT) $(GUIDE_ARGS)

.PHONY: peers
peers: ## Install the MPIs that the benches compare with (Debian packages, and environments in .peers)
	@scripts/peers.sh install

.PHONY: bench-copy
bench-copy: package peers ## Measure copies against loops by hand and four MPIs (COPY_OUT=dir, COPY_ARGS=--quick)
	@scripts/peers.sh list | sed 's/\t/=/; s/^/--mpi /' | xargs .venv/bin/lacuna bench copy --output $(COPY_OUT) $(COPY_ARGS)

.PHONY: bench-messages
bench-messages: package peers ## Measure messages against four MPIs (MESSAGES_OUT=dir, MESSAGES_ARGS=--quick)
	@scripts/peers.sh list | sed 's/\t/=/; s/^/--mpi /' | xargs .venv/bin/lacuna bench messages --output $(MESSAGES_OUT) $(MESSAGES_ARGS)

.PHONY: bench-mpi
bench-mpi: package peers ## Measure four MPIs' datatypes with Lacuna preloaded and without (MPI_OUT=dir, MPI_ARGS=--quick)
	@scripts/peers.sh list | sed 's/\t/=/; s/^/--mpi /' | xargs .venv/bin/lacuna bench mpi --output $(MPI_OUT) $(MPI_ARGS)

.PHONY: examples
examples: package ## Compile the example applications for each MPI that is here, into build/examples
	@scripts/peers.sh list | sed 's/\t/=/' | xargs $(python) scripts/examples.py build/examples

.PHONY: check
check: .venv/.dev ## After each edit: tests that need one process, and ruff
	@$(python) scripts/run_tests.py --tier check --jobs $(JOBS)

.PHONY: test
test: .venv/.dev peers ## Layers, methods, Python, MPI programs, installation
	@$(python) scripts/run_tests.py --tier test --jobs $(JOBS)

.PHONY: gate
gate: .venv/.dev peers ## What a change has to pass: lint, more tests, sanitizers, all MPIs, Soft-RoCE
	@$(python) scripts/run_tests.py --tier gate --jobs $(JOBS)

.PHONY: test-all
test-all: .venv/.dev peers ## Every test in full; hours. SHARD=K/N runs the K-th of N parts
	@$(python) scripts/run_tests.py --tier all --jobs $(JOBS)

.PHONY: coverage
coverage: .venv/.dev ## Lines of the interposer that no test on the fake host reaches; fails above a tenth of them
	@cmake --preset release -B build/coverage --log-level=WARNING -DLACUNA_COVERAGE=ON
	@cmake --build build/coverage --parallel $(JOBS) --target lacuna_interposer_tests
	@find build/coverage -name '*.gcda' -delete
	@build/coverage/bin/lacuna_interposer_tests --gtest_brief=1 > build/coverage/tests.txt 2>&1 || { tail -n 40 build/coverage/tests.txt; exit 1; }
	@.venv/bin/gcovr --root . --filter lacuna/mpi/ build/coverage --merge-lines --fail-under-line 90

.PHONY: arm
arm: ## Compile the copies for ARM and run their tests in an emulator, with NEON and with SVE; minutes
	@scripts/arm.sh

.PHONY: test-rdma
test-rdma: build package ## Run the tests of NIC verbs on Soft-RoCE, in virtual machines
	@scripts/setup.sh rdma
	@python3 scripts/rdma_vm/test.py

.PHONY: shell-rdma
shell-rdma: packages ## A prompt in that machine
	@scripts/setup.sh rdma
	@scripts/rdma_vm/vm.py --timeout 86400 --memory 2048 bash -i

.PHONY: build
build: .venv/.runtime ## Build the library, the worker, the Python module, the preload and the tests into build/release
	@echo "==> configuring build/release"
	@cmake --preset release --log-level=WARNING -DLACUNA_PYTHON=ON -DPython_EXECUTABLE=$(CURDIR)/.venv/bin/python
	@echo "==> building build/release"
	@cmake --build --preset release

.PHONY: lint
lint: packages .venv/.dev ## clang-format, clang-tidy, ruff, mypy, the include ladder, lengths
	@PATH="$$PWD/.venv/bin:$$PATH" scripts/lint.sh --jobs $(JOBS)

.PHONY: format
format: packages .venv/.dev ## Format the C++ and Python sources
	@find include lacuna tests tools examples python \( -name '*.cpp' -o -name '*.hpp' -o -name '*.h' -o -name '*.c' \) -print0 | xargs -0r .venv/bin/clang-format -i
	@.venv/bin/ruff check -q --fix-only . && .venv/bin/ruff format .

.PHONY: docs
docs: package .venv/.docs ## Build the documentation's site into build/docs/html
	@$(python) scripts/docs.py

.PHONY: install-check
install-check: build ## Install into a temporary prefix, and build and run programs against it
	@scripts/check_install.sh

.PHONY: deb
deb: build ## Make a Debian package of the C and C++ library and the preload, in build/release
	@cd build/release && cpack -G DEB

.PHONY: wheel
wheel: package .venv/.wheel ## Make the wheels for CPython 3.11 and for 3.12 and later, and check them, in build/wheels
	@scripts/wheels.sh

.PHONY: clean
clean: ## Remove everything that was built (.venv stays)
	rm -rf build

# --- set-up -----------------------------------------------------------------------------------------------------------

.PHONY: packages
packages:
	@scripts/setup.sh packages

.venv/.runtime: requirements/runtime.txt requirements/build.txt requirements/constraints.txt | packages
	@scripts/setup.sh venv requirements/runtime.txt requirements/build.txt
	@touch $@

.venv/.dev: requirements/dev.txt requirements/constraints.txt .venv/.runtime | packages
	@scripts/setup.sh venv requirements/dev.txt
	@touch $@

.venv/.wheel: requirements/wheel.txt requirements/constraints.txt .venv/.runtime | packages
	@scripts/setup.sh venv requirements/wheel.txt
	@touch $@

.venv/.docs: requirements/docs.txt requirements/constraints.txt .venv/.runtime | packages
	@scripts/setup.sh docs
	@scripts/setup.sh venv requirements/docs.txt
	@touch $@

# --- the Python package, in .venv -------------------------------------------------------------------------------------

package_files := CMakeLists.txt pyproject.toml LICENSE $(wildcard README.md) \
  $(shell find cmake include lacuna tools examples python \( -name __pycache__ -o -name '.*' -o -name _core.pyi \) -prune -o -type f -print 2>/dev/null)

.PHONY: package
package: .venv/.package ## Build and install the Python package into .venv

.venv/.package: .venv/.runtime build/package_files.txt $(package_files)
	@echo "==> building and installing the Python package"
	@touch $@.start  # the stamp is as old as the start: what is edited during the build is built next time
	@scripts/package.sh .venv/bin/python install --force-reinstall -v
	@mv $@.start $@

# Changes when a file comes or goes, which time stamps alone do not show.
build/package_files.txt: always
	@mkdir -p build
	@printf '%s\n' $(sort $(package_files)) | cmp -s - $@ || printf '%s\n' $(sort $(package_files)) > $@
.PHONY: always
always:
