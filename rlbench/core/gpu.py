"""A GPU: what a model runs on, and the ceilings that memory and speed are estimated from."""

from pydantic import Field, model_validator

from rlbench.core.value import Value

GIB = 2**30


class Gpu(Value):
    """One model of GPU as it is sold.

    Every figure comes from `source`, except those that `unverified` names: they are derived from another figure
    or stand in no source that was read, and `note` says which.
    """

    name: str
    aliases: tuple[str, ...] = ()
    """Other names, the device name of nvidia-smi among them (in kebab case, without the maker's name)."""
    marketing_gb: float | None = None
    """Memory as advertised, GB."""
    visible_gib: float = Field(gt=0)
    """Memory a program can see, GiB: what counts, and less than what is advertised."""
    memory_bandwidth_gb_per_second: float = Field(gt=0)
    """Peak memory bandwidth, 10⁹ bytes per second."""
    bf16_tflops: float | None = None
    """Dense (no sparsity) peak rate with fp32 accumulation, 10¹² operations per second; `None`: it has no bf16."""
    fp16_tflops: float | None = None
    """As `bf16_tflops`, in fp16."""
    fp32_tflops: float | None = None
    """Peak rate outside the tensor cores, 10¹² operations per second; `None` where it is not known."""
    compute_capability: str | None = None
    unverified: tuple[str, ...] = ()
    """Names of the fields above that no source confirms."""
    source: str = ""
    note: str = ""

    @model_validator(mode="after")
    def _unverified_names_fields(self) -> "Gpu":
        strangers = set(self.unverified) - set(type(self).model_fields)
        if strangers:
            raise ValueError(f"'unverified' of {self.name} names no such field: {', '.join(sorted(strangers))}")
        return self

    @property
    def visible_bytes(self) -> int:
        """Memory a program can see, bytes."""
        return int(self.visible_gib * GIB)
