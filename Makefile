# Every target sets up what it needs: a virtual environment in .venv, pinned by constraints.txt.
PYTHON ?= python3
BIN := .venv/bin
USE := .venv/.use
DEVELOP := .venv/.develop
BENCH := .venv/.bench
DATA := .venv/.data
CLUSTER := .venv/.cluster
CUDA := .venv/.cuda
SERVE := .venv/.serve
DOCS := .venv/.docs
INSTALL := PIP_CONSTRAINT=constraints.txt $(BIN)/python -m pip install --quiet \
  --disable-pip-version-check --editable

# Tests start many processes, and all read the same modules.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: api constraints demo dist docs help serve test test-browser test-wheel test-nightly test-cluster test-data test-gpu lint format bench bench-kernels prospects real-data clean

demo: $(USE)  ## every variant in a short form of the paper's experiment, with a report
	$(BIN)/discreet demo

help:  ## this list
	@awk -F ':.*  ## ' '/^[a-z-]+:.*  ## / { printf "%-14s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

serve: $(SERVE)  ## the service, with a bandit and visitors, at port 8080
	$(BIN)/discreet serve --data service-data --demo $(OPTIONS)

test: lint  ## everything of `make lint`, then all tests on two processes
	$(BIN)/pytest -n 2 -q

test-nightly: $(DEVELOP)  ## crash, fuzz and audit tests at full size: about an hour
	$(BIN)/pytest -n 2 -m nightly -q

test-cluster: $(CLUSTER)  ## tests on a local Dask and a local Ray
	$(BIN)/pytest -m cluster -q tests/experiments

test-browser: $(DEVELOP)  ## the dashboard in a real browser
	tests/service/browser/install.sh
	$(BIN)/pytest -m browser -q tests/service/browser

test-gpu: $(CUDA)  ## the simulator on an NVIDIA GPU
	$(BIN)/pytest -m gpu -q tests/simulation

test-data: $(DEVELOP) $(DATA) $(DOCS)  ## the tutorial and other tests on real data sets
	$(BIN)/pytest -m data -q tests/test_tutorial.py tests/test_notebooks.py tests/benchmarks

lint: $(DEVELOP)  ## ruff, mypy in strict mode, import-linter
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

api: $(SERVE)  ## writes docs/api.md and the references from the program
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/_tools/reference.py

docs: $(DOCS)  ## builds the site into site/ and checks it
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict --clean
	$(BIN)/python docs/_tools/check_site.py site
	$(BIN)/pytest -m docs -q tests/test_notebooks.py tests/test_site.py

dist: $(DEVELOP)  ## builds the sdist and the wheel into dist/
	rm -rf dist
	$(BIN)/python -m build --quiet

test-wheel: dist  ## the built package in an empty environment
	tests/wheel/run.sh

format: $(DEVELOP)  ## formats the code and applies ruff's safe fixes
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BENCH)  ## speed, beside other libraries
	$(BIN)/python -m benchmarks.speed $(OPTIONS)

bench-kernels: $(USE)  ## speed of each compiled kernel
	$(BIN)/python benchmarks/kernels.py

prospects: $(USE)  ## how many rows learning takes (docs/prospects.md)
	$(BIN)/python -m benchmarks.prospects $(OPTIONS)

real-data: $(DATA)  ## the learner on two real data sets
	$(BIN)/python -m benchmarks.real_data $(OPTIONS)

$(USE): pyproject.toml constraints.txt
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11))' \
	  || { echo "discreet needs Python 3.11 or later; set PYTHON=/path/to/python3.11" >&2; exit 1; }
	$(PYTHON) -m venv .venv
	$(INSTALL) .
	@touch $(USE)

$(SERVE): $(USE)
	$(INSTALL) '.[serve]'
	@touch $(SERVE)

$(DEVELOP): $(USE)
	$(INSTALL) '.[dev]'
	@touch $(DEVELOP)

$(DOCS): $(DEVELOP)
	$(INSTALL) '.[docs]'
	@touch $(DOCS)

$(BENCH): $(USE)
	$(INSTALL) '.[bench]'
	@touch $(BENCH)

$(DATA): $(USE)
	$(INSTALL) '.[data]'
	@touch $(DATA)

$(CLUSTER): $(DEVELOP)
	$(INSTALL) '.[dask,ray]'
	@touch $(CLUSTER)

$(CUDA): $(DEVELOP)
	$(INSTALL) '.[cuda]'
	@touch $(CUDA)

constraints:  ## writes constraints.txt anew, with the newest versions of everything
	rm -rf build/constraints
	$(PYTHON) -m venv build/constraints
	build/constraints/bin/python -m pip install --quiet --disable-pip-version-check \
	  hatchling '.[bench,cuda,dask,data,dev,docs,parquet,postgresql,ray,serve]'
	grep '^#' constraints.txt > build/constraints.txt
	build/constraints/bin/python -m pip freeze --exclude discreet | grep -v ' @ ' >> build/constraints.txt
	mv build/constraints.txt constraints.txt
	rm -rf build/constraints

clean:  ## removes .venv and what was built
	rm -rf .venv demo build dist site service-data service-data.witness
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
