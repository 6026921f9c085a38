"""`rlbench gpus`: which GPUs are known, what each can do and costs, and what this machine has."""

from typing import TYPE_CHECKING, Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command

if TYPE_CHECKING:
    from rlbench.core.cost import Price
    from rlbench.core.gpu import Gpu
    from rlbench.devices import Quote

LEGEND = "? no source confirms the figure. Prices: `rlbench gpus NAME` shows every one, with its source."


@command(app, "gpus", "the GPUs: specifications, dated prices")
def gpus(
    session: Session,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="One GPU: a name, an alias, or nvidia-smi's name.")
    ] = None,
) -> None:
    """List the known GPUs with their memory, speed and dated prices, and what this machine has.

    A price is the cheapest current on-demand one; spot and community offers are shown with NAME, and never chosen.
    """
    from rlbench import catalogue

    chosen = [catalogue.find_gpu(name)] if name else list(catalogue.gpus().values())
    if session.json:
        session.emit({"gpus": [_document(gpu) for gpu in chosen], "this_machine": _this_machine()})
        return
    if name:
        _show_one(session, chosen[0])
    else:
        _show_table(session, chosen)
    session.out.print(f"\nthis machine: {_machine_sentence()}", highlight=False, markup=False, soft_wrap=True)


def _document(gpu: "Gpu") -> dict[str, Any]:
    from rlbench.catalogue import find_price

    price = find_price(gpu.name)
    return gpu.to_json() | {
        "visible_bytes": gpu.visible_bytes,
        "price": price.to_json() if price else None,
        "prices": [
            quote.price.to_json() | {"kind": quote.kind, "note": quote.note or None} for quote in _quotes(gpu.name)
        ],
    }


def _this_machine() -> dict[str, Any]:
    from rlbench.catalogue import find_price
    from rlbench.measure import host
    from rlbench.plans.base import this_device

    device = this_device()
    price = find_price(device)
    return {
        "device": device,
        "gpus": [{"device": found, "name": _catalogue_name(found)} for found in host.gpu_names()],
        "processor": host.processor_name(),
        "cpu_cores": host.usable_cpus(),
        "memory_gib": round(host.total_memory_bytes() / 2**30, 1),
        "price": price.to_json() if price else None,
    }


def _catalogue_name(device: str) -> str | None:
    from rlbench.catalogue import find_gpu
    from rlbench.errors import UnknownName

    try:
        return find_gpu(device).name
    except UnknownName:
        return None


def _quotes(device: str) -> list["Quote"]:
    """The quotes for a device, the newest first, undated ones last."""
    from rlbench.catalogue import prices

    found = [quote for quote in prices() if quote.price.device == device]
    return sorted(found, key=lambda quote: quote.price.date, reverse=True)


def _show_table(session: Session, chosen: list["Gpu"]) -> None:
    from rich.table import Table

    from rlbench.catalogue import find_price

    table = Table(box=None, pad_edge=False)
    table.add_column("GPU", no_wrap=True)
    for heading in ("visible GiB", "GB/s", "bf16 TFLOP/s", "$/hour"):
        table.add_column(heading, justify="right")
    table.add_column("from, read")
    for gpu in chosen:
        price = find_price(gpu.name)
        table.add_row(
            gpu.name,
            _figure(gpu, "visible_gib", ".2f"),
            _figure(gpu, "memory_bandwidth_gb_per_second", "g"),
            _figure(gpu, "bf16_tflops", "g"),
            f"{price.usd_per_hour:.2f}" if price else "–",
            f"{price.provider}, {price.date}" if price else "none on demand",
        )
    session.out.print(table, highlight=False)
    session.out.print(f"\n{LEGEND}", highlight=False, markup=False, soft_wrap=True)


def _figure(gpu: "Gpu", field: str, form: str) -> str:
    value = getattr(gpu, field)
    text = "–" if value is None else format(value, form)
    return f"{text}?" if field in gpu.unverified else text


def _show_one(session: Session, gpu: "Gpu") -> None:
    from rlbench.catalogue import find_price

    def line(text: str) -> None:
        session.out.print(text, highlight=False, markup=False, soft_wrap=True)

    line(gpu.name + (f" (also {', '.join(gpu.aliases)})" if gpu.aliases else ""))
    for words, field in (
        ("memory as sold, GB", "marketing_gb"),
        ("memory visible, GiB", "visible_gib"),
        ("memory bandwidth, GB/s", "memory_bandwidth_gb_per_second"),
        ("bf16, dense TFLOP/s", "bf16_tflops"),
        ("fp16, dense TFLOP/s", "fp16_tflops"),
        ("fp32, TFLOP/s", "fp32_tflops"),
        ("compute capability", "compute_capability"),
    ):
        value = getattr(gpu, field)
        shown = "unknown" if value is None and field != "bf16_tflops" else "none" if value is None else f"{value}"
        line(f"  {words:<24}{shown}{'   (unverified)' if field in gpu.unverified else ''}")
    line(f"  source: {gpu.source}")
    if gpu.note:
        line(f"  note: {gpu.note}")
    quotes, price = _quotes(gpu.name), find_price(gpu.name)
    line("\nprices, USD an hour (> is the one that dollars are counted at):" if quotes else "\nno price is known")
    for quote in quotes:
        line(_price_line(quote, price))


def _price_line(quote: "Quote", chosen: "Price | None") -> str:
    price = quote.price
    tier = price.tier if quote.kind in price.tier else f"{quote.kind}, {price.tier}"
    head = f"{'>' if price == chosen else ' '} {price.usd_per_hour:7.3f}  {price.date or 'undated':<10}"
    note = f" ({quote.note})" if quote.note else ""
    return f"{head}  {price.provider}, {tier}; {price.source}{note}"


def _machine_sentence() -> str:
    machine = _this_machine()
    price = machine["price"]
    cost = (
        f"counted at ${price['usd_per_hour']:.3f} an hour ({price['provider']}, {price['tier']}, {price['date']}: "
        f"{price['source']})"
        if price
        else "without a price; state one with --price"
    )
    if machine["device"] == "cpu":
        has = f"no GPU in use; {machine['processor']}, {machine['cpu_cores']} cores, {machine['memory_gib']} GiB"
    else:
        has = ", ".join(
            f"{gpu['device']} ({gpu['name'] or 'not in the catalogue: pass --price'})" for gpu in machine["gpus"]
        )
    return f"{has}; {cost}"
