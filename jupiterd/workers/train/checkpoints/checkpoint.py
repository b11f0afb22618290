"""A checkpoint: an ordinary Hugging Face model folder, and beside it what training needs to go on.

Owns the folder's form, writing it all or not at all, and reading it with checks. Doesn't know when
a checkpoint is due, nor engines: what one wrote, another reads. Weights may also come from any
Hugging Face folder of the same architecture.

    config.json, generation_config.json, model.safetensors, the tokenizer's files
    training_state/state.json            step, tokens, cursor, round, hashes, generator state
    training_state/optimizer.safetensors what the optimizer keeps, by kind and parameter's name
    training_state/outer.safetensors     of an island: what the outer loop keeps, in the same way
    training_state/best.safetensors      the best weights so far, where they aren't those above
"""

import json
import os
import shutil
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from jupiterd.cycle.training.model_traits import is_tied
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.memory_room import trim_heaps
from jupiterd.workers.train.architectures.folder_weights import (
    as_files_have_them,
    read_folder,
)
from jupiterd.workers.train.checkpoints.tensor_file import WEIGHTS_FILE, load_tensors, save_tensors
from jupiterd.workers.train.model_config import config_fields, generation_fields
from jupiterd.workers.training_engine import Tensors, TrainingEngine, moments_of

STATE_DIR = "training_state"
STATE_FILE = "state.json"
OPTIMIZER_FILE = "optimizer.safetensors"
GENERATION_FILE = "generation_config.json"
OUTER_FILE = "outer.safetensors"
BEST_FILE = "best.safetensors"

_RARE = frozenset({"outer", "ramp", "on_trunk", "steps_before"})
"""Fields of the state that stand there only where they say something."""

_COMPARED = (
    "vocab_size", "hidden_size", "num_hidden_layers", "num_attention_heads", "rope_theta",
    "tie_word_embeddings", "n_embd", "n_layer", "n_head",
)  # fmt: skip
"""Fields of config.json that must be the same; an architecture has some of them."""

_NO_MODEL_HINT = "give it a checkpoint of the same size, or start from none"


@dataclass(frozen=True)
class TrainingState:
    """How far training was; the weights beside it contain exactly that much.

    It says nothing that only some ranks know, such as the last loss: after a step all of them write
    the same folder, so that whoever survives holds what any other has kept.
    """

    round: int
    step: int
    """Optimizer steps of this round that are done."""
    tokens: int
    """Tokens trained on since the cycle began."""
    cursor: int
    """Sequences of the round's manifest trained on so far."""
    plan_hash: str
    model_hash: str
    rng: str
    """torch's CPU generator, as hex digits; empty where MLX wrote it."""
    outer: Mapping[str, Any] | None = None
    """Of an island: its order since the last outer step, see `RoundOrder`."""
    ramp: Sequence[int] = ()
    """Of an island whose learning rate is being raised, see `JoiningRamp`."""
    on_trunk: bool = False
    """The rate hasn't begun to fall: a later round goes on with its moments, too."""
    steps_before: int = 0
    """Steps that its moments come from, beyond those of this round."""

    @property
    def optimizer_steps(self) -> int:
        """Return how many steps its moments come from."""
        return self.steps_before + self.step

    def to_plain(self) -> dict[str, Any]:
        """Return it as the file has it."""
        plain = asdict(self)
        return {name: value for name, value in plain.items() if name not in _RARE or value}


@dataclass(frozen=True)
class TrainingSnapshot:
    """Everything that a checkpoint holds, in memory of its own: training may go on."""

    config: PreTrainedConfig
    weights: Tensors
    moments: Tensors
    state: TrainingState
    outer: Tensors | None = None
    """Of an island: what its outer loop keeps."""
    best: Path | None = None
    """The file of the best weights so far, where they are others."""
    is_best: bool = False
    """The weights are those of an earlier step, the best there were: training is over."""


def snapshot(
    engine: TrainingEngine, state: TrainingState, outer: Tensors | None = None
) -> TrainingSnapshot:
    """Copy what the engine has now; nothing may change it meanwhile."""
    trim_heaps()
    return TrainingSnapshot(engine.config, engine.weights(), engine.moments(), state, outer)


def best_of(folder: Path, *, is_own: bool) -> Path | None:
    """Return the file of the best weights at a checkpoint, its own or others; None: not there."""
    found = folder / WEIGHTS_FILE if is_own else folder / STATE_DIR / BEST_FILE
    return found if found.is_file() else None


def write(
    taken: TrainingSnapshot, folder: Path, tokenizer: Path, *, is_synced: bool = True
) -> None:
    """Write the folder; after a power cut it is there complete, or not at all, if it is synced.

    Where it fails, nothing is left of it: a full disk needs the room.
    """
    draft = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        _fill(draft, taken, tokenizer)
        if is_synced:
            for path in [*draft.rglob("*"), draft]:
                _sync(path)
        draft.rename(folder)
    except BaseException:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    if is_synced:
        _sync(folder.parent)


def _fill(draft: Path, taken: TrainingSnapshot, tokenizer: Path) -> None:
    write_model(draft, taken.config, taken.weights, tokenizer)
    (draft / STATE_DIR).mkdir()
    save_tensors(taken.moments, draft / STATE_DIR / OPTIMIZER_FILE)
    if taken.outer is not None:
        save_tensors(taken.outer, draft / STATE_DIR / OUTER_FILE)
    if taken.best is not None and taken.best.is_file():  # better ones may have come meanwhile
        shutil.copyfile(taken.best, draft / STATE_DIR / BEST_FILE)
    (draft / STATE_DIR / STATE_FILE).write_text(state_text(taken.state), encoding="utf-8")


def write_model(folder: Path, config: PreTrainedConfig, weights: Tensors, tokenizer: Path) -> None:
    """Write an ordinary model folder, as Hugging Face has them.

    How the model is talked to, and how it generates, stay as they came with the tokenizer.
    """
    folder.mkdir(parents=True)
    _copy_tokenizer(tokenizer, folder)
    for name, text in model_texts(config, tokenizer).items():
        (folder / name).write_text(text, encoding="utf-8")
    save_tensors(as_files_have_them(config, weights), folder / WEIGHTS_FILE)


def model_texts(config: PreTrainedConfig, tokenizer: Path) -> dict[str, str]:
    """Return the texts of the JSON files that stand beside a tokenizer's, by their names."""
    texts = {"config.json": _json_text(config_fields(config))}
    if not (tokenizer / GENERATION_FILE).is_file():
        texts[GENERATION_FILE] = _json_text(generation_fields(config))
    return texts


def state_text(state: TrainingState) -> str:
    """Return the text of the file that says how far training was."""
    return _json_text(state.to_plain())


def load_weights(folder: Path, engine: TrainingEngine) -> None:
    """Fill the engine's model with a checkpoint's weights.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
        UsageError: it holds another kind or size of model.
    """
    config = _read_json(folder / "config.json")
    wanted_kind = engine.config.model_type
    if config.get("model_type") != wanted_kind:
        raise UsageError(
            f"the checkpoint {folder.name} holds a {config.get('model_type')} model, "
            f"not {wanted_kind}",
            _NO_MODEL_HINT,
        )
    ours, said = _compared(config_fields(engine.config)), _compared(config)
    _same_values(folder, {name: value for name, value in ours.items() if name in said}, said)
    wanted = engine.weights()
    engine.load_weights(read_folder(folder, engine.config, _shapes(wanted)))


def load_state(folder: Path) -> TrainingState:
    """Read how far the checkpoint's training was.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
    """
    try:
        return TrainingState(**_read_json(folder / STATE_DIR / STATE_FILE))
    except TypeError as error:
        raise CorruptArtifactError(f"the state of checkpoint {folder.name} is not ours") from error


def load_moments(folder: Path, engine: TrainingEngine, step: int) -> None:
    """Give the optimizer its moments back, as they were after `step` steps.

    Raises:
        CorruptArtifactError: moments are missing or have other shapes than the weights.
    """
    found = load_tensors(folder / STATE_DIR / OPTIMIZER_FILE)
    for name, weights in engine.weights().items():
        kinds = moments_of(name, weights.ndim, engine.options)
        moments = [found.get(f"{kind}.{name}") for kind in kinds]
        if any(values is None or values.shape != weights.shape for values in moments):
            raise CorruptArtifactError(f"checkpoint {folder.name} has no moments for {name}")
    engine.load_moments(found, step)


def _compared(fields: Mapping[str, Any]) -> dict[str, Any]:
    """Return the fields that must be the same, where a config.json says them.

    Older and newer ones keep the rope base in different places; and tying is what nobody need say.
    """
    nested: Mapping[str, Any] = fields.get("rope_parameters") or {}
    all_fields = dict(nested) | dict(fields) | {"tie_word_embeddings": is_tied(fields)}
    return {name: all_fields[name] for name in _COMPARED if all_fields.get(name) is not None}


def _shapes(tensors: Tensors) -> dict[str, Sequence[int]]:
    return {name: list(values.shape) for name, values in tensors.items()}


def _same_values(folder: Path, wanted: Mapping[str, Any], found: Mapping[str, Any]) -> None:
    for name, value in wanted.items():
        if found.get(name) != value:
            raise UsageError(
                f"the checkpoint {folder.name} doesn't fit: {name} is {found.get(name)}, "
                f"not {value}",
                _NO_MODEL_HINT,
            )


def _copy_tokenizer(tokenizer: Path, draft: Path) -> None:
    for path in sorted(tokenizer.iterdir()):
        if path.is_file():
            shutil.copyfile(path, draft / path.name)


def _json_text(fields: Mapping[str, Any]) -> str:
    return json.dumps(fields, indent=2, sort_keys=True) + "\n"


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
