"""Memory checks: what a user asks for, and the jobs that answer it."""

import hashlib
import json
from functools import partial
from pathlib import Path
from typing import Literal

from pydantic import Field

from rlbench.catalogue import find_model, find_price
from rlbench.core.card import ModelCard
from rlbench.core.job import EngineSpec, Job, MemoryCheck, Targets
from rlbench.core.memory import Checkpointing, Setting, estimate
from rlbench.core.regime import Regime
from rlbench.core.subject import Subject
from rlbench.core.value import Value
from rlbench.errors import InputError
from rlbench.measure.host import gpu_free_bytes
from rlbench.plans.base import Forecast, Planned, Surroundings, this_device, versions_for

CPU_SHARE = 0.6
"""Of this machine's free memory, what a real step on the CPU may take."""
CPU_OPERATIONS_PER_SECOND = 1e10
"""Slow on purpose: half precision on a CPU without its instructions (smollm2-135m, bf16, 256 tokens: 60 s a step)."""
CPU_SECONDS = 300.0
"""Longer than this, the step is traced instead."""
TRACE_SECONDS = 45.0


class MemoryRequest(Value):
    """A real or traced AdamW step of each model under one regime."""

    kind: Literal["memory"] = "memory"
    models: tuple[str, ...] = Field(min_length=1)
    regime: Regime = "mixed"
    seq_len: int = Field(default=1024, gt=0)
    micro_batch: int = Field(default=1, gt=0)
    checkpointing: Checkpointing = "none"

    def plan(self, around: Surroundings) -> list[Planned]:
        """One job a model: on this machine's GPU or CPU where it holds the step, else traced.

        Raises:
            UnknownName: a model that is none.
        """
        return [self._planned(find_model(name, around.offline), around) for name in self.models]

    def _planned(self, card: ModelCard, around: Surroundings) -> Planned:
        device = this_device()
        setting = self._setting(device)
        need = estimate(card.architecture, setting).peak.bytes
        seconds = 0.0 if device != "cpu" else _cpu_seconds(card, setting)
        real = need <= _room(device) and seconds <= CPU_SECONDS
        job = Job(
            subject=Subject(model=card.hub_id, card=card.name, revision=_digest(card)),
            settings=MemoryCheck(
                regime=self.regime,
                seq_len=self.seq_len,
                micro_batch=self.micro_batch,
                checkpointing=self.checkpointing,
                run="real" if real else "traced",
            ),
            engine=EngineSpec(random_weights=True, dtype="float32" if self.regime == "fp32" else "bfloat16"),
            versions=versions_for(),
            device=device if real else "cpu",
        )
        return Planned(
            job=job,
            targets=Targets(),
            fetch=partial(config_folder, card),
            price=find_price(job.device, around.usd_per_hour),
            forecast=Forecast(
                seconds=(seconds or None) if real else TRACE_SECONDS,
                peak_bytes=need if real else None,
                how="memory checks: rlbench.core.memory and the step's arithmetic" if real else "",
            ),
        )

    def _setting(self, device: str) -> Setting:
        return Setting(
            regime=self.regime,
            seq_len=self.seq_len,
            micro_batch=self.micro_batch,
            checkpointing=self.checkpointing,
            device="cpu" if device == "cpu" else "gpu",
        )


def config_folder(card: ModelCard) -> Path:
    """A folder with the card's config.json and no weights: the local folder itself, or one in the user's cache."""
    local = Path(card.hub_id)
    if local.is_dir():
        return local
    from platformdirs import user_cache_path

    from rlbench.store import write_json

    folder = user_cache_path("rlbench") / "configs" / _digest(card)
    try:
        folder.mkdir(parents=True, exist_ok=True)
        write_json(folder / "config.json", card.architecture.to_config())
    except OSError as error:
        raise InputError(
            f"cannot write {folder} ({error.strerror or error}): free some space, or set XDG_CACHE_HOME to "
            "another folder."
        ) from error
    return folder


def _digest(card: ModelCard) -> str:
    canonical = json.dumps(card.architecture.to_json(), sort_keys=True)
    return hashlib.sha256(canonical.encode()).hexdigest()[:16]


def _cpu_seconds(card: ModelCard, setting: Setting) -> float:
    """Two steps at 6 operations a parameter and token."""
    return 2 * 6 * card.parameters * setting.tokens / CPU_OPERATIONS_PER_SECOND


def _room(device: str) -> float:
    """Bytes that a step may take on the device."""
    if device == "cpu":
        import psutil

        return CPU_SHARE * float(psutil.virtual_memory().available)
    return float(gpu_free_bytes())
