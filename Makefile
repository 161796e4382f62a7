# Two commands for a newcomer: `make demo` and `make test`. Both set up what they need first.
.DEFAULT_GOAL := help
SHELL := /bin/bash
VENV := .venv
READY := $(VENV)/.ready
PYTEST_ARGS ?=
WORKERS ?= 3
BENCH_ARGS ?=
DEMO_ARGS ?=
SHOP_ARGS ?=
SIMULATE_ARGS ?=
CRASH_ARGS ?=
CLUSTER_ARGS ?=
SCALE ?= 0.01
EVENTS ?= 200000
SEEDS ?= 100
MINUTES ?= 30
SOAK_ARGS ?=
RANDOM_SQL_ARGS ?=
NEXMARK_ARGS ?=
TPCH_ARGS ?=
PIPELINES_ARGS ?=
FUZZ_ARGS ?=
ONLY ?=
SPARK ?=
REV ?= HEAD
MUTATE_ARGS ?=

.PHONY: help setup demo shop test check docs simulate crash-test cluster-test servers connector-servers test-long test-servers test-connectors test-pipelines bench bench-against bench-pipelines bench-small bench-durability bench-connectors bench-lakes bench-history bench-study bench-scale soak bench-latency bench-first bench-declare tpch nexmark random-sql spark-sql-tests fuzz mutate clean

help: ## this list
	@grep -hE '^[a-z-]+:.*##' $(MAKEFILE_LIST) | sed -E 's/^([a-z-]+):.*## (.*)/  make \1\t\2/' | expand -t 16

setup: $(READY) ## virtual environment with the package and the `nosync` command

$(READY): pyproject.toml tools/setup.sh
	@bash tools/setup.sh $(VENV)
	@touch $@

demo: $(READY) ## a live auction through a kill -9, about a minute
	@$(VENV)/bin/python -m nosync.demo $(DEMO_ARGS)

shop: $(READY) ## a shop between Kafka and PostgreSQL, killed and resumed in front of you (SHOP_ARGS="--kills 9 --seed 3")
	@$(VENV)/bin/python -m tests.servers kafka postgres
	@$(VENV)/bin/python -m examples.shop_live $(SHOP_ARGS)

test: $(READY) ## the whole test suite (PYTEST_ARGS="-m 'not spark'" for the quick part)
	@$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal $(PYTEST_ARGS)

check: $(READY) ## lint, types, import order, file sizes
	$(VENV)/bin/ruff check .
	$(VENV)/bin/mypy --strict src
	$(VENV)/bin/lint-imports
	$(VENV)/bin/python tools/file_size.py
	$(VENV)/bin/python tools/bridge_only.py
	$(VENV)/bin/python tools/data_only.py
	$(VENV)/bin/python tools/declared_abilities.py
	$(VENV)/bin/python tools/equal_bodies.py

docs: $(READY) ## the documentation as a site in site/, opened by a browser from there
	@$(VENV)/bin/python -c "import mkdocs, mkdocstrings, material" 2>/dev/null || $(VENV)/bin/python -m pip install -q -e ".[docs]"
	@NO_MKDOCS_2_WARNING=1 $(VENV)/bin/python -m mkdocs build -q
	@echo "site/index.html"

simulate: $(READY) ## a million seeded histories of crashes and losses (SIMULATE_ARGS="--histories 10000")
	@$(VENV)/bin/python -m tests.simulation $(SIMULATE_ARGS)

crash-test: $(READY) ## two hosts on one S3 server: 100 real kills, partitions, full disks (CRASH_ARGS="--kills 20 --seed 7")
	@$(VENV)/bin/python -m tests.crash $(CRASH_ARGS)

cluster-test: $(READY) ## a standalone cluster in network namespaces: 50 real faults, as root (CLUSTER_ARGS="--faults 5 --only worker")
	@$(VENV)/bin/python -m tests.cluster $(CLUSTER_ARGS)

servers: $(READY) ## the S3 servers that tests talk to, built once and kept in ~/.cache/nosync
	@$(VENV)/bin/python -m tests.servers

connector-servers: $(READY) ## the servers that connectors talk to: Kafka, PostgreSQL and an S3 server, installed once
	@$(VENV)/bin/python -m tests.servers kafka postgres versitygw

test-long: $(READY) ## more of what the suite has shortly: histories, seeds, ways, kills
	@$(VENV)/bin/python -m pytest -n $(WORKERS) --dist worksteal --long -m long $(PYTEST_ARGS)

test-servers: $(READY) ## tests with servers that take minutes to build: one whose conditional put is not atomic
	@$(VENV)/bin/python -m pytest --servers -m servers $(PYTEST_ARGS)

test-connectors: $(READY) ## connectors with real servers: installs Kafka, PostgreSQL and an S3 server, and runs everything
	@$(VENV)/bin/python -m pytest --connectors tests/connectors tests/sources/test_streams.py tests/sources/test_lakes.py $(PYTEST_ARGS)

test-pipelines: $(READY) ## projects of Declarative Pipelines by spark-pipelines and by nosync, round by round (PIPELINES_ARGS="--only shop --seed 3")
	@$(VENV)/bin/python -m tests.pipelines.compare $(PIPELINES_ARGS)

bench: $(READY) ## figures against Spark Structured Streaming (BENCH_ARGS=--quick for a smoke run)
	@$(VENV)/bin/python -m bench $(BENCH_ARGS)

bench-against: $(READY) ## this tree beside an earlier revision, in turn, over the same inputs (REV=HEAD~20, BENCH_ARGS="--only plain --full")
	@$(VENV)/bin/python -m bench.against $(REV) $(BENCH_ARGS)

bench-small: $(READY) ## what an epoch of 1,000 rows costs, beside Spark's micro-batch (BENCH_ARGS="--only filter --parts")
	@$(VENV)/bin/python -m bench.small $(BENCH_ARGS)

bench-durability: $(READY) ## what durability costs and how soon a flow is back (BENCH_ARGS=--quick for a smoke run)
	@$(VENV)/bin/python -m bench.durability $(BENCH_ARGS)

soak: $(READY) ## a flow at full speed, killed now and then, watched for half an hour: what grows? (MINUTES=5, SOAK_ARGS="--kills 0")
	@$(VENV)/bin/python -m bench.soak --minutes $(MINUTES) $(SOAK_ARGS)

bench-study: $(READY) ## size of the log and time to restore, by dirty ratio and segment age (BENCH_ARGS="--epochs 60" for less)
	@$(VENV)/bin/python -m bench.study $(BENCH_ARGS)

bench-history: $(READY) ## what looking back costs: look-ups, old views, rescaling, compaction, a long past (BENCH_ARGS="--keys 1000000" for less)
	@$(VENV)/bin/python -m bench.history $(BENCH_ARGS)

bench-scale: $(READY) ## what an epoch costs the driver with as many shards as a hundred nodes have (BENCH_ARGS="--shards 10000 --traces 4")
	@$(VENV)/bin/python -m bench.scale $(BENCH_ARGS)

bench-connectors: $(READY) ## Kafka to Kafka beside Structured Streaming, PostgreSQL beside COPY (BENCH_ARGS="--only latency --rounds 1")
	@$(VENV)/bin/python -m tests.servers kafka postgres spark-kafka
	@$(VENV)/bin/python -m bench.connectors $(BENCH_ARGS)

bench-first: $(READY) ## from `python examples/shop.py` to its first line of output, and how much of that is Spark (BENCH_ARGS="--rounds 5")
	@$(VENV)/bin/python -m bench.first $(BENCH_ARGS)

bench-latency: $(READY) ## how soon rows are seen while the load jumps by ten and back, by trigger (BENCH_ARGS="--aim '2 seconds'")
	@$(VENV)/bin/python -m bench.latency $(BENCH_ARGS)

bench-lakes: $(READY) ## Delta and Iceberg tables beside their own writers
	@$(VENV)/bin/python -m bench.lakes

bench-declare: $(READY) ## what declaring TPC-DS costs beside Spark's optimiser (SPARK=../spark, a checkout)
	@$(VENV)/bin/python -m bench.declare --spark "$(SPARK)"

bench-pipelines: $(READY) ## five materialized views, refreshed after a little input, beside spark-pipelines (BENCH_ARGS="--rows 1000000")
	@$(VENV)/bin/python -m bench.pipelines $(BENCH_ARGS)

tpch: $(READY) ## the 22 queries of TPC-H over tables that grow and shrink, against batch (SCALE=0.01, TPCH_ARGS="--only q1")
	@$(VENV)/bin/python -m bench.tpch --scale $(SCALE) $(TPCH_ARGS)

nexmark: $(READY) ## the queries of Nexmark, beside Spark Structured Streaming (EVENTS=2000000, NEXMARK_ARGS="--only q5")
	@$(VENV)/bin/python -m bench.nexmark --events $(EVENTS) $(NEXMARK_ARGS)

random-sql: $(READY) ## flows of random queries over random changes, against batch (SEEDS=1000, RANDOM_SQL_ARGS="--first 7")
	@$(VENV)/bin/python -m tests.random_sql --seeds $(SEEDS) $(RANDOM_SQL_ARGS)

spark-sql-tests: $(READY) ## the SQL tests of a checkout of Spark over changing tables (SPARK=../spark, ONLY=join)
	@$(VENV)/bin/python -m tests.spark_sql --spark "$(SPARK)" --only "$(ONLY)"

fuzz: $(READY) ## hostile bytes for every format that is read back (FUZZ_ARGS="--rounds 20000 --only layer")
	@$(VENV)/bin/python -m tests.security $(FUZZ_ARGS)

mutate: $(READY) ## each condition, look and order of the durability core changed, one at a time (ONLY=journal, MUTATE_ARGS=--afresh)
	@nice -n 10 $(VENV)/bin/python -m tests.mutation --only "$(ONLY)" $(MUTATE_ARGS)

clean: ## remove what the other targets made
	rm -rf $(VENV) .pytest_cache .mypy_cache .ruff_cache .import_linter_cache .hypothesis .mutation site spark-warehouse metastore_db derby.log dist
	find src tests bench tools -name __pycache__ -type d -prune -exec rm -rf {} +
