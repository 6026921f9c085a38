.PHONY: setup demo test check bench docs clean

setup: .venv/.ready  ## everything the other commands need, in .venv

.venv/.ready: pyproject.toml constraints.txt scripts/setup
	scripts/setup

demo: setup  ## measure a real model on this CPU, rank it, write report.html
	.venv/bin/rlbench run cpu-demo
	.venv/bin/rlbench compare --out report.html

test: setup  ## all tests that this machine can run
	.venv/bin/python -m pytest -q

check: setup  ## style, types, import rules, and that README.md tells the truth about --help
	.venv/bin/ruff check .
	.venv/bin/ruff format --check .
	.venv/bin/mypy
	.venv/bin/lint-imports
	.venv/bin/cog --check README.md

bench: setup  ## speeds, as ratios within one run
	.venv/bin/python scripts/bench_memory.py
	.venv/bin/python scripts/bench.py

docs: setup  ## renew the generated parts of README.md
	.venv/bin/cog -r README.md

clean:  ## remove what the commands above made, results and .venv included
	rm -rf .venv build dist report.html results/runs .mypy_cache .ruff_cache .pytest_cache .hypothesis .import_linter_cache
