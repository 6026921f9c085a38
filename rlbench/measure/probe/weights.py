"""The trained weights on disk: put in place whole, beside the base model's own tokenizer, and really changed."""

import shutil
import tempfile
from pathlib import Path
from typing import Any

from rlbench.errors import RlbenchError

_TIED = {"lm_head.weight"}
"""A tied output layer may be written or left out."""


def save_trained(model: Any, base: Path, target: Path) -> None:
    """Save `model` (a LoRA adapter merged in) as the folder `target`.

    Everything but the weights is copied from `base`, so that both are prompted and stopped alike.

    Raises:
        RlbenchError: no weight differs from the base model's, or other weights were saved than it has.
    """
    if hasattr(model, "merge_and_unload"):
        model = model.merge_and_unload()
    with tempfile.TemporaryDirectory(dir=target.parent, prefix=".saving-") as name:
        folder = Path(name) / "model"
        model.save_pretrained(folder)
        for file in base.iterdir():
            if file.is_file() and "safetensors" not in file.name:
                shutil.copyfile(file, folder / file.name)
        changed = changed_tensors(base, folder)
        if changed == 0:
            raise RlbenchError(
                "the training changed no weight: no group of completions had different rewards, so nothing could be "
                "learned; choose a --task that the model sometimes gets right, or raise --lr."
            )
        folder.rename(target)


def changed_tensors(base: Path, trained: Path) -> int:
    """How many tensors of the two folders' safetensors differ.

    Raises:
        RlbenchError: they do not hold the same tensors, so one of them would not load as that model.
    """
    import torch
    from safetensors import safe_open

    first, second = _tensors(base), _tensors(trained)
    different = (set(first) ^ set(second)) - _TIED
    if different:
        raise RlbenchError(
            f"the trained weights are not those of the base model ({min(different)} is in one of them only): "
            "this version of transformers saves the architecture under other names; report it."
        )
    changed = 0
    for name in sorted(set(first) & set(second)):
        with safe_open(first[name], framework="pt") as one, safe_open(second[name], framework="pt") as other:
            before, after = one.get_tensor(name), other.get_tensor(name)
            changed += not torch.equal(before.to(after.dtype), after)
    return changed


def _tensors(folder: Path) -> dict[str, Path]:
    """Which file holds each tensor."""
    from safetensors import safe_open

    found = {}
    for file in sorted(folder.glob("*.safetensors")):
        with safe_open(file, framework="pt") as opened:
            found.update(dict.fromkeys(opened.keys(), file))
    return found
