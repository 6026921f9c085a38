"""The memory estimate beside other people's measurements (`../shared/data/memory/plans.jsonl`, where it is).

A row is compared in its own metric: states alone; allocated or reserved without the CUDA context; device with it.
Rows whose settings the estimate does not know (a chunked loss, sharding) are counted and left out.
"""

import json
import sys
from pathlib import Path
from typing import Any

from rlbench.core.architecture import Architecture
from rlbench.core.memory import CONTEXT_BYTES, CONTEXT_BYTES_HIGH, CONTEXT_BYTES_LOW, GB, Setting, estimate
from rlbench.errors import InputError

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


def main() -> None:
    """Print one line a row and the share within its range."""
    plans = DATA / "memory" / "plans.jsonl"
    if not plans.is_file():
        sys.exit(f"needs the public test data at {plans}.")
    rows = [json.loads(line) for line in plans.read_text().splitlines()]
    known = [row for row in rows if _known(row["settings"])]
    print(f"{'row':6} {'model':22} {'what':26} {'measured':>8} {'estimate':>8} {'off':>7}  range, GB")
    inside = sum(_line(row) for row in known)
    print(f"{inside} of {len(known)} within the range (3% either way); {len(rows) - len(known)} rows not modelled yet")


def _known(asked: dict[str, Any]) -> bool:
    """Whether the estimate has a word for every setting of the row."""
    if asked["kind"] == "inference":
        return True
    targets = asked["method"] == "full" or asked["lora_targets"] == "all-linear"
    return asked["loss_head"] == "full" and asked["shard"] == "none" and targets


def _line(row: dict[str, Any]) -> bool:
    asked, measured = row["settings"], row["measured_bytes"]
    try:
        folder = DATA / "models" / row["config"]
        architecture = Architecture.from_config(json.loads((folder / "config.json").read_text()), row["config"])
    except InputError as error:
        print(f"{row['id']:6} {error}")
        return False
    found = estimate(architecture, _setting(asked))
    outside = asked["metric"] != "device"
    middle = found.peak.bytes - outside * CONTEXT_BYTES
    low, high = found.low_bytes - outside * CONTEXT_BYTES_LOW, found.high_bytes - outside * CONTEXT_BYTES_HIGH
    if asked["metric"] == "states":
        low = middle = high = found.states_bytes
    what = f"{asked.get('method', asked['kind'])}, {asked['metric']}, {_setting(asked).tokens} tokens"
    print(
        f"{row['id']:6} {row['config'].split('/')[-1][:22]:22} {what:26} {measured / GB:8.2f} {middle / GB:8.2f} "
        f"{100 * (middle / measured - 1):+6.1f}%  {low / GB:.2f}–{high / GB:.2f}"
    )
    return bool(0.97 * low <= measured <= 1.03 * high)


def _setting(asked: dict[str, Any]) -> Setting:
    if asked["kind"] == "inference":
        tokens = asked["prompt_len"] + asked["new_tokens"]
        return Setting(regime="bf16", method="inference", seq_len=tokens, concurrency=asked["batch"])
    return Setting(
        regime=asked["regime"],
        method=asked["method"],
        lora_rank=asked.get("lora_rank", 16),
        seq_len=asked["seq_len"],
        micro_batch=asked["micro_batch"],
        checkpointing=asked["checkpointing"],
    )


if __name__ == "__main__":
    main()
