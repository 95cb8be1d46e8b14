# `make demo` and `make test` need python3 with headers and venv, a C compiler and make. They install everything else.

PYTHON ?= python3
VENV ?= .venv
TESTS ?=
WITHOUT ?=
QUICK ?=
BESIDE = tests/memory tests/data tests/comm tests/autograd tests/examples tests/nets tests/optim tests/trainers \
	tests/estimators tests/nn tests/project tests/func tests/io tests/array_api tests/testing tests/kernels
PY = $(VENV)/bin/python
SOURCES = $(shell find cygrad include -name '*.pyx' -o -name '*.pxd' -o -name '*.h') setup.py
FLAGS = $(CYGRAD_DEBUG),$(CYGRAD_NO_OPENMP),$(CYGRAD_ASAN),$(CYGRAD_WERROR),$(CYGRAD_SYMBOLS),$(CYGRAD_QUICK),$(CYGRAD_LEVELS),$(CC)

# `make demo` builds kernels for this machine only, while pip installs the packages of the demo. Other targets add the
# other instruction levels later.
ifeq ($(or $(MAKECMDGOALS),demo),demo)
export CYGRAD_LEVELS ?= native
MAKEFLAGS += --jobs=2
endif

# The mark of what is generated and not in git. Tests read it; tests/project/conftest.py also writes it if it is old.
GENERATED = build/generated

.PHONY: demo test test-all array-api hips pythons wheels bench bench-quick lint build stubs pages gallery notebooks docs docs-test check asan clean FORCE
.DELETE_ON_ERROR:

demo: $(VENV)/has-demo $(VENV)/built
	$(PY) -m cygrad demo

# The tests except the slow ones. TESTS="tests/ops/test_table.py -k exp" selects some. Without it, some folders run beside
# the others, on a second core: first those that look at all objects of the process or fork it, before PyTorch is in it.
test: $(VENV)/has-test $(VENV)/built $(if $(TESTS),,$(GENERATED))
ifneq ($(TESTS),)
	$(PY) -m pytest -q $(TESTS)
else
	mkdir -p out
	$(PY) -m pytest -q $(BESIDE) > out/beside.txt 2>&1 & beside=$$!; \
		$(PY) -m pytest -q $(addprefix --ignore=,$(BESIDE)); status=$$?; \
		wait $$beside || status=$$?; cat out/beside.txt; exit $$status
endif

# Builds with the other versions of Python in pyproject.toml, as far as they are found, and runs the tests, or TESTS.
# QUICK=1 builds without optimization, the last version also with the checks of CYGRAD_DEBUG=1.
pythons: $(VENV)/built
	CYGRAD_QUICK=$(QUICK) $(PY) tools/pythons.py $(TESTS)

# The sdist, and a wheel for each version of Python that is found, in dist/: built, repaired, and tried in fresh
# environments with the oldest and the newest NumPy. It takes about seven minutes for each version.
wheels: $(VENV)/has-wheels $(VENV)/built
	$(PY) tools/wheels.py $(TESTS)

# All tests, with full sweeps.
test-all: $(VENV)/has-test $(VENV)/has-docs $(VENV)/built
	CYGRAD_PROGRAMS=10000 CYGRAD_STEPS=100000 $(PY) -m pytest -q -m "slow or not slow" $(TESTS)

# The array API standard, for more random arrays than `make test` takes.
array-api: $(VENV)/has-test $(VENV)/built
	CYGRAD_ARRAY_API=40 $(PY) -m pytest -q tests/array_api

# The tests of HIPS autograd, which pip downloads, against cygrad.func and NumPy's functions of tensors.
hips: $(VENV)/has-test $(VENV)/built
	$(PY) tools/hips.py

bench: $(VENV)/has-bench $(VENV)/built
	$(PY) -m benchmarks --output benchmarks/results
	$(PY) -m benchmarks.sweep --output benchmarks/results
	$(PY) -m benchmarks.memory --output benchmarks/results/memory
	$(PY) -m benchmarks.products --output benchmarks/results
	$(PY) -m benchmarks.steps --output benchmarks/results
	$(PY) -m benchmarks.replay --output benchmarks/results
	$(PY) -m benchmarks.plans --output benchmarks/results
	$(PY) -m benchmarks.budgets --output benchmarks/results
	$(PY) -m benchmarks.fused --output benchmarks/results
	$(PY) -m benchmarks.functions --output benchmarks/results
	$(PY) -m benchmarks.disk --output benchmarks/results
	$(PY) -m benchmarks.ranks --output benchmarks/results
	$(PY) -m benchmarks.idle --output benchmarks/results

# A short benchmark (two minutes on two cores), written to out/. OLD=benchmarks/results/results.json compares with it.
bench-quick: $(VENV)/has-bench $(VENV)/built
	$(PY) -m benchmarks --quick --output out/benchmarks $(if $(OLD),--compare $(OLD))

lint: $(VENV)/has-lint
	$(VENV)/bin/ruff check .
	PATH="$(abspath $(VENV)/bin):$$PATH" $(VENV)/bin/cython-lint cygrad examples
	$(VENV)/bin/check-jsonschema --builtin-schema vendor.github-workflows $(wildcard .github/workflows/*.yml)

build: $(VENV)/has-test $(VENV)/built $(GENERATED)

# Generate the type stubs, also those that git has, and the generated pages of docs/, which git has not, from the
# operator table and the modules; and in pages that git has the lists of the pages beside them, from their titles.
stubs: $(VENV)/has-test $(VENV)/built
	$(PY) tools/make_stubs.py

pages: $(VENV)/has-sklearn $(VENV)/built
	$(PY) tools/make_docs.py

# Runs the programs of examples/ for docs/gallery.md and its pictures, which are in git.
gallery: $(VENV)/has-test $(VENV)/built
	$(PY) tools/make_gallery.py

# The programs of examples/ as notebooks, run, in out/notebooks.
notebooks: $(VENV)/has-test $(VENV)/has-docs $(VENV)/built
	$(PY) tools/make_notebooks.py out/notebooks

# The documentation site: out/docs/index.html. Warnings are errors, and so are unresolved references.
docs: pages $(VENV)/has-docs
	rm -rf out/docs
	$(PY) -m sphinx -q -E -n -W --keep-going -d out/doctrees docs out/docs
	@echo "the site: out/docs/index.html"

# Builds the site, checks its links and opens its pages in a browser, if there is one.
docs-test: $(VENV)/has-test $(VENV)/has-docs $(VENV)/built
	$(PY) -m pytest -q -m slow tests/project/test_site.py $(wildcard tests/project/test_figures*.py) \
		tests/examples/test_notebooks.py

# Checks that the stubs match the compiled modules, that they and the lists of pages in docs/ are up to date, and that
# users' programs have the types that tests/typing states.
check: $(VENV)/has-test $(VENV)/has-lint $(VENV)/built
	$(PY) tools/make_stubs.py --build
	$(PY) tools/make_docs.py --build
	$(PY) tools/make_stubs.py --check
	$(PY) tools/make_docs.py --check
	$(PY) -m mypy.stubtest cygrad --concise --mypy-config-file tools/stubtest.ini \
		--allowlist tools/stubtest_allow.txt --ignore-unused-allowlist
	MYPYPATH=. $(PY) -m mypy --strict --config-file= tests/typing
	$(PY) -m pyright --pythonpath $(PY) tests/typing

# The tests under AddressSanitizer, without those of files and of other libraries, which do not test memory.
asan: $(VENV)/has-test
	PYTHON="$(abspath $(PY))" sh tests/asan.sh \
		--ignore=tests/project --ignore=tests/test_demo.py

clean:
	rm -rf build dist out *.egg-info $(VENV)/built .pytest_cache .mypy_cache .ruff_cache
	rm -rf docs/operators.md docs/api.md docs/api
	find cygrad -name '*.so' -delete
	find cygrad -name '*.pyi' ! -name __init__.pyi ! -path cygrad/graph.pyi -delete

# The environment is created once, with this directory on its path. Extras are installed again when pyproject.toml has
# changed, and cygrad is built again when its sources or the switches of setup.py have changed.
$(PY):
	@sh tools/machine.sh "$(PYTHON)"
	$(PYTHON) -m venv $(VENV)
	$(PY) -c 'import sysconfig; open(sysconfig.get_path("purelib") + "/cygrad.pth", "w").write("$(CURDIR)")'

$(VENV)/has-%: pyproject.toml tools/requirements.py | $(VENV)/has-build
	$(PY) tools/requirements.py $* $(WITHOUT) > $@.txt
	$(PY) -m pip install --quiet --disable-pip-version-check -r $@.txt
	@touch $@

# A separate rule, because two runs of pip in one environment at the same time fail.
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

$(GENERATED): $(VENV)/has-test $(VENV)/built
	$(PY) tools/make_stubs.py --build
	$(PY) tools/make_docs.py --build
	@touch $@
