# The short verbs. `make demo` and `make test` need python3 (headers, venv), a C compiler and make; the rest they fetch.

PYTHON ?= python3
VENV ?= .venv
TESTS ?=
PY = $(VENV)/bin/python
SOURCES = $(shell find cygrad include -name '*.pyx' -o -name '*.pxd' -o -name '*.h') setup.py
FLAGS = $(CYGRAD_DEBUG),$(CYGRAD_NO_OPENMP),$(CYGRAD_ASAN),$(CYGRAD_WERROR),$(CYGRAD_SYMBOLS),$(CYGRAD_LEVELS),$(CC)

# A demo alone compiles kernels for this machine only, while pip gets what the demo needs; what is asked for later adds
# the other levels to what is there.
ifeq ($(or $(MAKECMDGOALS),demo),demo)
export CYGRAD_LEVELS ?= native
MAKEFLAGS += --jobs=2
endif

.PHONY: demo test test-all bench bench-quick lint build stubs pages docs docs-test check asan clean FORCE
.DELETE_ON_ERROR:

demo: $(VENV)/has-demo $(VENV)/built
	$(PY) -m cygrad demo

# The tests but for the slow ones. TESTS="tests/ops/test_table.py -k exp" picks some.
test: $(VENV)/has-test $(VENV)/built
	$(PY) -m pytest -q $(TESTS)

# Everything, the long sweeps whole.
test-all: $(VENV)/has-test $(VENV)/has-docs $(VENV)/built
	CYGRAD_PROGRAMS=10000 CYGRAD_STEPS=100000 $(PY) -m pytest -q -m "slow or not slow" $(TESTS)

bench: $(VENV)/has-bench $(VENV)/built
	$(PY) -m benchmarks --output benchmarks/results
	$(PY) -m benchmarks.memory --output benchmarks/results/memory
	$(PY) -m benchmarks.steps --output benchmarks/results

# A look, in two minutes on two cores, under out/; OLD=benchmarks/results/results.json says what moved against it.
bench-quick: $(VENV)/has-bench $(VENV)/built
	$(PY) -m benchmarks --quick --output out/benchmarks $(if $(OLD),--compare $(OLD))

lint: $(VENV)/has-lint
	$(VENV)/bin/ruff check .
	PATH="$(abspath $(VENV)/bin):$$PATH" $(VENV)/bin/cython-lint cygrad examples

build: $(VENV)/has-test $(VENV)/built

# The type stubs and the generated pages of docs/, from the table and the modules.
stubs: $(VENV)/has-test $(VENV)/built
	$(PY) tools/make_stubs.py

pages: $(VENV)/has-run $(VENV)/built
	$(PY) tools/make_docs.py

# The documentation site: out/docs/index.html. A warning is an error, and so is a name that leads nowhere.
docs: pages $(VENV)/has-docs
	rm -rf out/docs
	$(PY) -m sphinx -q -E -n -W --keep-going -d out/doctrees docs out/docs
	@echo "the site: out/docs/index.html"

# The site built, its links followed, its pages opened in a browser where there is one.
docs-test: $(VENV)/has-test $(VENV)/has-docs $(VENV)/built
	$(PY) -m pytest -q -m slow tests/project/test_site.py

# Whether they are what they would be written as, and the stubs true of the compiled modules.
check: $(VENV)/has-test $(VENV)/built
	$(PY) tools/make_stubs.py --check
	$(PY) tools/make_docs.py --check
	$(PY) -m mypy.stubtest cygrad --concise --mypy-config-file tools/stubtest.ini \
		--allowlist tools/stubtest_allow.txt --ignore-unused-allowlist

# Under AddressSanitizer; what is tested of files and of other libraries, not of memory, is left out.
asan: $(VENV)/has-test
	PYTHON=$(abspath $(PY)) sh tests/asan.sh \
		--ignore=tests/project --ignore=tests/test_demo.py

clean:
	rm -rf build dist out *.egg-info $(VENV)/built .pytest_cache .mypy_cache .ruff_cache
	find cygrad -name '*.so' -delete

# An environment is made once, this tree on its path; extras are installed when pyproject.toml has changed, and the
# build follows its sources and the switches of setup.py.
$(PY):
	@sh tools/machine.sh "$(PYTHON)"
	$(PYTHON) -m venv $(VENV)
	$(PY) -c 'import sysconfig; open(sysconfig.get_path("purelib") + "/cygrad.pth", "w").write("$(CURDIR)")'

$(VENV)/has-%: pyproject.toml tools/requirements.py | $(VENV)/has-build
	$(PY) tools/requirements.py $* > $@.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $@.txt
	@touch $@

# Two pips do not work in one environment at a time.
$(VENV)/has-build: pyproject.toml tools/requirements.py | $(PY)
	$(PY) tools/requirements.py build > $@.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $@.txt
	@touch $@

$(VENV)/flags: FORCE | $(PY)
	@echo '$(FLAGS)' | cmp -s - $@ || echo '$(FLAGS)' > $@

$(VENV)/built: $(SOURCES) $(VENV)/flags $(VENV)/has-build
	@sh tools/machine.sh "$(PY)"
	$(PY) setup.py --quiet build_ext --inplace
	@touch $@
