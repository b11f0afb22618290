"""The two formats of trained weights in a folder: a whole model, and an adapter alone.

Owns which files there are, what they say, and reading them with checks. Doesn't know training
state, or when anything is written.

| format | files |
|---|---|
| whole model | config.json, generation_config.json, model.safetensors: as Hugging Face has them |
| adapter | adapter_config.json, adapter_model.safetensors: as the package peft has them |
"""

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, Final, Protocol

from transformers import PreTrainedConfig

from jupiterd.adapter_folder import ADAPTER_CONFIG, ADAPTER_FILE, BASE_KEY
from jupiterd.cycle.training.adapters.adapter import AdapterOptions, module_of, place_in_layer
from jupiterd.cycle.training.model_traits import is_tied
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.tensor_file import WEIGHTS_FILE, load_tensors
from jupiterd.workers.train.architectures.folder_weights import (
    as_files_have_them,
    read_file,
    read_folder,
)
from jupiterd.workers.train.model_config import config_fields, generation_fields
from jupiterd.workers.training_engine import Tensors, TrainingEngine

GENERATION_FILE: Final = "generation_config.json"

Shapes = Mapping[str, Sequence[int]]

_COMPARED = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "rope_theta",
    "tie_word_embeddings", "n_embd", "n_layer", "n_head",
)  # fmt: skip
"""Fields of config.json that must be the same; an architecture has some of them."""

_SAME_SIZE_HINT = "give it a checkpoint of the same size, or start from none"
_UNSAID: Final[Mapping[str, Any]] = {"use_dora": False}
"""What adapter_config.json means where it says nothing, as those of older builds."""
_SAME_ADAPTER_HINT = "give it an adapter of the same rank and targets, or start from none"


class CheckpointFormat(Protocol):
    """How trained weights lie in a folder."""

    file: str
    """Of the weights."""

    def texts(self, tokenizer: Path) -> dict[str, str]:
        """Return the texts of the JSON files that stand beside a tokenizer's, by their names."""
        ...

    def in_files(self, weights: Tensors) -> Tensors:
        """Return weights as the file holds them."""
        ...

    def check(self, folder: Path) -> None:
        """Raise UsageError where a folder holds something else than is trained here.

        Raises CorruptArtifactError where it can't be read.
        """
        ...

    def read_folder(self, folder: Path, shapes: Shapes) -> Tensors:
        """Return a folder's weights in fp32; raises as `check`."""
        ...

    def read_file(self, file: Path, shapes: Shapes) -> Tensors:
        """Return the weights of one file in fp32; raises as `check`."""
        ...


class ModelFormat:
    """A whole model."""

    file = WEIGHTS_FILE

    def __init__(self, config: PreTrainedConfig) -> None:
        self._config = config

    def texts(self, tokenizer: Path) -> dict[str, str]:
        """Return config.json, and how it generates unless that came with the tokenizer."""
        texts = {"config.json": json_text(config_fields(self._config))}
        if not (tokenizer / GENERATION_FILE).is_file():
            texts[GENERATION_FILE] = json_text(generation_fields(self._config))
        return texts

    def in_files(self, weights: Tensors) -> Tensors:
        """Return weights by the names that files of such a model have for them."""
        return as_files_have_them(self._config, weights)

    def check(self, folder: Path) -> None:
        """Compare config.json."""
        said = read_json(folder / "config.json")
        wanted = self._config.model_type
        if said.get("model_type") != wanted:
            kind = said.get("model_type")
            reason = f"the checkpoint {folder.name} holds a {kind} model, not {wanted}"
            raise UsageError(reason, _SAME_SIZE_HINT)
        ours, found = _compared(config_fields(self._config)), _compared(said)
        for name, value in ours.items():
            if name in found and found[name] != value:
                raise UsageError(
                    f"the checkpoint {folder.name} doesn't fit: {name} is {found[name]}, "
                    f"not {value}",
                    _SAME_SIZE_HINT,
                )

    def read_folder(self, folder: Path, shapes: Shapes) -> Tensors:
        """Return the weights under transformers' names, whatever the files call them."""
        return read_folder(folder, self._config, shapes)

    def read_file(self, file: Path, shapes: Shapes) -> Tensors:
        """Return the weights under transformers' names, whatever the file calls them."""
        return read_file(file, self._config, shapes)


class AdapterFormat:
    """An adapter alone; its base is an artifact of its own."""

    file = ADAPTER_FILE

    def __init__(self, options: AdapterOptions, names: Sequence[str]) -> None:
        """names: of its tensors."""
        self._options, self._names = options, names

    def texts(self, tokenizer: Path) -> dict[str, str]:  # noqa: ARG002 - as the other format's
        """Return adapter_config.json."""
        return {ADAPTER_CONFIG: json_text(adapter_fields(self._options, self._names))}

    def in_files(self, weights: Tensors) -> Tensors:
        """Return weights as they are."""
        return weights

    def check(self, folder: Path) -> None:
        """Compare adapter_config.json."""
        said = read_json(folder / ADAPTER_CONFIG)
        for name, value in adapter_fields(self._options, self._names).items():
            if (found := said.get(name, _UNSAID.get(name))) != value:
                raise UsageError(
                    f"the adapter {folder.name} doesn't fit: {name} is {found}, not {value}",
                    _SAME_ADAPTER_HINT,
                )

    def read_folder(self, folder: Path, shapes: Shapes) -> Tensors:
        """Return the tensors of the folder's file."""
        return self.read_file(folder / ADAPTER_FILE, shapes)

    def read_file(self, file: Path, shapes: Shapes) -> Tensors:
        """Return a file's tensors."""
        found = load_tensors(file)
        for name, shape in shapes.items():
            if name not in found or found[name].shape != tuple(shape):
                reason = f"{file.parent.name}/{file.name} holds no {name} of {list(shape)}"
                raise CorruptArtifactError(reason)
        return {name: found[name] for name in shapes}


def format_of(engine: TrainingEngine) -> CheckpointFormat:
    """Return the format of what an engine trains."""
    if engine.adapter is None:
        return ModelFormat(engine.config)
    return AdapterFormat(engine.adapter, list(engine.weights()))


def adapter_fields(options: AdapterOptions, names: Sequence[str]) -> dict[str, Any]:
    """Return what adapter_config.json says, in peft's words; names: of the adapter's tensors."""
    places = [place_in_layer(module_of(name)[0]) for name in names]
    return {
        "peft_type": "LORA",
        "task_type": "CAUSAL_LM",
        BASE_KEY: options.base,
        "r": options.rank,
        "lora_alpha": options.alpha,
        "use_rslora": options.form == "rslora",
        "lora_dropout": options.dropout,
        "use_dora": options.dora,
        "bias": "none",
        "target_modules": sorted({place for _, place in places}),
        "layers_to_transform": sorted({number for number, _ in places}),
    }


def json_text(fields: Mapping[str, Any]) -> str:
    """Return the text of a JSON file."""
    return json.dumps(fields, indent=2, sort_keys=True) + "\n"


def read_json(path: Path) -> dict[str, Any]:
    """Return what a JSON file says; raises CorruptArtifactError where it can't be read."""
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError) as error:
        raise CorruptArtifactError(f"{path.parent.name}/{path.name} can't be read") from error


def _compared(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that must be the same, where a config.json says them.

    Older and newer ones keep the rope base in different places; and tying is what nobody need say.
    """
    nested: Mapping[str, Any] = fields.get("rope_parameters") or {}
    all_fields = dict(nested) | dict(fields) | {"tie_word_embeddings": is_tied(fields)}
    return {name: all_fields[name] for name in _COMPARED if all_fields.get(name) is not None}
