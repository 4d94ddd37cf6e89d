# Everything happens in a virtual environment of its own, .venv; nothing outside this directory is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
# As in pyproject.toml
BACKEND := 'scikit-build-core>=1.0' 'nanobind>=2.4' 'vcs-versioning>=2.0'
MINIMUM := build/minimum
MINIMUM_TESTS := tests
CPP := $(shell find cpp benchmarks -name '*.?pp')
SOURCES := pyproject.toml CMakeLists.txt $(filter cpp/%,$(CPP))

.PHONY: demo test test-all test-long test-minimum wheel lint format docs notebooks pictures bench bench-engines check-tools check-java clean

demo: $(STAMP)
	$(BIN)/deciban demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m 'not spark and not slow'

test-all: test test-long

test-long: check-java $(VENV)/.spark
	$(BIN)/python -m pytest -n auto --dist loadgroup -m 'spark or slow'

# With the oldest version of every dependency that pyproject.toml allows, in an environment of its own
test-minimum: $(STAMP)
	rm -rf $(MINIMUM)
	$(PYTHON) -m venv $(MINIMUM)
	$(BIN)/python tools/minimum_versions.py plot dask > $(MINIMUM)/versions.txt
	$(MINIMUM)/bin/python -m pip install --quiet --config-settings=build-dir=$(MINIMUM)/kernels \
	  --requirement $(MINIMUM)/versions.txt '.[test]'
	$(MINIMUM)/bin/python -m pytest -n auto --dist loadgroup -m 'not spark and not slow' $(MINIMUM_TESTS)

wheel: check-tools
	$(PYTHON) tools/wheel.py

lint: $(VENV)/.lint
	$(BIN)/clang-format --dry-run --Werror $(CPP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy

format: $(VENV)/.lint
	$(BIN)/clang-format -i $(CPP)
	$(BIN)/ruff format .

docs: $(STAMP)
	$(BIN)/python tools/site.py build/site

notebooks: $(STAMP)
	$(BIN)/python tools/notebooks.py

pictures: $(STAMP)
	$(BIN)/python tools/pictures.py

bench: $(VENV)/.bench
	$(BIN)/python -m benchmarks

bench-engines: check-java $(VENV)/.bench-engines
	$(BIN)/python -m benchmarks.engines

check-java:
	@$${JAVA_HOME:+$$JAVA_HOME/bin/}java -version 2>&1 | grep -q 'version "\(1[7-9]\|[2-9][0-9]\)' || \
	  { echo 'Spark needs Java 17 or newer: apt-get install openjdk-17-jre-headless (and JAVA_HOME, if it is elsewhere)'; exit 1; }

check-tools:
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' 2>/dev/null || \
	  { echo 'deciban needs Python 3.11 or newer: apt-get install python3, or make PYTHON=/path/to/python3.11'; exit 1; }
	@$(PYTHON) -c 'import venv, ensurepip' 2>/dev/null || \
	  { echo 'Python cannot make virtual environments: apt-get install python3-venv'; exit 1; }
	@command -v $${CXX:-g++} >/dev/null 2>&1 || \
	  { echo 'there is no C++ compiler: apt-get install g++ (or set CXX)'; exit 1; }

$(STAMP): $(SOURCES)
	@$(MAKE) --no-print-directory check-tools
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --upgrade pip
	$(BIN)/python -m pip install --quiet $(BACKEND) cmake ninja
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[test]'
	touch $@

$(VENV)/.lint: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[lint]'
	touch $@

$(VENV)/.spark: $(STAMP)
	$(BIN)/python -m pip install --quiet 'pyspark[connect]>=3.5' # builds by itself, with setuptools of its own
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[spark]'
	touch $@

$(VENV)/.bench-engines: $(VENV)/.bench $(VENV)/.spark
	$(BIN)/python -m pip install --quiet 'dask-ml>=2025.1'
	touch $@

$(VENV)/.bench: $(STAMP)
	$(BIN)/python -m pip install --quiet --no-build-isolation --editable '.[bench]'
	touch $@

clean:
	rm -rf $(VENV) build
