# Each target sets itself up from Python 3.11+ and make; uv is used where it is installed.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.ready
PYTEST_ARGS ?=

.PHONY: bench-isolated bench-memory help demo test simulate mutate api-check kill-points upgrade lint typecheck docs bench bench-peers torture split-leaders fairness check clean
.DEFAULT_GOAL := help

help: ## this list
	@awk -F':.*## ' '/^[a-z-]+:.*## /{printf "  make %-12s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

$(STAMP): pyproject.toml
	@if command -v uv >/dev/null 2>&1; then \
	  uv venv --quiet --allow-existing --python "$(PYTHON)" $(VENV) && \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet -e '.[embedded,speed,web]' --group dev; \
	else \
	  $(PYTHON) -m venv $(VENV) && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check --upgrade 'pip>=25.1' && \
	  $(BIN)/python -m pip install --quiet --disable-pip-version-check -e '.[embedded,speed,web]' --group dev; \
	fi
	@touch $(STAMP)

.PHONY: locked
locked: ## .venv with what requirements/ci.txt pins, each file checked by its hash; CI does this first
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r requirements/build.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  --no-build-isolation -r requirements/ci.txt
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps \
	  --no-build-isolation -e .
	@touch $(STAMP)

LOCK = uv pip compile --quiet --generate-hashes --universal --python-version 3.11 --no-header $(if $(UPGRADE),--upgrade)
.PHONY: lock
lock: ## pin what CI, a release and the tools for it use (needs uv); UPGRADE=1 for the newest
	@$(LOCK) requirements/build.in -o requirements/build.txt
	@$(LOCK) pyproject.toml requirements/build.in --extra embedded --extra speed --extra web \
	  --group dev -o requirements/ci.txt
	@$(LOCK) pyproject.toml --all-extras -o requirements/runtime.txt
	@$(LOCK) requirements/release.in -o requirements/release.txt

RELEASE := .release-tools
$(RELEASE)/.ready: requirements/release.txt
	@$(PYTHON) -m venv $(RELEASE)
	@$(RELEASE)/bin/python -m pip install --quiet --disable-pip-version-check --require-hashes \
	  -r requirements/release.txt
	@touch $@

.PHONY: audit
audit: $(RELEASE)/.ready ## known weaknesses of what is pinned (pip-audit; asks PyPI's advisories)
	@$(RELEASE)/bin/pip-audit --strict --disable-pip --require-hashes -r requirements/runtime.txt
	@$(RELEASE)/bin/pip-audit --strict --disable-pip --require-hashes -r requirements/ci.txt

.PHONY: sbom
sbom: $(RELEASE)/.ready ## dist/horolog.cdx.json: what a release consists of (CycloneDX)
	@mkdir -p dist
	@$(RELEASE)/bin/cyclonedx-py requirements requirements/runtime.txt --pyproject pyproject.toml \
	  --mc-type library --output-reproducible --of JSON -o dist/horolog.cdx.json

demo: $(STAMP) ## watch jobs being registered, claimed, published, attempted and finished
	@$(BIN)/horolog demo

test: $(STAMP) ## the whole suite, on real Postgres and NATS
ifneq ($(strip $(PYTEST_ARGS)),)
	@$(BIN)/python -m pytest -q $(PYTEST_ARGS)
else
	@$(BIN)/python -m pytest -q -n 2 --dist worksteal --ignore tests/faults
	@$(BIN)/python -m pytest -q tests/faults # they load both cores by themselves
endif

lint: $(STAMP) ## ruff: style and mistakes
	@$(BIN)/ruff check . && $(BIN)/ruff format --check .

typecheck: $(STAMP) ## basedpyright, strict
	@$(BIN)/basedpyright

docs: $(STAMP) ## the documents as a site, in build/site
	@NO_MKDOCS_2_WARNING=1 $(BIN)/mkdocs build --quiet --strict

SEEDS ?= 200
simulate: $(STAMP) ## the whole system in simulated time; SEEDS=200, SEED=n, HOURS=100000
	@$(BIN)/python -m tests.simulation.run --seeds $(SEEDS) $(if $(HOURS),--hours $(HOURS)) \
	  $(if $(SEED),--seed $(SEED))

.PHONY: fuzz
EXAMPLES ?= 5000
fuzz: $(STAMP) ## whatever may come in at any entrance; EXAMPLES=n for each kind
	@HOROLOG_FUZZ_EXAMPLES=$(EXAMPLES) $(BIN)/python -m pytest -q --timeout 0 tests/fuzz

mutate: $(STAMP) ## break the code in known ways, and see that the simulation sees each of them
	@$(BIN)/python -m tests.simulation.mutate

kill-points: $(STAMP) ## kill -9 at every point of the path, and the table of what became of it
	@$(BIN)/python tests/faults/kill_points/run.py

bench: $(STAMP) ## what it costs, beside the limit of the same server in the same run
	@$(BIN)/python bench/schedules.py
	@$(BIN)/python bench/run.py

bench-isolated: $(STAMP) ## one isolated job, from its commit to its handler's start
	@$(BIN)/python bench/isolated.py

bench-memory: $(STAMP) ## a worker's memory after a million runs (some ten minutes)
	@$(BIN)/python bench/worker_memory.py

bench-peers: $(STAMP) ## the same work for Horolog and its peers in turn (they are installed in .bench-peers)
	@$(BIN)/python bench/peers/run.py --json docs/figures/peers.json

.PHONY: bench-scale
bench-scale: $(STAMP) ## what stays flat with more jobs, events, workers, partitions (some ten minutes)
	@$(BIN)/python bench/scale.py --json docs/figures/scale.json

.venv/.chart: $(STAMP)
	@if command -v uv >/dev/null 2>&1; then \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet --group chart; \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check --group chart; fi
	@touch $@

.PHONY: bench-chart
bench-chart: .venv/.chart ## the charts in docs/figures, from the JSON that the benches wrote there
	@$(BIN)/python bench/chart.py

SEEDS ?= 50
split-leaders: $(STAMP) ## leaders stopped past their lease, killed, cut off: SEEDS=50 timings
	@$(BIN)/python -m pytest -q tests/faults/whole/test_leaders.py tests/faults/whole/test_networks.py --fault-seeds $(SEEDS)

SECONDS ?= 600
torture: $(STAMP) ## real processes and servers under random faults; SECONDS=600, SEED=n
	@$(BIN)/python -m tests.faults.system.torture --seconds $(SECONDS) $(if $(SEED),--seed $(SEED))

.PHONY: overload
overload: $(STAMP) ## ten times the sustainable rate, and the way back; SECONDS=300
	@$(BIN)/python -m tests.faults.overload.overload --seconds $(if $(filter file,$(origin SECONDS)),300,$(SECONDS))

upgrade: $(STAMP) ## the release before and this one, side by side over a migration under load
	@$(BIN)/python -m tests.faults.upgrade.upgrading --seconds $(SECONDS)

fairness: $(STAMP) ## a flood of 100,000 beside single jobs of another tenant (some ten minutes)
	@$(BIN)/python bench/fairness.py

API_EXAMPLES ?= 20
api-check: $(STAMP) ## the HTTP API against its own OpenAPI document (schemathesis, some minutes)
	@$(BIN)/python -m tests.interface.web.api_check $(API_EXAMPLES)

.venv/.browser: $(STAMP)
	@if command -v uv >/dev/null 2>&1; then \
	  VIRTUAL_ENV=$(VENV) uv pip install --quiet --group browser; \
	else $(BIN)/python -m pip install --quiet --disable-pip-version-check --group browser; fi
	@touch $@

browser-test: .venv/.browser ## the page in a real browser (chromium, such as Debian's)
	@$(BIN)/python -m pytest -q --browser -rs tests/interface/web/test_in_a_browser.py

screenshots: .venv/.browser ## docs/screenshots, anew from a real browser
	@$(BIN)/python -m tests.interface.web.screenshots

.PHONY: walk
walk: $(STAMP) ## the walk of a newcomer, from the demo to three machines (some minutes)
	@$(BIN)/python -m tests.acceptance.walk

.PHONY: man
man: $(STAMP) ## manual pages of every command, in man/
	@$(BIN)/python -m horolog.interface.cli.manual man

.PHONY: package
package: man ## sdist and wheel, in dist/
	@if command -v uv >/dev/null 2>&1; then uv build --quiet; \
	else $(BIN)/python -m pip install --quiet build && $(BIN)/python -m build; fi

.PHONY: package-check
package-check: $(STAMP) ## the wheel as somebody gets it: pipx run, each Python, what is in it
	@$(BIN)/python -m tests.structure.package_check

check: lint typecheck test ## all three

clean: ## remove what make built; the data in .horolog stays
	rm -rf $(VENV) build dist man src/*.egg-info .pytest_cache .ruff_cache
