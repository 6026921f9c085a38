"""A GPU: what a model runs on."""

from pydantic import Field

from rlbench.core.value import Value

GIB = 2**30


class Gpu(Value):
    name: str
    aliases: tuple[str, ...] = ()
    visible_gib: float = Field(gt=0)
    memory_bandwidth_gb_per_second: float = Field(gt=0)
    bf16_tflops: float | None = None
    fp16_tflops: float | None = None
    fp32_tflops: float | None = None
    compute_capability: str | None = None
    unverified: tuple[str, ...] = ()
    source: str = ""

    @property
    def visible_bytes(self) -> int:
        return int(self.visible_gib * GIB)
