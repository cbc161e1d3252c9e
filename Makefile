# Tasks of contributors. Run `make install` first.
BIN := .venv/bin

.PHONY: install test long lint golden parse-table docs pictures notebooks bench clean

install:
	python3 -m venv .venv
	$(BIN)/pip install -e '.[dev]'

test:
	$(BIN)/python -m pytest

long:
	$(BIN)/python -m pytest -m long

lint: .venv/bin/ruff
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .
	$(BIN)/mypy -p streamsparql
	$(BIN)/python -m pytest tests/project/test_import_contract.py

.venv/bin/ruff:
	@echo 'missing ruff, mypy and import-linter; install them with: make install'; exit 1

golden:
	$(BIN)/python tests/project/test_golden.py
	git diff --stat tests/golden

parse-table:
	$(BIN)/python translator/grammar/make_parse_table.py
	git diff --stat translator/parse_table.py

docs: pictures
	$(BIN)/python tests/support/pages.py README.md docs/*.md
	git diff --stat README.md docs

pictures:
	$(BIN)/python docs/pictures.py

notebooks:
	$(BIN)/pip install --quiet -e '.[notebook]'
	$(BIN)/python notebooks/run.py
	git diff --stat notebooks

bench:
	$(BIN)/pip install --quiet '.[bench]'
	$(BIN)/python benchmarks/compile_time.py
	$(BIN)/python benchmarks/embedded.py

clean:
	rm -rf .venv build dist *.egg-info .mypy_cache .ruff_cache .pytest_cache .hypothesis
