"""Time and memory of generating before it starts: the step-time model for a GPU, a measured rate for a CPU."""

from rlbench.catalogue import find_gpu
from rlbench.core.card import ModelCard
from rlbench.core.gpu import Gpu
from rlbench.core.speed import predict
from rlbench.core.workload import Workload
from rlbench.errors import UnknownName
from rlbench.measure.host import catalogue_name
from rlbench.plans.base import Forecast

CPU_TOKENS_PER_SECOND = 60.0
CPU_PARAMETERS = 134_515_008
"""smollm2-135m, fp32, batch of 32 on two cores of a small server: 35 to 116 a second, as the batch empties and the
machine is shared. The only CPU forecast there is, scaled by size."""
CPU_LOAD_SECONDS = 15.0
LIBRARY_BYTES = 700_000_000
"""torch and transformers before a model is loaded."""


def of_generation(card: ModelCard, device: str, asked: Workload, passes: int = 1) -> Forecast:
    """What `passes` passes over the workload take on this machine's device, with the transformers engine."""
    tokens = asked.mean_new_tokens or asked.max_new_tokens
    in_batch = min(asked.concurrency or asked.rollouts, asked.rollouts)
    if device == "cpu":
        rate = CPU_TOKENS_PER_SECOND * CPU_PARAMETERS / card.parameters
        return Forecast(
            seconds=CPU_LOAD_SECONDS + passes * asked.rollouts * tokens / rate,
            peak_bytes=LIBRARY_BYTES + _bytes(card, asked, in_batch, bytes_per_element=4),
            how="generation: smollm2-135m's rate on two CPU cores, scaled by parameters, every completion at its cap",
        )
    gpu = gpu_in_catalogue(device)
    found = None if gpu is None else predict(card.architecture, gpu, asked, "transformers")
    if found is None:
        return Forecast()
    return Forecast(
        seconds=passes * found.seconds,
        peak_bytes=_bytes(card, asked, in_batch, bytes_per_element=2),
        how="generation: rlbench's step-time model",
    )


def gpu_in_catalogue(device: str) -> Gpu | None:
    """The catalogue's GPU for a device's name, or `None` when it knows none."""
    try:
        return find_gpu(catalogue_name(device))
    except UnknownName:
        return None


def _bytes(card: ModelCard, asked: Workload, in_batch: int, bytes_per_element: int) -> float:
    tokens = in_batch * (asked.prompt_len + asked.max_new_tokens)
    return bytes_per_element * card.parameters + tokens * card.architecture.kv_bytes_per_token(bytes_per_element)
