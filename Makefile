# Each target works alone on a fresh clone: what it needs, it makes. Only Python 3.11 or newer, pip, make and git are presumed.

PYTHON ?= python3
CONSTRAINTS ?= .ci/constraints.txt
WORKERS ?= 2
ONLY ?=
JOBS ?= 2
BASE ?= HEAD~1
DROPPED ?=
DRY ?=
TUTORIALS ?= full

RUN := .venv/bin
READY := .venv/.ready
# Workers share the cores: each of one thread, or they would wait for each other.
PYTEST := $(if $(filter-out 0,$(WORKERS)),OMP_NUM_THREADS=1 NUMBA_NUM_THREADS=1) $(RUN)/python -m pytest \
	$(if $(filter-out 0,$(WORKERS)),-n $(WORKERS) --dist worksteal)

export PYTHON CONSTRAINTS
# Whatever environment the caller stands in, only .venv counts here.
unexport PYTHONPATH PYTHONHOME VIRTUAL_ENV

.DEFAULT_GOAL := help
.PHONY: help demo test test-all golden mutants check benchmark docs clean

help:  ## show this list
	@echo "make TARGET, where TARGET is one of (the first one run makes .venv: 1 to 5 minutes, once)"
	@sed -n 's/^\([a-z-]*\):.*## \(.*\)/\1|\2/p' Makefile | awk -F'|' '{ printf "  %-10s %s\n", $$1, $$2 }'
	@echo "Variables: PYTHON=python3.12, CONSTRAINTS=.ci/oldest.txt (lowest versions, after make clean),"
	@echo "  WORKERS=0 (tests in one process), ONLY=name, JOBS=2 and DRY=1 (mutants),"
	@echo "  BASE=commit, ONLY=text and DROPPED=cases (golden), TUTORIALS=short (docs)"

demo: $(READY)  ## compare models, tune, see attention, forecast, report, on data that ships (30 s)
	@echo "demo: fitting, comparing, tuning models on data that ships with the library (about 30 s)"
	@$(RUN)/deepforecast demo

test: $(READY)  ## the quick tests and every docstring example (5 min 40 s, 620 CPU s)
	@echo "test: quick tests and the examples in docstrings (5 to 6 minutes)"
	@$(PYTEST) -m "not slow and not data and not gpu"

test-all: $(READY)  ## every test: slow ones, faults, benchmark data, GPU where there is one (25 min)
	@echo "test-all: every test (about 25 minutes); what is skipped is listed with its reason at the end"
	@$(PYTEST)

golden: $(READY)  ## forecasts of every model, bit for bit those of the commit BASE (30 s a side)
	@echo "golden: 444 cases by the working tree and by $(BASE), on two cores (30 s a side; 3 min more where kernels changed)"
	@$(RUN)/python -m tests.golden.comparison --base "$(BASE)" $(if $(ONLY),--only "$(ONLY)") \
		$(if $(DROPPED),--dropped "$(DROPPED)")

mutants: $(READY)  ## mutation tests: change the code, check that the tests fail (10 min)
	@echo "mutants: each mutant of tests/mutants is applied to a copy, where its tests have to fail"
	@$(RUN)/python tests/mutants/run.py --jobs $(JOBS) $(if $(DRY),--dry) $(if $(ONLY),--only $(ONLY))

check: $(READY)  ## ruff, mypy and the order of imports, all reported in one go (20 s)
	@failed=""; \
	echo "check: ruff (style, forbidden calls)"; $(RUN)/ruff check . || failed="$$failed ruff"; \
	echo "check: mypy --strict (types; about 20 s the first time)"; $(RUN)/mypy || failed="$$failed mypy"; \
	echo "check: lint-imports (which package may import which)"; $(RUN)/lint-imports --no-logo || failed="$$failed lint-imports"; \
	if [ -n "$$failed" ]; then echo "check: failed:$$failed" >&2; exit 1; fi; \
	echo "check: all well"

benchmark: $(READY)  ## run every benchmarks/bench_*.py (minutes each)
	@for file in benchmarks/bench_*.py; do \
		[ -e "$$file" ] || { echo "benchmark: there is no benchmarks/bench_*.py" >&2; exit 1; }; \
		echo "benchmark: $$file"; $(RUN)/python "$$file" || exit 1; \
	done

docs: $(READY)  ## build the documentation site, build/site/index.html (5 min, then what changed)
	@echo "docs: tutorials are run ($(TUTORIALS)), pages written and every link followed; it ends up in build/site"
	@PYTHONPATH=docs $(RUN)/python -m builder --tutorials $(TUTORIALS) --jobs $(JOBS)

clean:  ## remove .venv and everything else that was made, not written
	@echo "clean: removing .venv, caches and build output"
	@rm -rf .venv build dist demo-output .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis *.egg-info
	@find . -name __pycache__ -type d -prune -exec rm -rf {} +

# An environment that is broken, or was made for another folder, is made anew whatever its age.
ifneq ($(shell $(RUN)/python -c "" 2>/dev/null && cat $(READY) 2>/dev/null),$(CURDIR))
.PHONY: $(READY)
endif
$(READY): pyproject.toml $(CONSTRAINTS)
	@sh .ci/setup "$(CURDIR)"
