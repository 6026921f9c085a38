"""What rlbench costs its user: start-up as a ratio to its imports, the demo's time and memory, the tests' time.

    python scripts/bench.py [--start-up | --demo | --tests]

Prints one table on stderr and, last, one JSON document on stdout.
"""

import argparse
import json
import statistics
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import psutil
from rich.console import Console
from rich.table import Table

ROOT = Path(__file__).resolve().parents[1]
RLBENCH = [sys.executable, "-m", "rlbench"]
IMPORTS = [sys.executable, "-c", "import typer, rich"]
ROUNDS = 11


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    for part in ("start-up", "demo", "tests"):
        parser.add_argument(f"--{part}", action="store_true", help="only this part")
    chosen = vars(parser.parse_args())
    everything = not any(chosen.values())
    rows: list[dict[str, object]] = []
    if everything or chosen["start_up"]:
        rows += start_up()
    if everything or chosen["demo"]:
        rows += demo()
    if everything or chosen["tests"]:
        rows.append(timed("make test", ["make", "test"], limit=600))
    show(rows)


def start_up() -> list[dict[str, object]]:
    """Time of the light commands over the time of importing typer and rich, interleaved, median of the ratios."""
    rows = []
    for arguments in (["--help"], ["estimate-memory", "qwen3-4b"]):
        ratios = [seconds([*RLBENCH, *arguments]) / seconds(IMPORTS) for _ in range(ROUNDS)]
        rows.append(
            {
                "what": f"rlbench {' '.join(arguments)} / imports of typer and rich",
                "value": round(statistics.median(ratios), 2),
                "low": round(min(ratios), 2),
                "high": round(max(ratios), 2),
                "limit": 4.0,
                "unit": "×",
            }
        )
    return rows


def demo() -> list[dict[str, object]]:
    """`make demo`'s two commands in a fresh folder: seconds, and the peak resident memory of all processes."""
    with tempfile.TemporaryDirectory() as folder:
        run = timed("rlbench run cpu-demo", [*RLBENCH, "run", "cpu-demo"], limit=720, folder=folder)
        page = timed("rlbench compare", [*RLBENCH, "compare", "--out", "report.html"], limit=60, folder=folder)
    memory = {
        "what": "rlbench run cpu-demo, peak resident",
        "value": run.pop("peak_gib"),
        "limit": 6.0,
        "unit": "GB",
    }
    page.pop("peak_gib")
    return [run, page, memory]


def timed(what: str, command: list[str], limit: float, folder: str | Path = ROOT) -> dict[str, object]:
    start = time.perf_counter()
    process = subprocess.Popen(command, cwd=folder, stdout=sys.stderr)
    peak = [0]
    watcher = threading.Thread(target=watch_memory, args=(process, peak))
    watcher.start()
    code = process.wait()
    watcher.join()
    elapsed = time.perf_counter() - start
    row: dict[str, object] = {"what": what, "value": round(elapsed, 1), "limit": limit, "unit": "s"}
    if code != 0:
        row["failed"] = f"exit code {code}"
    return row | {"peak_gib": round(peak[0] / 1e9, 2)}


def watch_memory(process: "subprocess.Popen[bytes]", peak: list[int]) -> None:
    """Keep the largest sum of resident memory over the process and its descendants."""
    while process.poll() is None:
        total = 0
        try:
            root = psutil.Process(process.pid)
            for one in [root, *root.children(recursive=True)]:
                total += one.memory_info().rss
        except psutil.NoSuchProcess:
            pass
        peak[0] = max(peak[0], total)
        time.sleep(0.2)


def seconds(command: list[str]) -> float:
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - start


def show(rows: list[dict[str, object]]) -> None:
    table = Table(title="what rlbench costs")
    for column in ("what", "value", "range", "limit", ""):
        table.add_column(column)
    for row in rows:
        spread = f"{row['low']}–{row['high']}" if "low" in row else ""
        verdict = row.get("failed") or ("within" if float(str(row["value"])) <= float(str(row["limit"])) else "OVER")
        table.add_row(str(row["what"]), f"{row['value']} {row['unit']}", spread, str(row["limit"]), str(verdict))
    Console(stderr=True).print(table)
    sys.stdout.write(json.dumps({"bench": rows}) + "\n")


if __name__ == "__main__":
    main()
