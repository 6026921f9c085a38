"""One AdamW step as the libraries of each regime run it: which copies of a parameter are kept, and when they go.

mixed       half weights; fp32 master copy and gradient buffers, which stay allocated (Megatron-LM)
half-grads  half weights and gradients; fp32 master copy (ZeRO paper)
both-grads  as mixed, and the half gradients stay as well (ZeRO-Infinity)
fp32        one fp32 copy, gradients freed after the step (plain PyTorch, HF Trainer)
bf16        one bf16 copy, gradients freed after the step
"""

from typing import TYPE_CHECKING, Any

from rlbench.core.regime import Regime

if TYPE_CHECKING:
    import torch


class TrainingStep:
    """A model's optimizer under one regime."""

    def __init__(self, model: "torch.nn.Module", regime: Regime, fused: bool) -> None:
        """Make the copies that the regime keeps.

        Args:
            model: in half precision, but for the regime fp32.
            regime: which copies are kept.
            fused: one kernel without temporaries; a loop over parameters without it (fake tensors have no kernel).
        """
        import torch

        self.regime = regime
        self.weights: list[torch.Tensor] = list(model.parameters())
        self.masters = [p.detach().float().clone() for p in self.weights] if self._keeps_master else []
        self.buffers = [torch.zeros_like(m) for m in self.masters] if regime in ("mixed", "both-grads") else []
        trained = self.masters or self.weights
        # half-grads turns one parameter's gradient into fp32 at a time, so each parameter has its own optimizer.
        groups = [[t] for t in trained] if regime == "half-grads" else [trained]
        self.optimizers = [torch.optim.AdamW(group, lr=1e-5, fused=fused, foreach=False) for group in groups]
        for weight, master, buffer in zip(self.weights, self.masters, self.buffers, strict=False):
            master.grad = buffer
            weight.register_post_accumulate_grad_hook(self._into(buffer))

    def step(self) -> None:
        """Apply the gradients."""
        import torch

        if self.regime == "half-grads":
            for weight, master, optimizer in zip(self.weights, self.masters, self.optimizers, strict=True):
                assert weight.grad is not None
                master.grad = weight.grad.float()
                optimizer.step()
                master.grad = None
        else:
            self.optimizers[0].step()
        with torch.no_grad():
            for weight, master in zip(self.weights, self.masters, strict=False):
                weight.copy_(master)

    def clear_gradients(self) -> None:
        """Make ready for the next step: buffers are zeroed and stay, other gradients are freed."""
        for buffer in self.buffers:
            buffer.zero_()
        for weight in self.weights:
            if weight.grad is None:
                continue
            if self.regime in ("half-grads", "both-grads"):
                weight.grad.zero_()
            else:
                weight.grad = None

    def state_bytes(self) -> dict[str, int]:
        """Bytes of the live tensors by part, each storage once; right after `step`."""
        seen: set[int] = set()
        gradients = [w.grad for w in self.weights if w.grad is not None]
        moments = [
            value
            for optimizer in self.optimizers
            for state in optimizer.state.values()
            for key, value in state.items()
            if key != "step"
        ]
        return {
            "weights": _storage_bytes(self.weights, seen),
            "master copy": _storage_bytes(self.masters, seen),
            "gradients": _storage_bytes([*gradients, *self.buffers], seen),
            "optimizer": _storage_bytes(moments, seen),
        }

    @property
    def _keeps_master(self) -> bool:
        return self.regime in ("mixed", "half-grads", "both-grads")

    def _into(self, buffer: "torch.Tensor") -> Any:
        def accumulate(weight: "torch.Tensor") -> None:
            assert weight.grad is not None
            buffer.add_(weight.grad)
            if self.regime == "mixed":
                weight.grad = None

        return accumulate


def _storage_bytes(tensors: "list[torch.Tensor]", seen: set[int]) -> int:
    total = 0
    for tensor in tensors:
        storage = tensor.untyped_storage()
        if storage._cdata not in seen:
            seen.add(storage._cdata)
            total += storage.nbytes()
    return total
