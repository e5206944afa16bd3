# Three commands matter: `make demo`, `make up` and `make test`. Each sets up what it needs the first time.
PYTHON ?= python3
VENV := .venv
BIN := $(VENV)/bin
READY := $(VENV)/.ready
# Where this is set, nothing is byte-compiled and every import of Airflow costs seconds more.
unexport PYTHONDONTWRITEBYTECODE

.PHONY: demo up down compose test lint format lock clean help

help:
	@echo "make demo    set up and run the main job on real input, as a DAG, on embedded defaults"
	@echo "make up      set up and start the platform: Airflow, its workers, PostgreSQL, Redis; no containers"
	@echo "make down    end the platform (data stay)"
	@echo "make compose write docker-compose.yml again from stack.yaml"
	@echo "make test    set up and run all tests"
	@echo "make lint    ruff, mypy, import contracts"
	@echo "make format  let ruff lay out the code"
	@echo "make lock    resolve pyproject.toml into requirements.lock again"
	@echo "make clean   remove the environment (data stay)"

$(READY): requirements.lock requirements-setup.lock pyproject.toml
	@$(PYTHON) -c 'import sys; sys.exit("DataFlow needs Python 3.11 or newer; this is " + sys.version.split()[0] + ". Set PYTHON=...") if sys.version_info < (3, 11) else None'
	@echo "Setting up $(VENV): about 240 packages, once."
	@$(PYTHON) -m venv $(VENV)
	@$(BIN)/python -m pip install --quiet --require-hashes -r requirements-setup.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --require-hashes --compile-bytecode -r requirements.lock
	@$(BIN)/uv pip install --quiet --python $(BIN)/python --no-deps --no-build-isolation -e .
	@$(BIN)/python -m dataflow_ops.kernels.warm
	@touch $(READY)

demo: $(READY)
	@$(BIN)/dataflow demo || [ $$? -eq 4 ]  # 4: done, and something waits for a person

up: $(READY)
	@$(BIN)/dataflow stack up

down: $(READY)
	@$(BIN)/dataflow stack down

compose: $(READY)
	@$(BIN)/dataflow stack compose > docker-compose.yml.new && mv docker-compose.yml.new docker-compose.yml

test: $(READY)
	@$(BIN)/python -m pytest -q -n auto --dist loadgroup --no-loadscope-reorder

lint: $(READY)
	@$(BIN)/ruff check .
	@$(BIN)/ruff format --check .
	@$(BIN)/mypy
	@$(BIN)/lint-imports

format: $(READY)
	@$(BIN)/ruff check --fix .
	@$(BIN)/ruff format .

lock: $(READY)
	@$(BIN)/uv pip compile pyproject.toml --extra airflow --extra dev --universal --python-version 3.11 --generate-hashes --no-emit-index-url --no-emit-find-links --no-annotate --no-header --quiet --upgrade -o requirements.lock

clean:
	rm -rf $(VENV)
