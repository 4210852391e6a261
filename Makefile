# The commands of this project. `make help` lists them.
SHELL := /bin/bash
PYTHON ?= python3
LAB_PREFIX ?= lab
ENGINE ?= auto
VENV := .venv
PY := $(VENV)/bin/python
SPREAD := -n auto --no-loadscope-reorder # conftest.py says how
export LAB_PREFIX ENGINE CLOUD

.DEFAULT_GOAL := help
.PHONY: help setup lab-packages browser pulumi kubernetes demo demo-kubernetes test test-fast test-slow slices test-faults test-systems bench bench-gate docs pictures check check-code check-playbooks check-docs actionlint schema lock clean-lab

help: ## list the commands
	@grep -E '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/:[^#]*## /\t/' | sort | expand -t 18
	@echo
	@echo "LAB_PREFIX=name    the lab to use (two names run side by side); default lab"
	@echo "ENGINE=built    the pulumi CLI that the lab builds, also where there is one on PATH"
	@echo "FULL=1    the long benchmarks (a night); default: those that end within an hour on two cores"

setup: $(VENV)/ready ## Python environment from pinned, hashed requirements

$(VENV)/ready: requirements/dev.txt pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit(sys.version_info < (3, 11) and "ironburst needs Python 3.11 or newer; give one with make PYTHON=...")'
	@$(PYTHON) -c 'import ensurepip' 2>/dev/null || { apt-get update -qq && apt-get install -y -qq --no-install-recommends python3-venv >/dev/null; }
	$(PYTHON) -m venv $(VENV)
	$(PY) -m pip install --quiet --disable-pip-version-check --require-hashes -r requirements/dev.txt
	$(PY) -m pip install --quiet --disable-pip-version-check --no-deps --no-build-isolation --editable .
	@touch $@

lab-packages: ## Debian packages that the lab needs on this machine (root)
	@sh lab/packages.sh

pulumi: setup ## the pulumi CLI: the one on PATH, else built from its Go modules, once (6 minutes of processor; no root)
	@$(PY) -m lab.pulumi.binary >/dev/null

kubernetes: setup ## build the lab's Kubernetes control plane from Go modules, once (10 minutes of processor or more, an hour on a busy machine; no root)
	@$(PY) -m lab.kubernetes build

browser: lab-packages
	@sh lab/packages.sh chromium chromium-driver || echo "no Chromium: its tests are skipped"

demo: setup lab-packages pulumi ## the main job on the lab, end to end (root, 3 GB of disk); KEEP=1: the lab stays, to play with; CLOUD=google, CLOUD=azure, CLOUD=all: in Google Cloud, in Azure, in all three clouds
	$(PY) -m lab.demo $(if $(KEEP),--keep)

demo-kubernetes: setup lab-packages pulumi kubernetes ## the same with pods on a real Kubernetes control plane (root, 4 minutes; before the first one it builds Kubernetes, as `make kubernetes` does)
	$(PY) -m lab.demo.kubernetes

test: setup lab-packages pulumi browser ## all tests but the slow ones; those with hosts need root (what CI runs)
	$(PY) -m pytest $(SPREAD) -m "not slow"

test-fast: setup pulumi ## the tests that need no lab
	$(PY) -m pytest $(SPREAD) -m "not lab and not slow"

# SLICE=3/24: that one of docs/reference/slow-tests.md. RECORD=: nothing is written there. MINUTES=20: at most so long, and as
# long again for what failed. The signal lets pytest end its labs
SLOW_TESTS = $(if $(MINUTES),timeout --signal=INT --kill-after=120 $(MINUTES)m) $(PY) -m pytest -m slow $(if $(SLICE),--slice $(SLICE)) $(RECORD)
test-slow: RECORD ?= --record
test-slow: setup lab-packages pulumi ## the slow tests: whole demos, every role, 50 converges under load (hours, root); SLICE=3/24: a part of them; what fails is tried once more
	-@$(if $(MINUTES),timeout 10m) sh -c '$(PY) -m lab.kubernetes build && $(PY) -m lab.kubernetes kubeadm' # without them those tests are skipped, and say so
	-@sh lab/packages.sh qemu-system-x86 qemu-utils ovmf systemd-boot-efi binutils dnsmasq-base
	@code=0; $(SLOW_TESTS) || code=$$?; \
	if [ $$code = 1 ]; then echo "once more, what failed:"; code=0; $(SLOW_TESTS) --last-failed || code=$$?; fi; \
	if [ $$code = 124 ] || [ $$code = 137 ]; then echo "ended after $(MINUTES) minutes: too long, or it hangs" >&2; fi; \
	exit $$code

slices: setup ## divide the slow tests again, by the times that `make test-slow` recorded: tests/slow.csv, docs/reference/slow-tests.md
	$(PY) -m tests.slices divide

test-faults: setup pulumi ## every fault at each place of a rented node's way, a death at each step, a day of 2,000 jobs with all of them; with root the same on a live site, too (25 minutes; DAY_SEED=n: another day)
	@[ "$$(id -u)" != 0 ] || sh lab/packages.sh libfaketime
	$(PY) -m pytest $(SPREAD) -n 4 tests/faults # three of them have a lab each, and wait more than they work

test-systems: setup lab-packages ## a GPU node's roles, its image, Slurm on each system of the lab: install, again, upgrade (an hour, root; LAB_SYSTEMS="debian12 rhel9": those)
	$(PY) -m pytest -n0 -rs tests/lab/test_systems.py tests/lab/test_systems_node.py tests/lab/test_slurm_packages.py

bench: setup ## all benchmarks; writes benchmarks/results.md with pictures (an hour; FULL=1: a night)
	$(PY) -m benchmarks.all $(if $(FULL),--full)

bench-gate: setup ## whether a tick, a look, a BMC's reading or --help costs more than it was made to: counts, half a minute
	$(PY) -m benchmarks.gate

docs: check-docs ## the documentation as a site, in build/docs (open index.html; no server, no network)

check: setup ## what a machine sees without running it: lint, format, types, dead code, layers, playbooks, links (a minute)
	@$(MAKE) --no-print-directory --jobs=2 --output-sync=target check-code check-playbooks check-docs

# What runs on nodes has the system's own Python, of which EL 9's is the oldest that is offered (Ubuntu 22.04: 3.10, Debian 12: 3.11)
NODE_PYTHON := 3.9
NODE_PROGRAMS := playbooks/files playbooks/roles playbooks/plugins/modules playbooks/plugins/module_utils ironburst/health ironburst/convergence/host_facts.py ironburst/convergence/power_cap_host.py ironburst/doctor/host_probe.py

check-code: setup
	$(VENV)/bin/ruff check --quiet .
	$(VENV)/bin/ruff format --quiet --check .
	$(VENV)/bin/mypy --no-error-summary
	$(VENV)/bin/vulture
	$(VENV)/bin/vermin -q --no-tips --violations --target=$(NODE_PYTHON)- $(NODE_PROGRAMS)
	$(PY) -m pytest -q tests/test_layers.py

check-playbooks: setup
	PATH="$(CURDIR)/$(VENV)/bin:$$PATH" $(VENV)/bin/ansible-lint --offline -q

check-docs: setup # without --quiet, which would keep warnings from --strict
	NO_MKDOCS_2_WARNING=1 $(VENV)/bin/mkdocs build --strict

# The version is in the folder's name, where tests/test_ci.py looks for it
actionlint: ## build the linter of GitHub's workflows, for tests/test_ci.py (half a minute; needs Go)
	GOBIN=$(CURDIR)/.lab/cache/actionlint-1.7.8 go install github.com/rhysd/actionlint/cmd/actionlint@v1.7.8

schema: setup ## write stacks/schema.json and docs/reference from the config models and the command line
	$(PY) -m ironburst.config.schema > stacks/schema.json
	PYTHONPATH=. $(PY) docs/generate.py

pictures: setup ## draw the README's pictures again (needs Chromium)
	$(PY) -m tests.pictures

lock: setup ## write requirements/*.txt from pyproject.toml and *.in
	$(PY) -m pip install --quiet uv
	for set in runtime dev; do $(PY) -m uv pip compile -q --python-version 3.11 --generate-hashes --no-emit-index-url --no-header \
	  pyproject.toml --all-extras requirements/$$set.in -o requirements/$$set.txt; done

clean-lab: ## end the lab LAB_PREFIX and remove what a crash left of it
	@if [ -x $(PY) ]; then $(PY) -m lab down $(LAB_PREFIX); else echo "no lab was ever set up here"; fi
