# Everything a checkout needs; only Python 3.11+, make and git have to be there.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
AGENTS := .agents

.PHONY: setup demo test test-services test-agents check bench ui docs screenshots clean

setup: $(STAMP)

$(STAMP): pyproject.toml constraints.txt
	test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[dev,postgres,s3,dask]'
	touch $@

# The demonstration attests its golden cells with a key of its own, which goes away with its store.
demo: export BENCH_AUDIT_KEY_FILE := $(CURDIR)/data/.bench/audit.key
demo: setup
	test -e $(BENCH_AUDIT_KEY_FILE) || $(BIN)/bench clean-run init-key
	$(BIN)/bench --project data run
	$(BIN)/bench --project data rank --all
	$(BIN)/bench --project data golden run

test: setup
	$(BIN)/python -m pytest -m "not services"

test-services: setup
	$(BIN)/python -m pytest -m services

# The real programs of the built-in agents against a scripted model; they take about 2 GB in .agents.
test-agents: setup $(AGENTS)/.ready
	$(BIN)/python -m pytest -n 0 --timeout 900 bench_pipeline_tests/agents/real_programs.py

$(AGENTS)/.ready:
	npm install --no-audit --no-fund --prefix $(AGENTS)/npm \
		@anthropic-ai/claude-code@2.1.332 @openai/codex@0.171.0 opencode-ai@1.18.33
	$(PYTHON) -m venv $(AGENTS)/mini
	$(AGENTS)/mini/bin/pip install --quiet --disable-pip-version-check mini-swe-agent==2.4.6
	$(PYTHON) -m venv $(AGENTS)/aider
	$(AGENTS)/aider/bin/pip install --quiet --disable-pip-version-check aider-chat==0.86.2
	touch $@

check: setup
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .
	$(BIN)/mypy
	$(BIN)/lint-imports

bench: setup
	$(BIN)/python -m bench_pipeline_tests.benchmarks

ui: setup
	$(BIN)/bench --project data ui

docs: setup
	$(BIN)/python -m bench_pipeline.pipeline.reference docs

# The pictures of the documentation, of the example project in the real UI; needs chromium and chromium-driver.
screenshots: setup
	$(BIN)/python -m bench_pipeline_tests.screenshots docs/images

clean:
	rm -rf $(VENV) $(AGENTS) data/.bench
