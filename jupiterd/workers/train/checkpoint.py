"""A checkpoint: an ordinary Hugging Face model folder, and beside it what training needs to go on.

Owns the folder's form, writing it all or not at all, and reading it with checks. Doesn't know when
a checkpoint is due. No pickle anywhere.

    config.json, generation_config.json, model.safetensors, the tokenizer's files
    training_state/state.json            step, tokens, cursor, round, hashes, generator state
    training_state/optimizer.safetensors the moments of AdamW, by the parameter's name
"""

import json
import os
import shutil
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor
from transformers.models.qwen3.modeling_qwen3 import Qwen3ForCausalLM

from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.train.model import config_fields

WEIGHTS_FILE = "model.safetensors"
STATE_DIR = "training_state"
STATE_FILE = "state.json"
OPTIMIZER_FILE = "optimizer.safetensors"
TIED_WEIGHT = "lm_head.weight"
MOMENTS = ("exp_avg", "exp_avg_sq")

_NO_MODEL_HINT = "give it a checkpoint of the same size, or start from none"


@dataclass(frozen=True)
class TrainingState:
    """How far training was; the weights beside it contain exactly that much."""

    round: int
    step: int
    """Optimizer steps of this round that are done."""
    tokens: int
    """Tokens trained on since the cycle began."""
    cursor: int
    """Sequences of the round's manifest trained on so far."""
    loss: float
    plan_hash: str
    model_hash: str
    rng: str
    """torch's CPU generator, as hex digits."""


def save_checkpoint(
    folder: Path,
    model: Qwen3ForCausalLM,
    optimizer: torch.optim.Optimizer,
    state: TrainingState,
    tokenizer: Path,
) -> None:
    """Write the folder; after a power cut it is there complete, or not at all."""
    draft = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    (draft / STATE_DIR).mkdir(parents=True)
    _copy_tokenizer(tokenizer, draft)
    _write_json(draft / "config.json", config_fields(model))
    _write_json(draft / "generation_config.json", _generation_fields(model))
    _save_tensors(weights_of(model), draft / WEIGHTS_FILE)
    _save_tensors(_moments(model, optimizer), draft / STATE_DIR / OPTIMIZER_FILE)
    _write_json(draft / STATE_DIR / STATE_FILE, asdict(state))
    for path in [*draft.rglob("*"), draft]:
        _sync(path)
    draft.rename(folder)
    _sync(folder.parent)


def load_weights(folder: Path, model: Qwen3ForCausalLM) -> None:
    """Fill the model with a checkpoint's weights.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
        UsageError: it holds another kind or size of model.
    """
    config = _read_json(folder / "config.json")
    if config.get("model_type") != model.config.model_type:
        raise UsageError(
            f"the checkpoint {folder.name} holds a {config.get('model_type')} model, "
            f"not {model.config.model_type}",
            _NO_MODEL_HINT,
        )
    _same_shapes(folder, _expected_fields(model), config)
    found, wanted = _load_tensors(folder / WEIGHTS_FILE), weights_of(model)
    shapes = {name: list(tensor.shape) for name, tensor in found.items()}
    _same_shapes(folder, {name: list(t.shape) for name, t in wanted.items()}, shapes)
    with torch.no_grad():
        for name, parameter in wanted.items():
            parameter.copy_(found[name])


def load_state(folder: Path) -> TrainingState:
    """Read how far the checkpoint's training was.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
    """
    try:
        return TrainingState(**_read_json(folder / STATE_DIR / STATE_FILE))
    except TypeError as error:
        raise CorruptArtifactError(f"the state of checkpoint {folder.name} is not ours") from error


def load_optimizer(
    folder: Path, model: Qwen3ForCausalLM, optimizer: torch.optim.Optimizer, step: int
) -> None:
    """Give AdamW its moments back, as they were after `step` steps.

    Raises:
        CorruptArtifactError: moments are missing or have other shapes than the weights.
    """
    found = _load_tensors(folder / STATE_DIR / OPTIMIZER_FILE)
    for name, parameter in model.named_parameters():
        moments = {moment: found.get(f"{moment}.{name}") for moment in MOMENTS}
        if any(tensor is None or tensor.shape != parameter.shape for tensor in moments.values()):
            raise CorruptArtifactError(f"checkpoint {folder.name} has no moments for {name}")
        on_device = {key: t.to(parameter.device) for key, t in moments.items() if t is not None}
        steps = torch.tensor(float(step), device=parameter.device)
        optimizer.state[parameter] = {"step": steps, **on_device}


def weights_of(model: Qwen3ForCausalLM) -> dict[str, Tensor]:
    """Return the tensors that model.safetensors holds, by Hugging Face's names."""
    tensors: dict[str, Tensor] = dict(model.state_dict())
    if model.config.tie_word_embeddings:
        del tensors[TIED_WEIGHT]
    return tensors


def _expected_fields(model: Qwen3ForCausalLM) -> dict[str, Any]:
    names = ("vocab_size", "hidden_size", "num_hidden_layers", "rope_theta", "tie_word_embeddings")
    fields = config_fields(model)
    return {name: fields[name] for name in names}


def _same_shapes(folder: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            raise UsageError(
                f"the checkpoint {folder.name} doesn't fit: {name} is {found.get(name)}, "
                f"not {value}",
                _NO_MODEL_HINT,
            )


def _moments(model: Qwen3ForCausalLM, optimizer: torch.optim.Optimizer) -> dict[str, Tensor]:
    return {
        f"{moment}.{name}": optimizer.state[parameter][moment]
        for name, parameter in model.named_parameters()
        for moment in MOMENTS
        if parameter in optimizer.state
    }


def _generation_fields(model: Qwen3ForCausalLM) -> dict[str, Any]:
    names = ("bos_token_id", "eos_token_id", "pad_token_id")
    return {name: getattr(model.config, name) for name in names}


def _copy_tokenizer(tokenizer: Path, draft: Path) -> None:
    for path in sorted(tokenizer.iterdir()):
        if path.is_file():
            shutil.copyfile(path, draft / path.name)


def _save_tensors(tensors: Mapping[str, Tensor], path: Path) -> None:
    on_cpu = {name: t.detach().to("cpu").contiguous() for name, t in tensors.items()}
    save_file(on_cpu, path, metadata={"format": "pt"})


def _load_tensors(path: Path) -> dict[str, Tensor]:
    try:
        return load_file(path)
    except (OSError, SafetensorError) as error:
        raise CorruptArtifactError(f"{path.parent.name}/{path.name} can't be read") from error


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    path.write_text(json.dumps(fields, indent=2, sort_keys=True) + "\n", encoding="utf-8")


def _read_json(path: Path) -> dict[str, Any]:
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"{path.parent.name}/{path.name} can't be read") from error


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
