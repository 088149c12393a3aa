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

.PHONY: api demo dist docs serve test test-browser test-wheel test-nightly test-cluster test-data test-gpu lint format bench bench-kernels prospects real-data clean

demo: $(USE)
	$(BIN)/discreet demo

serve: $(SERVE)
	$(BIN)/discreet serve --data service-data --demo $(OPTIONS)

test: lint
	$(BIN)/pytest -n 2 -q

test-nightly: $(DEVELOP)
	$(BIN)/pytest -n 2 -m nightly -q

test-cluster: $(CLUSTER)
	$(BIN)/pytest -m cluster -q tests/experiments

test-browser: $(DEVELOP)
	tests/service/browser/install.sh
	$(BIN)/pytest -m browser -q tests/service/browser

test-gpu: $(CUDA)
	$(BIN)/pytest -m gpu -q tests/simulation

test-data: $(DEVELOP) $(DATA) $(DOCS)
	$(BIN)/pytest -m data -q tests/test_tutorial.py tests/test_notebooks.py tests/benchmarks

lint: $(DEVELOP)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy
	$(BIN)/lint-imports

api: $(SERVE)
	$(BIN)/python docs/make_api.py
	$(BIN)/python docs/_tools/reference.py

docs: $(DOCS)
	NO_MKDOCS_2_WARNING=1 $(BIN)/python -m mkdocs --quiet build --strict --clean
	$(BIN)/python docs/_tools/check_site.py site
	$(BIN)/pytest -m docs -q tests/test_notebooks.py tests/test_site.py

dist: $(DEVELOP)
	rm -rf dist
	$(BIN)/python -m build --quiet

test-wheel: dist
	tests/wheel/run.sh

format: $(DEVELOP)
	$(BIN)/ruff format .
	$(BIN)/ruff check --fix .

bench: $(BENCH)
	$(BIN)/python -m benchmarks.speed $(OPTIONS)

bench-kernels: $(USE)
	$(BIN)/python benchmarks/kernels.py

prospects: $(USE)
	$(BIN)/python -m benchmarks.prospects $(OPTIONS)

real-data: $(DATA)
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

clean:
	rm -rf .venv demo build dist site service-data service-data.witness
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
