# Everything happens in a virtual environment of its own, .venv; nothing outside this directory is touched.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
COMMA := ,
# pip's index, if another one is set; uv does not read pip's settings
INDEX = $(or $(PIP_INDEX_URL),$(shell $(BIN)/python -m pip config get global.index-url 2>/dev/null))
INSTALL = $(BIN)/python -m uv pip install --quiet --python $(BIN)/python $(if $(INDEX),--default-index $(INDEX))
# As in pyproject.toml
BACKEND := 'scikit-build-core>=1.0' 'nanobind>=2.4' 'vcs-versioning>=2.0'
MINIMUM := build/minimum
MINIMUM_TESTS := tests
CPP := $(shell find cpp benchmarks -name '*.?pp')
FUZZ_SECONDS ?= 60 # for each target
# Modules are compiled once, not again in every process
unexport PYTHONDONTWRITEBYTECODE
SOURCES := pyproject.toml CMakeLists.txt $(filter-out cpp/tests/%,$(filter cpp/%,$(CPP)))

.PHONY: demo test test-all test-long test-minimum fuzz lint format docs notebooks pictures wheel bench bench-engines
.PHONY: bits portable clang cross sanitize sanitize-short sanitize-tests sanitize-threads valgrind check-tools check-java clean

demo: $(STAMP)
	$(BIN)/deciban demo

test: $(STAMP)
	$(BIN)/python -m pytest -n auto --dist loadgroup -m 'not spark and not slow'

test-all: test test-long

test-long: check-java $(VENV)/.spark
	$(BIN)/python -m pytest -n auto --dist loadgroup -m 'spark or slow'

fuzz: $(STAMP)
	$(BIN)/python -m tests.fuzz --seconds $(FUZZ_SECONDS)

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
	$(BIN)/zizmor --offline --no-progress --quiet .github/workflows

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

# Other builds of the extension, each in an environment that shares the libraries of .venv: $(call build,NAME,SETTINGS)
PURELIB := -c 'import sysconfig; print(sysconfig.get_path("purelib"))'
define build
test -x build/$(1)/bin/python || $(BIN)/python -m venv --without-pip build/$(1)
$(BIN)/python $(PURELIB) > $$(build/$(1)/bin/python $(PURELIB))/shared.pth
build/$(1)/bin/python -m pip install --quiet --no-deps --no-build-isolation --force-reinstall \
  --config-settings=build-dir=build/$(1)/cmake $(addprefix --config-settings=,$(2)) .
endef

# cpp/tests/bits.cpp compiled and compared with the results on record: $(call bits,NAME,COMPILER AND FLAGS,RUNNER)
define bits
mkdir -p build
$(2) -std=c++17 -ffp-contract=off -fno-math-errno -Wall -Wextra -Wno-psabi -Wno-ignored-attributes -pthread \
  cpp/tests/bits.cpp -o build/bits-$(1)
$(3) build/bits-$(1) > build/bits-$(1).txt
diff cpp/tests/bits.txt build/bits-$(1).txt
endef

KERNEL_TESTS := tests/kernels tests/statistics tests/families

bits:
	$(call bits,native,$(CXX) -O2)

portable: $(STAMP) # the fallbacks for compilers that are neither GCC nor Clang
	$(call bits,portable,$(CXX) -O2 -DDECIBAN_PORTABLE)
	$(call build,portable,cmake.define.DECIBAN_PORTABLE=ON)
	build/portable/bin/python -m pytest -n auto -m 'not slow' tests/kernels

clang: $(STAMP)
	$(call bits,clang,clang++ -O2)
	$(call build,clang,cmake.define.CMAKE_CXX_COMPILER=clang++)
	build/clang/bin/python -m pytest -n auto -m 'not slow' $(KERNEL_TESTS)

cross: $(STAMP) # aarch64, under an emulator
	$(call bits,aarch64,aarch64-linux-gnu-g++ -O2 -static,qemu-aarch64-static)
	$(BIN)/python tools/cross.py

ASAN := LD_PRELOAD="$$(g++ -print-file-name=libasan.so) $$(g++ -print-file-name=libstdc++.so)" \
  ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1

sanitize: sanitize-threads valgrind
	$(call bits,sanitized,g++ -O1 -g -fsanitize=address$(COMMA)undefined -fno-sanitize-recover=all -D_GLIBCXX_ASSERTIONS)
	$(MAKE) --no-print-directory sanitize-tests SANITIZED='$(KERNEL_TESTS)'

sanitize-short: sanitize-threads
	$(MAKE) --no-print-directory sanitize-tests SANITIZED=tests/kernels

sanitize-tests: $(STAMP) # out of bounds, use after free, undefined behaviour
	$(call build,sanitized,cmake.build-type=RelWithDebInfo install.strip=false \
	  cmake.define.DECIBAN_SANITIZE=address$(COMMA)undefined)
	$(ASAN) build/sanitized/bin/python -m pytest -n auto -m 'not slow' -p no:cacheprovider $(SANITIZED)

sanitize-threads: # data races
	$(call bits,threads,g++ -O1 -g -fsanitize=thread)

valgrind: $(STAMP)
	$(BIN)/python tools/valgrind.py

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
	$(BIN)/python -m pip install --quiet --upgrade pip uv
	$(INSTALL) $(BACKEND) cmake ninja
	$(INSTALL) --no-build-isolation --editable '.[test]'
	touch $@

$(VENV)/.lint: $(STAMP)
	$(INSTALL) --group lint
	touch $@

$(VENV)/.spark: $(STAMP)
	$(INSTALL) 'pyspark[connect]>=3.5' # builds by itself, with setuptools of its own
	touch $@

$(VENV)/.bench-engines: $(VENV)/.bench $(VENV)/.spark
	$(INSTALL) 'dask-ml>=2025.1'
	touch $@

$(VENV)/.bench: $(STAMP)
	$(INSTALL) --group bench
	touch $@

clean:
	rm -rf $(VENV) build
