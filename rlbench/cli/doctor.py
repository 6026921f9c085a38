"""`rlbench doctor`: what is installed, what device this is, what is missing and what brings it."""

from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated, Any

import typer

from rlbench.cli.app import app
from rlbench.cli.common import Session, command

EXTRAS = {
    "local": (("torch", "transformers", "trl", "peft", "datasets", "lm-eval", "math-verify"),
              "measuring on this machine: rollouts, accuracy, probes, estimate-memory --check"),
    "vllm": (("vllm",), "the vLLM engine on an NVIDIA GPU"),
    "modal": (("modal",), "jobs on Modal's GPUs"),
}  # fmt: skip
HUB_SECONDS = 3.0


@dataclass(frozen=True)
class Extra:
    """One extra of the package: its packages' versions, or the command that brings them."""

    name: str
    brings: str
    installed: dict[str, str]
    missing: tuple[str, ...]

    @property
    def command(self) -> str | None:
        return f"pip install 'rlbench[{self.name}]'" if self.missing else None


@command(app, "doctor", "what is installed, what is missing")
def doctor(
    session: Session,
    hub: Annotated[bool, typer.Option("--hub/--no-hub", help="Ask whether the model hub answers.")] = True,
) -> None:
    """Tell what is installed, what device this is, and what is missing."""
    facts = _facts(session, hub)
    extras = [_extra(name) for name in EXTRAS]
    if session.json:
        session.emit(facts | {"extras": [asdict(extra) | {"command": extra.command} for extra in extras]})
        return
    from rich.table import Table

    table = Table(show_header=False, box=None)
    for key, value in facts.items():
        table.add_row(key.replace("_", " "), "none" if value is None else str(value))
    session.out.print(table)
    for extra in extras:
        have = ", ".join(f"{package} {version}" for package, version in extra.installed.items())
        session.out.print(f"\n[bold]{extra.name}[/bold]: {extra.brings}", soft_wrap=True)
        if have:
            session.out.print(f"  has {have}", markup=False, highlight=False, soft_wrap=True)
        if extra.command:
            session.out.print(
                f"  lacks {', '.join(extra.missing)}: {extra.command}",
                markup=False,
                highlight=False,
                soft_wrap=True,
            )


def _facts(session: Session, ask_hub: bool) -> dict[str, Any]:
    import os
    import platform

    from platformdirs import user_cache_dir

    from rlbench import __version__
    from rlbench.measure import host
    from rlbench.plans.base import this_device

    hub_cache = os.environ.get("HF_HUB_CACHE") or str(
        Path(os.environ.get("HF_HOME", "~/.cache/huggingface")).expanduser() / "hub"
    )
    return {
        "rlbench": __version__,
        "commit": host.checkout_commit(),
        "python": platform.python_version(),
        "platform": platform.platform(terse=True),
        "device": this_device(),
        "gpu_driver": host.gpu_driver(),
        "processor": host.processor_name(),
        "cpu_cores": host.usable_cpus(),
        "memory_gib": round(host.total_memory_bytes() / 2**30, 1),
        "store": str(session.store.resolve()),
        "rlbench_cache": user_cache_dir("rlbench"),
        "hub_cache": hub_cache,
        "hub_reachable": _hub_answers() if ask_hub and not session.offline else None,
    }


def _extra(name: str) -> Extra:
    from rlbench.measure.host import package_versions

    packages, brings = EXTRAS[name]
    installed = package_versions(packages)
    return Extra(name, brings, installed, tuple(package for package in packages if package not in installed))


def _hub_answers() -> bool:
    """Whether the hub that HF_ENDPOINT names takes a connection."""
    import os
    import socket
    from urllib.parse import urlsplit

    address = urlsplit(os.environ.get("HF_ENDPOINT", "https://huggingface.co"))
    port = address.port or (80 if address.scheme == "http" else 443)
    try:
        with socket.create_connection((address.hostname or "", port), timeout=HUB_SECONDS):
            return True
    except OSError:
        return False
