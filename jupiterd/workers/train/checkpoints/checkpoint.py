"""A checkpoint: an ordinary Hugging Face model folder, and beside it what training needs to go on.

Owns the folder's form, writing it all or not at all, and reading it with checks. How weights lie in
it is `checkpoint_format`'s. Doesn't know when a checkpoint is due, nor engines: what one wrote,
another reads. Weights may also come from any Hugging Face folder of the same architecture.

    the weights and what describes them, the tokenizer's files
    training_state/state.json            step, tokens, cursor, round, hashes, generator state
    training_state/optimizer.safetensors what the optimizer keeps, by kind and parameter's name
    training_state/outer.safetensors     of an island: what the outer loop keeps, in the same way
    training_state/best.safetensors      the best weights so far, where they aren't those above
"""

import math
import os
import shutil
from collections.abc import Generator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from transformers import PreTrainedConfig

from jupiterd.adapter_folder import ADAPTER_FILE
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.adapters.adapter_tensors import AdapterTensors
from jupiterd.workers.memory_room import trim_heaps
from jupiterd.workers.tensor_file import WEIGHTS_FILE, StoredTensors, save_tensors
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.checkpoints.checkpoint_format import (
    CheckpointFormat,
    ModelFormat,
    format_of,
    json_text,
    read_json,
)
from jupiterd.workers.training_engine import Tensors, TrainingEngine, moments_of

STATE_DIR = "training_state"
STATE_FILE = "state.json"
OPTIMIZER_FILE = "optimizer.safetensors"
OUTER_FILE = "outer.safetensors"
BEST_FILE = "best.safetensors"

_OTHER_BASE = "begin with the base that the adapter was trained beside"

_RARE = frozenset({"outer", "ramp", "on_trunk", "steps_before"})
"""Fields of the state that stand there only where they say something."""


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

    form: CheckpointFormat
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
    return TrainingSnapshot(format_of(engine), engine.weights(), engine.moments(), state, outer)


def best_of(folder: Path, *, is_own: bool) -> Path | None:
    """Return the file of the best weights at a checkpoint, its own or others; None: not there."""
    own = [folder / name for name in (WEIGHTS_FILE, ADAPTER_FILE)]
    places = own if is_own else [folder / STATE_DIR / BEST_FILE]
    return next((place for place in places if place.is_file()), None)


def write(
    taken: TrainingSnapshot, folder: Path, tokenizer: Path, *, is_synced: bool = True
) -> None:
    """Write the folder; after a power cut it is there complete, or not at all, if it is synced.

    Where it fails, nothing is left of it: a full disk needs the room.
    """
    with whole_or_nothing(folder, is_synced=is_synced) as draft:
        _fill(draft, taken, tokenizer)


@contextmanager
def whole_or_nothing(folder: Path, *, is_synced: bool = True) -> Generator[Path]:
    """Yield where to make a folder; it gets its name at the end, where nothing was raised."""
    draft = folder.with_name(folder.name + ".tmp")
    shutil.rmtree(draft, ignore_errors=True)
    try:
        yield draft
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
    write_weights(draft, taken.form, taken.weights, tokenizer)
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
    write_weights(folder, ModelFormat(config), weights, tokenizer)


def write_weights(folder: Path, form: CheckpointFormat, weights: Tensors, tokenizer: Path) -> None:
    """Write a folder with weights in its format, and the tokenizer beside them."""
    write_texts(folder, form, tokenizer)
    save_tensors(form.in_files(weights), folder / form.file)


def write_texts(folder: Path, form: CheckpointFormat, tokenizer: Path) -> None:
    """Make a folder with all that stands beside weights."""
    folder.mkdir(parents=True)
    _copy_tokenizer(tokenizer, folder)
    for name, text in form.texts(tokenizer).items():
        (folder / name).write_text(text, encoding="utf-8")


def state_text(state: TrainingState) -> str:
    """Return the text of the file that says how far training was."""
    return json_text(state.to_plain())


def load_base(folder: Path, engine: TrainingEngine) -> None:
    """Fill the frozen model that an engine trains an adapter beside; raises as `load_weights`."""
    form = ModelFormat(engine.config)
    form.check(folder)
    engine.load_base(form.read_folder(folder, skeleton(engine.config).shapes))


def load_adapter(folder: Path, engine: TrainingEngine) -> None:
    """Fill the adapter that an engine trains with one that somebody else may have made.

    Raises:
        CorruptArtifactError: the folder is incomplete, or can't be read.
        UsageError: it holds another adapter than is trained, or one of another base.
    """
    found = AdapterTensors(folder)
    shapes = {name: values.shape for name, values in found.tensors.items()}
    wanted = dict(engine.shapes)
    if odd := {*shapes.items()} ^ {*wanted.items()}:
        name = min(name for name, _ in odd)
        held, asked = (_shown(each.get(name)) for each in (shapes, wanted))
        reason = f"{name} is {held} there, and {asked} beside this base"
        raise UsageError(f"the adapter is for another base: {reason}", _OTHER_BASE)
    if engine.adapter is not None and not math.isclose(found.scale, engine.adapter.scale):
        reason = f"the adapter counts {found.scale:g} times, and {engine.adapter.scale:g} here"
        raise UsageError(reason, "begin with its own alpha")
    engine.load_weights(found.tensors)


def _shown(shape: Sequence[int] | None) -> str:
    return "nothing" if shape is None else str(list(shape))


def load_weights(folder: Path, engine: TrainingEngine) -> None:
    """Fill what the engine trains with a checkpoint's weights.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
        UsageError: it holds another kind or size of model, or another adapter.
    """
    form = format_of(engine)
    form.check(folder)
    engine.load_weights(form.read_folder(folder, engine.shapes))


def load_state(folder: Path) -> TrainingState:
    """Read how far the checkpoint's training was.

    Raises:
        CorruptArtifactError: the folder is incomplete or can't be read.
    """
    try:
        return TrainingState(**read_json(folder / STATE_DIR / STATE_FILE))
    except TypeError as error:
        raise CorruptArtifactError(f"the state of checkpoint {folder.name} is not ours") from error


def load_moments(folder: Path, engine: TrainingEngine, step: int) -> None:
    """Give the optimizer its moments back, as they were after `step` steps.

    Raises:
        CorruptArtifactError: moments are missing or have other shapes than the weights.
    """
    found = StoredTensors(folder / STATE_DIR / OPTIMIZER_FILE)
    for name, shape in engine.shapes.items():
        kinds = moments_of(name, len(shape), engine.options)
        moments = [f"{kind}.{name}" for kind in kinds]
        if any(each not in found or found.shape(each) != shape for each in moments):
            raise CorruptArtifactError(f"checkpoint {folder.name} has no moments for {name}")
    engine.load_moments(found, step)


def _copy_tokenizer(tokenizer: Path, draft: Path) -> None:
    for path in sorted(tokenizer.iterdir()):
        if path.is_file():
            shutil.copyfile(path, draft / path.name)


def _sync(path: Path) -> None:
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
