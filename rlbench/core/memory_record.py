"""A memory estimate as a record, beside what was measured. Apart, so that the estimate itself needs no records."""

from rlbench.core.card import ModelCard
from rlbench.core.gpu import Gpu
from rlbench.core.memory import Estimate, Setting, estimate
from rlbench.core.record import MemoryValues, Record
from rlbench.core.subject import Subject


def memory_values(found: Estimate, gpu: str, visible_bytes: int, advice: tuple[str, ...] = ()) -> MemoryValues:
    """The estimate in the terms of a record.

    Weights include the fp32 master copy. Activations, logits and KV cache are what each takes in the phase in
    which it is largest; they are not all held at the peak when that is another phase.
    """
    setting, peak = found.setting, found.peak
    return MemoryValues(
        regime=setting.regime,
        method=setting.method,
        seq_len=setting.seq_len,
        micro_batch=setting.micro_batch,
        parameters=found.parameters,
        bytes_per_parameter=found.bytes_per_parameter,
        states_bytes=found.states_bytes,
        weights_bytes=found.state_bytes("weights", "master copy"),
        gradients_bytes=found.state_bytes("gradients"),
        optimizer_bytes=found.state_bytes("optimizer"),
        activations_bytes=found.most("activations"),
        logits_bytes=found.most("logits"),
        kv_cache_bytes=found.most("KV cache"),
        rollout_engine_bytes=0,
        overhead_bytes=peak.part_bytes("overhead"),
        peak_bytes=peak.bytes,
        peak_bytes_low=found.low_bytes,
        peak_bytes_high=found.high_bytes,
        peak_phase=peak.name,
        gpu=gpu,
        gpu_visible_bytes=visible_bytes,
        fits=peak.bytes <= visible_bytes,
        advice=advice,
        how="rlbench.core.memory: " + "; ".join(f"{part.name} {part.formula}" for part in peak.parts),
    )


def estimate_record(card: ModelCard, gpu: Gpu, setting: Setting, command: str) -> Record:
    """The estimate for a card on a GPU as a record, with the command that gives it again."""
    return Record(
        subject=Subject(model=card.hub_id, card=card.name),
        provenance="estimated",
        source=f"rlbench.core.memory, {command}",
        values=memory_values(estimate(card.architecture, setting), gpu.name, gpu.visible_bytes),
    )
