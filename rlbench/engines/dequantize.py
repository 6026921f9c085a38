"""`python -m rlbench.engines.dequantize FILE.gguf FOLDER`: a GGUF file as a folder of safetensors in fp32."""

import sys
from pathlib import Path


def dequantize(gguf: Path, folder: Path) -> None:
    """Write the model and its tokenizer, with its chat template, to `folder`."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, GgufConfig

    tokenizer = AutoTokenizer.from_pretrained(gguf.parent, gguf_file=gguf.name)
    model = AutoModelForCausalLM.from_pretrained(
        gguf.parent, gguf_file=gguf.name, quantization_config=GgufConfig(dequantize=True), dtype=torch.float32
    )
    # transformers up to 5.19 leaves the entry behind, and then refuses to load what it has saved.
    vars(model.config).pop("quantization_config", None)
    model.save_pretrained(folder)
    tokenizer.save_pretrained(folder)


if __name__ == "__main__":
    dequantize(Path(sys.argv[1]), Path(sys.argv[2]))
