"""A model folder opened with transformers: any causal model that the library knows.

Owns loading it, onto a GPU where there is one. Doesn't know what is written with it. Code that
comes with a model is never run.
"""

from dataclasses import dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from transformers import AutoModelForCausalLM

from jupiterd.adapter_folder import base_beside
from jupiterd.errors import BrokenModelError
from jupiterd.workers.adapters.torch_merge import merge
from jupiterd.workers.generate.model_text import ModelText


@dataclass(frozen=True)
class OpenModel:
    """A model that can write."""

    model: Any
    """A transformers causal model, in evaluation mode."""
    text: ModelText
    device: str
    """Where it computes, such as `cpu` or `cuda`."""

    @property
    def max_tokens(self) -> int:
        """Prompt and text together."""
        return self.text.max_tokens

    @property
    def filler(self) -> int:
        """Fills the rows of a batch that are shorter; nobody looks at it."""
        return min(self.text.ends, default=0)


def open_model(folder: Path, device: str = "cpu") -> OpenModel:
    """Load a Hugging Face model folder; on a GPU in bf16 where it computes that.

    Raises:
        BrokenModelError: the folder is incomplete or can't be read.
    """
    text, base = ModelText(folder), base_beside(folder)
    try:
        loaded: Any = AutoModelForCausalLM.from_pretrained(
            base or folder,
            local_files_only=True,
            trust_remote_code=False,
            attn_implementation="sdpa",
            output_loading_info=True,
            dtype=_dtype(device),
        )
    except (OSError, ValueError, KeyError, RuntimeError, SafetensorError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise BrokenModelError(f"no model can be read from {folder.name}: {reason}") from error
    model, loading_report = loaded
    if missing := sorted(loading_report["missing_keys"]):  # the library would draw them at random
        raise BrokenModelError(
            f"no model can be read from {folder.name}: its weights lack {len(missing)} tensors, "
            f"such as {missing[0]}",
            "fetch the model again: a file of it is missing or cut off",
        )
    if base is not None:
        merge(model, folder)
    return OpenModel(model.eval().to(device), text, device)


def _dtype(device: str) -> torch.dtype:
    if device.startswith("cuda"):
        return torch.bfloat16 if torch.cuda.is_bf16_supported() else torch.float16
    return torch.float32
