# The front door. Everything here installs what it needs (packages.txt), builds, and does its job.
# ATTSVM_NO_INSTALL=1 installs nothing and names what is missing.

.DEFAULT_GOAL := help
.PHONY: help build demo test test-full test-device soak bench bench-device bench-peers build-bench bench-python audit-demo python wheels deb docs format

RELEASE := build/release/attsvm

help:  ## show this list
	@awk -F ':.*## ' '/^[a-z-]+:.*## / { printf "  make %-10s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

build:  ## build the program: build/release/attsvm
	@scripts/install_packages page gpu mpi
	@[ -f build/release/build.ninja ] || cmake --preset release >/dev/null
	@cmake --build --preset release

demo: build  ## the main job in seconds
	@scripts/demo $(RELEASE)

test:  ## build and run every test, AddressSanitizer and fuzzers in short form
	@scripts/install_packages page gpu mpi test
	@scripts/run_tests

test-full:  ## the same at length: ThreadSanitizer, every test under every sanitizer, long fuzzing, clang-tidy on all files
	@scripts/install_packages page gpu mpi test wheels
	@scripts/run_tests --full

test-device:  ## the tests that need an NVIDIA GPU
	@scripts/install_packages gpu test
	@[ -f build/dev/build.ninja ] || cmake --preset dev >/dev/null
	@cmake --build --preset dev --target attsvm_program train_tests device_tests
	@scripts/test_device build/dev

soak:  ## an hour of failing memory, kills, signals, hostile files and forgeries; goes on where it stopped (SECONDS=N)
	@scripts/install_packages test
	@[ -f build/dev/build.ninja ] || cmake --preset dev >/dev/null
	@cmake --build --preset dev --target attsvm_program failing_malloc
	@/usr/bin/python3 tests/soak.py --seconds $(or $(SECONDS),3600)

bench: build-bench  ## measure speed and memory against the limits of this machine (QUICK=1: less of it)
	@bench/run $(if $(QUICK),--quick)

bench-peers: build-bench  ## the same and the solvers people use today, which it installs into build/peers (QUICK=1: less of it)
	@scripts/install_packages peers
	@scripts/peers_environment
	@bench/run --peers $(if $(QUICK),--quick)

bench-device: build-bench  ## measure batches on an NVIDIA GPU, beside PyTorch if python3 has it: build/results/device.json
	@PYTHON=python3 bench/run --only device -o build/results/device.json

build-bench:
	@scripts/install_packages bench
	@[ -f build/bench/build.ninja ] || cmake --preset bench >/dev/null
	@cmake --build --preset bench

bench-python:  ## what calling from Python costs over C++
	@scripts/install_packages bench test
	@cmake --preset bench -DATTSVM_PYTHON_MODULE=ON >/dev/null
	@cmake --build --preset bench --target attsvm_bench attsvm_python
	@PYTHONPATH=build/bench/python build/python/bin/python bench/python_overhead.py build/bench

audit-demo:  ## audit the 72 heads of MiniLM, whose weights it fetches into build/weights; some minutes on two cores
	@scripts/install_packages test
	@[ -f build/dev/build.ninja ] || cmake --preset dev >/dev/null
	@cmake --build --preset dev --target attsvm_program attsvm_python attsvm_python_stub
	@scripts/audit_demo build/dev/attsvm build/dev/python

python:  ## build a wheel for this machine's Python, and for its Linux and newer; needs NumPy alone: build/wheels
	@scripts/install_packages test
	@scripts/python_environment >/dev/null
	@scripts/build_wheel

wheels:  ## build wheels for x86-64 Linux with glibc 2.28 and newer, Python 3.10, 3.11, 3.12+: build/wheels
	@scripts/install_packages page test wheels
	@scripts/python_environment >/dev/null
	@scripts/build_wheels

deb:  ## build the Debian packages: build/deb
	@scripts/install_packages deb
	@scripts/build_deb

docs:  ## build the documentation as a site: build/site
	@scripts/install_packages docs
	@scripts/build_docs

format:  ## lay out all C++ files, and those of the page
	@scripts/install_packages page test
	@git ls-files -co --exclude-standard '*.cpp' '*.h' | xargs clang-format -i
	@cd tests/web && npm ci --ignore-scripts --silent && node_modules/.bin/prettier --log-level warn --write "../../web/src/**/*.ts" ../../web/*.mjs *.mjs
