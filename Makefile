# Every target first creates the virtual environment that it needs, and installs the versions in
# constraints.txt. A second run installs nothing.

PYTHON3 ?= python3
VENV ?= .venv
OUT ?= runs/quickstart
export HEEDFUL_DATA ?= ../shared/data

PYTHON := $(VENV)/bin/python
INSTALL := $(PYTHON) -m pip install --quiet --no-compile --constraint constraints.txt --editable
PACKAGING := pyproject.toml constraints.txt
SOAK := $(wildcard tests/soak)
# The oldest and the newest torch that pyproject.toml allows, and further versions of Python.
TORCH_RANGE ?= 2.11 2.15
PYTHON_RANGE ?= python3.12 python3.13

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-gpu device-wheels torch-range python-range check pytest cases format bench bench-speed bench-speed-avx2 bench-serving bench-busy bench-joey bench-recurrent bench-families bench-reward bench-experts bench-parsing bench-parsers bench-sequences bench-tables figures house peers docs screenshots wheel reading-path clean bench-noise bench-new-language bench-hub-models bench-held-out bench-quality bench-later-parts same-hour

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / && ($$1 != "soak" || "$(SOAK)") \
	    { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: $(VENV)/.for-use ## train, score and draw a small translator into OUT=runs/quickstart
	$(VENV)/bin/heedful quickstart --out $(OUT)

# Both run in parallel: the checks use one core and end long before the tests.
test: $(VENV)/.for-work ## run all checks, and all tests except the long tests and those for a GPU
	+@$(MAKE) --no-print-directory --jobs 2 check pytest

check: $(VENV)/.for-work ## check style, spelling, sentences, names, types and import contracts
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) tools/spelling.py
	$(PYTHON) tools/sentences.py long
	$(PYTHON) tools/names.py
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports --no-logo

# There are three workers with one thread each: on two cores, two workers compute while one waits for
# a subprocess. Tests in one file run in one worker, so that they share fixtures. Files run in
# alphabetical order, so that files that train run before tests/unit and not at the end.
# Bytecode is written despite the environment; otherwise, every subprocess of a test would compile
# all modules. `heedful info` compiles the C code once before the tests. A GPU is hidden, because
# tests/gpu tests it.
pytest: $(VENV)/.for-work ## run the tests without the checks
	@$(PYTHON) -m heedful info > /dev/null
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest \
	    --numprocesses 3 --dist loadfile --no-loadscope-reorder \
	    -m "not soak" --ignore tests/soak --ignore tests/gpu

cases: $(VENV)/.for-work ## test the problems that users have reported, with a verdict for each
	@$(PYTHON) -m heedful info > /dev/null
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest \
	    --quiet --numprocesses 2 --dist loadfile tests/cases

# Shapes are not checked, because neither Triton nor torch's compiler can read functions with checks.
test-gpu: $(VENV)/.for-work ## run the tests that need a GPU
	@$(PYTHON) -m heedful info > /dev/null
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(PYTHON) -m pytest --override-ini addopts= \
	    -p no:jaxtyping --numprocesses 3 --dist loadfile tests/gpu

device-wheels: $(VENV)/.for-use ## collect the wheels for a machine with a GPU but no network, in build/device-wheels
	$(PYTHON) -m benchmarks.device_wheels

# The versions run one after the other, because each run uses all cores.
torch-range: $(TORCH_RANGE:%=build/torch-range/%/.venv/.for-work) ## run checks and tests with each torch of TORCH_RANGE
	+@for version in $(TORCH_RANGE); do echo "torch $$version"; \
	    $(MAKE) --no-print-directory test VENV=build/torch-range/$$version/.venv || exit 1; done

python-range: ## run checks and tests with each interpreter of PYTHON_RANGE
	+@for python in $(PYTHON_RANGE); do echo "$$python"; \
	    $(MAKE) --no-print-directory test PYTHON3=$$python \
	        VENV=build/python-range/$$(basename $$python)/.venv || exit 1; done

# Long-running tests; the target exists only if the folder exists. The measurement of a server runs
# alone.
ifneq ($(SOAK),)
.PHONY: soak
soak: $(VENV)/.for-work ## run the long tests
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest -rs \
	    --numprocesses 2 --dist worksteal -p no:jaxtyping \
	    --ignore tests/soak/test_serving.py tests/soak
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest -rs \
	    --numprocesses 2 --dist loadfile --no-loadscope-reorder \
	    -m "soak or hypothesis" --hypothesis-profile soak --ignore tests/soak --ignore tests/gpu
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= $(PYTHON) -m pytest -rs tests/soak/test_serving.py
endif

bench: $(VENV)/.for-use ## time the quickstart and a preparation, then train on Multi30k and score the model (an hour)
	$(PYTHON) -m benchmarks.quickstart
	$(PYTHON) -m benchmarks.prepare
	$(PYTHON) -m benchmarks.multi30k

bench-speed: $(VENV)/.for-use peers ## compare the speed of heedful and other toolkits, write docs/results/speed.md (hours)
	$(PYTHON) -m benchmarks.speed

bench-speed-avx2: $(VENV)/.for-use peers ## measure training and search with AVX2 but without AVX-512, write docs/results/speed-avx2.md (an hour)
	sh benchmarks/held_to_avx2.sh $(PYTHON) -m benchmarks.speed --rounds 1 --out docs/results/speed-avx2 \
		step-small kernels training translate translate-64 translate-one translate-random search lines

bench-serving: $(VENV)/.for-work ## measure the server under load, write docs/results/serving.md (a quarter of an hour)
	$(PYTHON) -m benchmarks.serving

bench-joey: $(VENV)/.for-work peers ## import models trained with Joey NMT, write docs/results/joey.md (30 minutes)
	$(PYTHON) -m benchmarks.joey

bench-recurrent: $(VENV)/.for-use peers ## train recurrent-small twice, compare its speed with Joey NMT's, write docs/results/recurrent.md (90 minutes)
	$(PYTHON) -m benchmarks.recurrent quality
	$(PYTHON) -m benchmarks.recurrent speed

bench-families: $(VENV)/.for-use ## train convolutional-small, time every family and models without some parts, write docs/results/families.md and parts.md (two hours)
	$(PYTHON) -m benchmarks.families quality
	$(PYTHON) -m benchmarks.families speed
	$(PYTHON) -m benchmarks.parts
	$(PYTHON) -m benchmarks.window

bench-reward: $(VENV)/.for-use ## fine-tune by reward and by risk, write docs/results/reward.md (35 minutes)
	$(PYTHON) -m benchmarks.reward

bench-tables: $(VENV)/.for-use ## reproduce the paper's tables and claims, write docs/results/tables.md (ten hours)
	$(PYTHON) -m benchmarks.tables table1
	$(PYTHON) -m benchmarks.tables table2
	$(PYTHON) -m benchmarks.tables table3
	$(PYTHON) -m benchmarks.tables table3-long
	$(PYTHON) -m benchmarks.tables claims

bench-experts: $(VENV)/.for-use ## train moe-small, compare its speed with that of dense models, write docs/results/experts.md (90 minutes)
	$(PYTHON) -m benchmarks.experts quality
	$(PYTHON) -m benchmarks.experts speed

bench-parsers: $(VENV)/.for-work ## tune three parsers in the same way and train each with three seeds, write docs/results/parsers.md (five hours)
	$(PYTHON) -m benchmarks.parsers speed
	$(PYTHON) -m benchmarks.parsers trials
	$(PYTHON) -m benchmarks.parsers seeds
	$(PYTHON) -m benchmarks.parsers grammar

bench-later-parts: $(VENV)/.for-use ## add later parts to the base row of Table 3, write docs/results/later-parts.md (three hours)
	$(PYTHON) -m benchmarks.later_parts

bench-quality: $(VENV)/.for-use ## try settings on Multi30k and train on small corpora, write docs/results/quality.md (nine hours)
	$(PYTHON) -m benchmarks.quality rates
	$(PYTHON) -m benchmarks.quality trials
	$(PYTHON) -m benchmarks.quality corpora

# The toolkits run one after the other, because each training uses all cores.
SAME_HOUR := heedful joey eole transformers
same-hour: $(VENV)/.for-work ## train four toolkits for an hour each on Multi30k, write docs/results/same-hour.md (six hours)
	@for system in $(SAME_HOUR); do \
	    $(PYTHON) -m benchmarks.same_hour environment --system $$system || exit 1; done
	$(PYTHON) -m benchmarks.same_hour speeds
	@for system in $(SAME_HOUR); do for kind in trials train; do \
	    $(PYTHON) -m benchmarks.same_hour $$kind --system $$system || exit 1; done; done

bench-parsing: $(VENV)/.for-use ## estimate grammars and train parsers on two treebanks, write docs/results/parsing.md (five hours)
	$(PYTHON) -m benchmarks.pcfg
	$(PYTHON) -m benchmarks.parsing

bench-busy: $(VENV)/.for-use ## train in Python next to busy processes, write docs/results/busy.md (half an hour)
	$(PYTHON) -m benchmarks.busy_machine

bench-sequences: $(VENV)/.for-work ## train models of dates, kana, phonemes and questions, write docs/results/sequences.md (an hour)
	$(PYTHON) -m benchmarks.sequences

bench-hub-models: $(VENV)/.for-work ## compare the speed of Hugging Face's models in heedful, transformers and CTranslate2, write docs/results/hub-models.md (an hour)
	$(PYTHON) -m benchmarks.hub_models

bench-held-out: $(VENV)/.for-work ## compare known corpora with their own held-out sets, write docs/results/held-out.md (a minute)
	$(PYTHON) -m benchmarks.held_out

bench-new-language: $(VENV)/.for-work ## add German to a small English-French model, score both languages, write docs/results/new-language.md (ten minutes)
	$(PYTHON) -m benchmarks.new_language

bench-noise: $(VENV)/.for-work ## train with and without data.augment, translate with both values of data.reading, write docs/results/noise.md (an hour)
	$(PYTHON) -m benchmarks.noise

figures: $(VENV)/.for-use ## write the figures of README and docs from docs/results/*.json
	$(PYTHON) -m benchmarks.figures

# Each toolkit has its own environment, because their requirements conflict with each other and with
# heedful's.
PEERS := $(patsubst %/requirements.txt,%/.venv/.installed,$(wildcard benchmarks/peers/*/requirements.txt))

peers: $(PEERS) ## install the toolkits that the benchmarks compare with heedful

benchmarks/peers/%/.venv/.installed: benchmarks/peers/%/requirements.txt
	$(PYTHON3) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	@touch $@

docs: $(VENV)/.for-docs ## write the documentation site to build/site
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs build/site

screenshots: $(VENV)/.for-work ## draw the documentation's pictures of the web page and the explorer, from the run in OUT=runs/quickstart
	$(PYTHON) docs/screenshots.py $(OUT)/run

wheel: $(VENV)/.for-use ## build the wheel with its compiled functions in dist
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .

house: $(VENV)/.for-use ## count lines by package, circular imports and the files of a step, and compare them with their budgets
	$(PYTHON) tools/house.py

reading-path: $(VENV)/.for-use ## draw the picture of the files from recipe to translation
	$(PYTHON) docs/draw_reading_path.py

format: $(VENV)/.for-work ## let ruff fix and format the code
	$(PYTHON) -m ruff check --fix-only .
	$(PYTHON) -m ruff format .

clean: ## remove caches and build outputs; runs and the environment stay
	rm -rf build dist docs/generated src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(PYTHON):
	$(PYTHON3) -m venv $(VENV)

# All versions are from constraints.txt except those of torch and of setuptools, because some torch
# versions need an older setuptools. The variable replaces constraints in pip's own configuration.
build/torch-range/%/.venv/.for-work: $(PACKAGING)
	$(PYTHON3) -m venv $(@D)
	grep -vE '^(torch|setuptools)==' constraints.txt > $(@D)/constraints.txt
	PIP_CONSTRAINT=$(@D)/constraints.txt $(@D)/bin/python -m pip install --quiet --no-compile \
	    'torch==$*.*' --editable '.[plot,dev,serve]'
	@touch $(@D)/.for-use $@

$(VENV)/.for-use: $(PACKAGING) | $(PYTHON)
	$(INSTALL) '.[plot]'
	@touch $@

$(VENV)/.for-work: $(PACKAGING) | $(PYTHON)
	$(INSTALL) '.[plot,dev,serve]'
	@touch $(VENV)/.for-use $@

$(VENV)/.for-docs: $(PACKAGING) | $(PYTHON)
	$(INSTALL) '.[docs,serve]'
	@touch $(VENV)/.for-use $@
