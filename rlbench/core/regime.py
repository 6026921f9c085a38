"""Which copies of weights, gradients and moments a training step keeps, and in which precision."""

from typing import Literal

Regime = Literal["mixed", "half-grads", "both-grads", "fp32", "bf16"]
"""Bytes of model states per parameter: 18, 16, 20, 16 and 8 (`rlbench.core.memory.STATES`)."""
