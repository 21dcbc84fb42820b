# Every target starts from nothing: it makes the virtual environment it needs and installs the
# versions of constraints.txt. A second run installs nothing.

PYTHON3 ?= python3
VENV ?= .venv
OUT ?= runs/quickstart
export HEEDFUL_DATA ?= ../shared/data

PYTHON := $(VENV)/bin/python
INSTALL := $(PYTHON) -m pip install --quiet --no-compile --constraint constraints.txt --editable
PACKAGING := pyproject.toml constraints.txt
SOAK := $(wildcard tests/soak)
# The oldest and the newest torch that pyproject.toml allows, and further Pythons.
TORCH_RANGE ?= 2.11 2.15
PYTHON_RANGE ?= python3.12 python3.13

.DEFAULT_GOAL := help
.PHONY: help quickstart test test-gpu device-wheels torch-range python-range check pytest cases format bench bench-speed bench-speed-avx2 bench-serving bench-busy bench-joey bench-recurrent bench-families bench-reward bench-experts bench-parsing bench-parsers bench-sequences bench-tables figures house peers docs screenshots wheel reading-path clean bench-noise bench-new-language bench-hub-models bench-held-out bench-quality same-hour

help: ## list the targets
	@awk -F ':.*## ' '/^[a-z0-9-]+:.*## / && ($$1 != "soak" || "$(SOAK)") \
	    { printf "  make %-16s %s\n", $$1, $$2 }' $(MAKEFILE_LIST)

quickstart: $(VENV)/.for-use ## train, score and draw a small translator into OUT=runs/quickstart
	$(VENV)/bin/heedful quickstart --out $(OUT)

# Beside each other: the checks run on one core and are done long before the tests.
test: $(VENV)/.for-work ## run every check and every test
	+@$(MAKE) --no-print-directory --jobs 2 check pytest

check: $(VENV)/.for-work ## style, spelling, sentences, names, types, import contracts
	$(PYTHON) -m ruff format --check .
	$(PYTHON) -m ruff check .
	$(PYTHON) tools/spelling.py
	$(PYTHON) tools/sentences.py long
	$(PYTHON) tools/names.py
	$(PYTHON) -m mypy
	$(VENV)/bin/lint-imports --no-logo

# Three workers of one thread each: on two cores one waits for a process while two compute. The tests
# of one file stay together, so that they share fixtures.
# In alphabetical order files that train come before tests/unit, so that none is left for the end.
# Bytecode is kept, whatever the environment says: else every process of a test compiles all.
# What a checkout compiles for itself is compiled before, once. A GPU is hidden: what computes there
# has tests of its own.
pytest: $(VENV)/.for-work ## run the tests alone
	@$(PYTHON) -m heedful info > /dev/null
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest \
	    --numprocesses 3 --dist loadfile --no-loadscope-reorder \
	    -m "not soak" --ignore tests/soak --ignore tests/gpu

cases: $(VENV)/.for-work ## try the troubles that users have reported, with a verdict for each
	@$(PYTHON) -m heedful info > /dev/null
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest \
	    --quiet --numprocesses 2 --dist loadfile tests/cases

# Without the checks of shapes: neither Triton nor torch's compiler reads functions with checks.
test-gpu: $(VENV)/.for-work ## run the tests of what computes on a GPU, where there is one
	@$(PYTHON) -m heedful info > /dev/null
	PYTHONDONTWRITEBYTECODE= OMP_NUM_THREADS=1 $(PYTHON) -m pytest --override-ini addopts= \
	    --numprocesses 3 --dist loadfile tests/gpu

device-wheels: $(VENV)/.for-use ## gather what a machine with a GPU and no network lacks, in build/device-wheels
	$(PYTHON) -m benchmarks.device_wheels

# One after the other: a run takes all cores.
torch-range: $(TORCH_RANGE:%=build/torch-range/%/.venv/.for-work) ## run checks and tests with each torch of TORCH_RANGE
	+@for version in $(TORCH_RANGE); do echo "torch $$version"; \
	    $(MAKE) --no-print-directory test VENV=build/torch-range/$$version/.venv || exit 1; done

python-range: ## run checks and tests with each interpreter of PYTHON_RANGE
	+@for python in $(PYTHON_RANGE); do echo "$$python"; \
	    $(MAKE) --no-print-directory test PYTHON3=$$python \
	        VENV=build/python-range/$$(basename $$python)/.venv || exit 1; done

# Long-running tests; the target is there once the folder is. What measures a server runs alone.
ifneq ($(SOAK),)
.PHONY: soak
soak: $(VENV)/.for-work ## run the long tests
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest \
	    --numprocesses 2 --dist loadfile \
	    --ignore tests/soak/test_serving.py tests/soak
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= OMP_NUM_THREADS=1 $(PYTHON) -m pytest \
	    --numprocesses 2 --dist loadfile --no-loadscope-reorder \
	    -m "soak or hypothesis" --hypothesis-profile soak --ignore tests/soak --ignore tests/gpu
	PYTHONDONTWRITEBYTECODE= CUDA_VISIBLE_DEVICES= $(PYTHON) -m pytest tests/soak/test_serving.py
endif

bench: $(VENV)/.for-use ## time the quickstart and a preparation, then train multi30k and score it (an hour)
	$(PYTHON) -m benchmarks.quickstart
	$(PYTHON) -m benchmarks.prepare
	$(PYTHON) -m benchmarks.multi30k

bench-speed: $(VENV)/.for-use peers ## measure heedful beside the peers, write docs/results/speed.md (hours)
	$(PYTHON) -m benchmarks.speed

bench-speed-avx2: $(VENV)/.for-use peers ## measure training and search as if the processor had AVX2 alone, write docs/results/speed-avx2.md (an hour)
	sh benchmarks/held_to_avx2.sh $(PYTHON) -m benchmarks.speed --rounds 1 --out docs/results/speed-avx2 \
		step-small kernels training translate translate-64 translate-one translate-random search lines

bench-serving: $(VENV)/.for-work ## measure the server under load, write docs/results/serving.md (a quarter of an hour)
	$(PYTHON) -m benchmarks.serving

bench-joey: $(VENV)/.for-work peers ## import models that Joey NMT has trained, write docs/results/joey.md (30 minutes)
	$(PYTHON) -m benchmarks.joey

bench-recurrent: $(VENV)/.for-use peers ## train recurrent-small twice, measure beside Joey NMT, write docs/results/recurrent.md (90 minutes)
	$(PYTHON) -m benchmarks.recurrent quality
	$(PYTHON) -m benchmarks.recurrent speed

bench-families: $(VENV)/.for-use ## train convolutional-small, time every family, leave parts out, write docs/results/families.md and parts.md (two hours)
	$(PYTHON) -m benchmarks.families quality
	$(PYTHON) -m benchmarks.families speed
	$(PYTHON) -m benchmarks.parts
	$(PYTHON) -m benchmarks.window

bench-reward: $(VENV)/.for-use ## fine-tune by reward and by risk, write docs/results/reward.md (35 minutes)
	$(PYTHON) -m benchmarks.reward

bench-tables: $(VENV)/.for-use ## make the paper's tables and claims again, write docs/results/tables.md (six hours)
	$(PYTHON) -m benchmarks.tables table1
	$(PYTHON) -m benchmarks.tables table2
	$(PYTHON) -m benchmarks.tables french
	$(PYTHON) -m benchmarks.tables table3
	$(PYTHON) -m benchmarks.tables claims

bench-experts: $(VENV)/.for-use ## train moe-small, time it beside dense models, write docs/results/experts.md (90 minutes)
	$(PYTHON) -m benchmarks.experts quality
	$(PYTHON) -m benchmarks.experts speed

bench-parsers: $(VENV)/.for-work ## tune three parsers alike and train three seeds of each, write docs/results/parsers.md (five hours)
	$(PYTHON) -m benchmarks.parsers speed
	$(PYTHON) -m benchmarks.parsers trials
	$(PYTHON) -m benchmarks.parsers seeds
	$(PYTHON) -m benchmarks.parsers grammar

bench-quality: $(VENV)/.for-use ## try settings on Multi30k and train on small corpora, write docs/results/quality.md (nine hours)
	$(PYTHON) -m benchmarks.quality rates
	$(PYTHON) -m benchmarks.quality trials
	$(PYTHON) -m benchmarks.quality corpora

# One toolkit after the other: a training takes all cores.
SAME_HOUR := heedful joey eole transformers
same-hour: $(VENV)/.for-work ## train four toolkits for an hour each on Multi30k, write docs/results/same-hour.md (six hours)
	@for system in $(SAME_HOUR); do for kind in environment trials train; do \
	    $(PYTHON) -m benchmarks.same_hour $$kind --system $$system || exit 1; done; done

bench-parsing: $(VENV)/.for-use ## count grammars and train parsers on two treebanks, write docs/results/parsing.md (five hours)
	$(PYTHON) -m benchmarks.pcfg
	$(PYTHON) -m benchmarks.parsing

bench-busy: $(VENV)/.for-use ## train from Python beside busy processes, write docs/results/busy.md (half an hour)
	$(PYTHON) -m benchmarks.busy_machine

bench-sequences: $(VENV)/.for-work ## learn dates, kana, phonemes and questions, write docs/results/sequences.md (an hour)
	$(PYTHON) -m benchmarks.sequences

bench-hub-models: $(VENV)/.for-work ## translate by models of Hugging Face's classes beside transformers and CTranslate2, write docs/results/hub-models.md (an hour)
	$(PYTHON) -m benchmarks.hub_models

bench-held-out: $(VENV)/.for-work ## compare known corpora with their own held-out sets, write docs/results/held-out.md (a minute)
	$(PYTHON) -m benchmarks.held_out

bench-new-language: $(VENV)/.for-work ## add German to a small English-French model, score both, write docs/results/new-language.md (ten minutes)
	$(PYTHON) -m benchmarks.new_language

bench-noise: $(VENV)/.for-work ## train with and without data.augment, translate with both readings, write docs/results/noise.md (an hour)
	$(PYTHON) -m benchmarks.noise

figures: $(VENV)/.for-use ## write the figures of README and docs from docs/results/*.json
	$(PYTHON) -m benchmarks.figures

# Each peer has an environment of its own: their versions do not go together, nor with ours.
PEERS := $(patsubst %/requirements.txt,%/.venv/.installed,$(wildcard benchmarks/peers/*/requirements.txt))

peers: $(PEERS) ## install the toolkits that `heedful bench` measures beside heedful

benchmarks/peers/%/.venv/.installed: benchmarks/peers/%/requirements.txt
	$(PYTHON3) -m venv $(@D)
	$(@D)/bin/python -m pip install --quiet --requirement $<
	@touch $@

docs: $(VENV)/.for-docs ## write the documentation site to build/site
	$(PYTHON) -m sphinx -W --keep-going -q -b html docs build/site

screenshots: $(VENV)/.for-work ## draw the documentation's pictures of the web page and the explorer, from the run in OUT=runs/quickstart
	$(PYTHON) docs/screenshots.py $(OUT)/run

wheel: $(VENV)/.for-use ## build the wheel, with its compiled functions, into dist
	$(PYTHON) -m pip wheel --quiet --no-deps --wheel-dir dist .

house: $(VENV)/.for-use ## count lines by package, circles of imports, the files that a step runs, budgets
	$(PYTHON) tools/house.py

reading-path: $(VENV)/.for-use ## draw the picture of the files of a run
	$(PYTHON) docs/draw_reading_path.py

format: $(VENV)/.for-work ## let ruff write what it can
	$(PYTHON) -m ruff check --fix-only .
	$(PYTHON) -m ruff format .

clean: ## remove caches and build outputs; runs and the environment stay
	rm -rf build dist docs/generated src/*.egg-info .pytest_cache .mypy_cache .ruff_cache .hypothesis .import_linter_cache
	find src tests benchmarks -name __pycache__ -prune -exec rm -rf {} +

$(PYTHON):
	$(PYTHON3) -m venv $(VENV)

# All versions are those of constraints.txt but torch's, and setuptools', of which some torches want
# an older one. The variable replaces constraints of pip's own configuration.
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
