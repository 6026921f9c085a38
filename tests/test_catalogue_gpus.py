"""The tables of GPUs and prices: names people and nvidia-smi use, and a price that can be traced."""

import csv
import re
from pathlib import Path

import pytest

from rlbench.catalogue import find_gpu, find_price, gpus, prices
from rlbench.core.cost import Price
from rlbench.devices import Quote, cheapest_current
from rlbench.errors import UnknownName


@pytest.mark.parametrize(
    ("said", "name"),
    [
        ("a40", "a40"),
        ("A40", "a40"),
        ("NVIDIA A40", "a40"),
        ("a100", "a100-80gb"),
        ("NVIDIA A100-SXM4-80GB", "a100-80gb"),
        ("NVIDIA A100 80GB PCIe", "a100-80gb-pcie"),
        ("NVIDIA A100-SXM4-40GB", "a100-40gb"),
        ("h100", "h100-sxm"),
        ("NVIDIA H100 80GB HBM3", "h100-sxm"),
        ("NVIDIA H100 PCIe", "h100-pcie"),
        ("NVIDIA H200", "h200"),
        ("4090", "rtx-4090"),
        ("RTX 4090", "rtx-4090"),
        ("NVIDIA GeForce RTX 4090", "rtx-4090"),
        ("NVIDIA RTX A6000", "rtx-a6000"),
        ("NVIDIA RTX PRO 6000 Blackwell Server Edition", "rtx-pro-6000"),
        ("Tesla T4", "t4"),
        ("rtx_3090", "rtx-3090"),
    ],
)
def test_a_gpu_answers_to_its_names(said: str, name: str) -> None:
    assert find_gpu(said).name == name


def test_a_near_miss_is_answered_with_the_near_name() -> None:
    with pytest.raises(UnknownName, match="did you mean l40s"):
        find_gpu("l40x")


def test_no_name_means_two_gpus() -> None:
    names = [name for gpu in gpus().values() for name in (gpu.name, *gpu.aliases)]
    assert len(names) == len(set(names))
    for name in names:
        assert re.fullmatch(r"[a-z0-9]+(-[a-z0-9]+)*", name)


def test_less_memory_is_visible_than_is_sold_and_every_gpu_has_a_source() -> None:
    for gpu in gpus().values():
        assert gpu.marketing_gb is not None
        # Sold in GB that are really GiB on GeForce cards, so 24 GB never shows more than 24 GiB.
        assert 0.9 * gpu.marketing_gb < gpu.visible_gib < gpu.marketing_gb, gpu.name
        assert gpu.source, gpu.name
        assert gpu.fp16_tflops is not None, gpu.name
        assert gpu.bf16_tflops in (None, gpu.fp16_tflops), gpu.name


def test_figures_of_the_a40_are_those_that_were_read() -> None:
    a40 = find_gpu("a40")
    assert (a40.visible_gib, a40.memory_bandwidth_gb_per_second, a40.bf16_tflops) == (44.34, 696, 149.7)
    assert not {"visible_gib", "memory_bandwidth_gb_per_second", "bf16_tflops"} & set(a40.unverified)
    assert find_gpu("t4").bf16_tflops is None


def test_every_price_has_a_device_and_a_source_and_on_demand_ones_a_date() -> None:
    for quote in prices():
        assert quote.price.device == "cpu" or quote.price.device in gpus()
        assert quote.price.source
        assert quote.price.usd_per_hour > 0
        if quote.kind == "on-demand":
            assert re.fullmatch(r"20\d\d(-\d\d-\d\d|/20\d\d)", quote.price.date), quote


def test_prices_and_memory_agree_with_the_public_tables(shared_data: Path) -> None:
    with (shared_data / "gpus" / "gpus.csv").open(newline="") as lines:
        theirs = {row["gpu"]: row for row in csv.DictReader(lines)}
    for said in ("A40", "L4", "L40S", "RTX 4090", "H200", "A100-80GB SXM", "H100 SXM"):
        ours = find_gpu(said)
        assert ours.visible_gib == float(theirs[said]["visible_gib"])
        assert ours.memory_bandwidth_gb_per_second == float(theirs[said]["mem_bw_gbs"])
    with (shared_data / "gpus" / "gpu_prices.csv").open(newline="") as lines:
        modal = {row["gpu"]: row["usd_per_gpu_hour"] for row in csv.DictReader(lines) if row["provider"] == "Modal"}
    for said in ("T4", "L4", "L40S", "H100", "B200"):
        ours_modal = [q.price.usd_per_hour for q in prices()
                      if q.price.device == find_gpu(said).name and q.price.provider == "Modal"]  # fmt: skip
        assert ours_modal == [float(modal[said])]


def test_the_price_of_a_device_is_the_same_by_any_of_its_names() -> None:
    by_name = find_price("h100-sxm")
    assert by_name is not None
    assert find_price("NVIDIA H100 80GB HBM3") == by_name == find_price("H100")


def test_a_cpu_hour_is_two_cores_and_eight_gib_at_the_rates_its_row_names() -> None:
    price = find_price("cpu")
    assert price is not None
    core, gib = (float(rate) for rate in re.findall(r"\$(0\.\d+)", price.source))
    assert price.usd_per_hour == pytest.approx((2 * core + 8 * gib) * 3600)


def test_a_stated_price_wins_and_says_who_stated_it() -> None:
    price = find_price("NVIDIA A40", 0.35)
    assert price is not None
    assert (price.device, price.usd_per_hour, price.provider) == ("a40", 0.35, "stated by the user")
    assert re.fullmatch(r"\d{4}-\d\d-\d\d", price.date)
    assert find_price("some other card", 1.0) is not None


def test_a_device_without_a_quote_has_no_price() -> None:
    assert find_price("some other card") is None
    assert find_price("h20") is None


def test_the_cheapest_of_each_providers_newest_on_demand_price_is_taken() -> None:
    chosen = cheapest_current(
        [
            quote("A", 1.00, "2026-01-01"),
            quote("A", 3.00, "2026-09-01"),
            quote("B", 2.00, "2026-05-01"),
            quote("B", 0.10, "2026-06-01", kind="spot"),
        ]
    )
    assert chosen is not None
    assert (chosen.provider, chosen.usd_per_hour) == ("B", 2.00)


def test_a_price_of_an_earlier_year_only_counts_alone() -> None:
    old = quote("A", 0.44, "2024/2025")
    assert cheapest_current([old, quote("B", 0.80, "2026-07-01")]) == quote("B", 0.80, "2026-07-01").price
    assert cheapest_current([old]) == old.price
    assert cheapest_current([quote("A", 0.2, "2026-01-01", kind="community")]) is None


def quote(provider: str, usd: float, date: str, kind: str = "on-demand") -> Quote:
    price = Price(device="d", usd_per_hour=usd, provider=provider, date=date, source="a page")
    return Quote.model_validate({"price": price, "kind": kind})
