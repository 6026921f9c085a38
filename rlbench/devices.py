"""Devices, from the package's tables: which GPUs there are, and what an hour of each costs, from whom, when.

`catalogue` gives these names on. `cpu` is a device with a price and no entry among the GPUs.
"""

import csv
from collections.abc import Iterable
from datetime import UTC, datetime
from functools import cache
from pathlib import Path
from typing import Literal

from rlbench.core.cost import Price
from rlbench.core.gpu import Gpu
from rlbench.core.value import Value
from rlbench.errors import UnknownName

DATA = Path(__file__).resolve().parent / "data"
MAKER = "nvidia-"
BRANDS = ("geforce-", "tesla-")
"""Words that nvidia-smi sets before a name and nobody types."""


class Quote(Value):
    """A price, and of what kind it is.

    `on-demand` is one device for as long as one likes. Not so: `spot` (can be taken away), `community` (somebody's
    own machine), `serverless` (by request), `node` (several at once only), `offers` (an average over a market).
    """

    price: Price
    kind: Literal["on-demand", "spot", "community", "serverless", "node", "offers"]
    note: str = ""


@cache
def gpus() -> dict[str, Gpu]:
    """Every GPU by name, in the order of the table (from the smallest memory to the largest)."""
    found = [_gpu(row) for row in _rows("gpus.csv")]
    return {gpu.name: gpu for gpu in sorted(found, key=lambda gpu: (gpu.visible_gib, gpu.name))}


@cache
def prices() -> tuple[Quote, ...]:
    """Every dated price, GPUs and `cpu`."""
    return tuple(_quote(row) for row in _rows("gpu_prices.csv"))


def find_gpu(name: str) -> Gpu:
    """The GPU of that name, alias or nvidia-smi device name, in any case.

    Raises:
        UnknownName: there is none; the near names are offered.
    """
    gpu = _by_any_name().get(_spelled(name))
    if gpu is None:
        raise UnknownName("GPU", name, gpus(), "(`rlbench gpus` lists them)")
    return gpu


def find_price(device: str, override: float | None = None) -> Price | None:
    """What an hour of `device` costs: as the user states (`override`, in USD), or else as the tables say.

    The tables' answer is the cheapest current on-demand price: of the on-demand quotes, each provider's newest
    (the cheaper one when two have the same date); of these, those read in the newest year that occurs, so that a
    price of years ago never wins; of these, the cheapest. `None` when there is no quote.

    Args:
        device: a GPU's name, alias or nvidia-smi name, or `cpu`.
        override: USD per device-hour.
    """
    gpu = _by_any_name().get(_spelled(device))
    name = gpu.name if gpu else device
    if override is not None:
        today = datetime.now(UTC).date().isoformat()
        return Price(
            device=name,
            usd_per_hour=override,
            provider="stated by the user",
            date=today,
            source="--price",
        )
    return cheapest_current(quote for quote in prices() if quote.price.device == name.lower())


def cheapest_current(quotes: Iterable[Quote]) -> Price | None:
    """The price that `find_price` takes of one device's quotes."""
    newest: dict[str, Price] = {}
    for quote in quotes:
        price = quote.price
        if quote.kind != "on-demand":
            continue
        before = newest.get(price.provider)
        if before is None or (price.date, -price.usd_per_hour) > (before.date, -before.usd_per_hour):
            newest[price.provider] = price
    if not newest:
        return None
    year = max(map(_year, newest.values()))
    return min((price for price in newest.values() if _year(price) == year), key=lambda price: price.usd_per_hour)


def _year(price: Price) -> str:
    # Where only the span of years is known (`2025/2026`), its end.
    return price.date.rpartition("/")[2][:4]


@cache
def _by_any_name() -> dict[str, Gpu]:
    return {_spelled(name): gpu for gpu in gpus().values() for name in (gpu.name, *gpu.aliases)}


def _spelled(name: str) -> str:
    """`NVIDIA GeForce RTX 4090` as `rtx-4090`."""
    kebab = "-".join(name.lower().replace("_", " ").split()).removeprefix(MAKER)
    for brand in BRANDS:
        kebab = kebab.removeprefix(brand)
    return kebab


def _rows(table: str) -> list[dict[str, str]]:
    with (DATA / table).open(encoding="utf-8", newline="") as lines:
        return list(csv.DictReader(lines))


def _gpu(row: dict[str, str]) -> Gpu:
    lists = {column: tuple(filter(None, row.pop(column).split("|"))) for column in ("aliases", "unverified")}
    return Gpu.model_validate(lists | {column: cell for column, cell in row.items() if cell})


def _quote(row: dict[str, str]) -> Quote:
    kind, note = row.pop("kind"), row.pop("note")
    return Quote.model_validate({"price": row, "kind": kind, "note": note})
