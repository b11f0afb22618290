"""Weights in the files of a model folder, and under the names that training has for them.

Owns that way, forth and back. Training has transformers' own names of parameters; some files call
them otherwise (GPT-NeoX's `embed_out`), or hold them in other pieces (one file entry for each
expert). What isn't a matter of names is left to `from_pretrained`.
"""

import tempfile
from collections.abc import Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn
from transformers import AutoModelForCausalLM, PreTrainedConfig
from transformers.utils import logging

from jupiterd.cycle.training.adapters.given_quantized import given_bits
from jupiterd.errors import CorruptArtifactError, UsageError
from jupiterd.workers.packed_tensors import Packed, PackedTensors, packed_of
from jupiterd.workers.tensor_file import (
    WEIGHTS_FILE,
    StoredTensors,
    load_tensors,
    stretch_of,
)
from jupiterd.workers.tokens.marks import read_object
from jupiterd.workers.train.architectures.skeleton import (
    is_converted,
    leaves_out_prefix,
    skeleton,
)
from jupiterd.workers.training_engine import Tensors

Shapes = Mapping[str, Sequence[int]]

_HINT = "give it a checkpoint of the same size, or start from none"


def as_files_have_them(config: PreTrainedConfig, weights: Tensors) -> Tensors:
    """Return weights as the files of such a model hold them: transformers and mlx-lm read these."""
    if leaves_out_prefix(config):
        prefix = skeleton(config).prefix
        return {name.removeprefix(prefix): values for name, values in weights.items()}
    if not is_converted(config):
        return weights
    given = {name: torch.from_numpy(np.asarray(values)) for name, values in weights.items()}
    return {name: t.numpy() for name, t in skeleton(config).in_files(given).items()}


def names_in_files(config: PreTrainedConfig, names: Iterable[str]) -> Mapping[str, str]:
    """Return our name -> the files' for each weight.

    Raises:
        UsageError: the files hold weights in other pieces.
    """
    if leaves_out_prefix(config):
        prefix = skeleton(config).prefix
        return {name: name.removeprefix(prefix) for name in names}
    written = skeleton(config).names_in_files() if is_converted(config) else {}
    return {name: written.get(name, name) for name in names}


def read_folder(folder: Path, config: PreTrainedConfig, shapes: Shapes) -> Tensors:
    """Return a folder's weights under transformers' names, in fp32.

    Raises:
        CorruptArtifactError: a file isn't there, or not whole.
        UsageError: they are other weights than the configuration says.
    """
    if not _is_in_pieces(config):
        stored = _stored(folder)
        there = {name: stored.shape(name) for name in stored}
        names = _names_in_files(config, there, shapes)
        if names is not None:
            return _Renamed(stored, names)
    return _as_transformers_reads(folder, config, shapes)


def read_file(file: Path, config: PreTrainedConfig, shapes: Shapes) -> Tensors:
    """Return the weights in one file, whichever names it has for them; raises as `read_folder`."""
    found = load_tensors(file)
    names = _names_in_files(config, {n: values.shape for n, values in found.items()}, shapes)
    if names is not None:
        return {ours: found[theirs] for ours, theirs in names.items()}
    with tempfile.TemporaryDirectory() as place:
        folder = Path(place)
        (folder / WEIGHTS_FILE).symlink_to(file.resolve())
        return _as_transformers_reads(folder, config, shapes)


def _stored(folder: Path) -> StoredTensors | PackedTensors:
    """Return a folder's tensors; of one that mlx-lm has quantized, the numbers that they mean."""
    stored, config = StoredTensors(folder), folder / "config.json"
    kept = given_bits(read_object(config)) if config.is_file() else None
    return stored if kept is None else PackedTensors(stored, kept)


class _Renamed(Mapping[str, NDArray[np.float32]]):
    """Tensors under our names."""

    def __init__(self, tensors: Tensors, names: Mapping[str, str]) -> None:
        self._tensors, self._names = tensors, names

    def __getitem__(self, name: str) -> NDArray[np.float32]:
        return self._tensors[self._names[name]]

    def stretch(self, name: str, start: int, end: int) -> NDArray[np.float32]:
        """Return a stretch of a flattened tensor: float32[numbers]."""
        return stretch_of(self._tensors, self._names[name], start, end)

    def packed(self, name: str) -> Packed | None:
        """Return a matrix as the folder packs it; None: it doesn't."""
        return packed_of(self._tensors, self._names[name])

    def __iter__(self) -> Iterator[str]:
        return iter(self._names)

    def __len__(self) -> int:
        return len(self._names)


def _names_in_files(
    config: PreTrainedConfig, there: Shapes, shapes: Shapes
) -> dict[str, str] | None:
    """Return our name -> the files' for each tensor; None where it takes more than other names."""
    in_files = {}
    if is_converted(config) and not _is_in_pieces(config):
        in_files = skeleton(config).names_in_files()
    named: dict[str, str] = {}
    for name, shape in shapes.items():
        # Some files leave out the first part of each name.
        known = (name, in_files.get(name, name), name.partition(".")[2])
        theirs = next((each for each in known if each in there), None)
        if theirs is None or tuple(there[theirs]) != tuple(shape):
            return None
        named[name] = theirs
    return named


def _is_in_pieces(config: PreTrainedConfig) -> bool:
    if not is_converted(config):
        return False
    try:
        skeleton(config).names_in_files()
    except UsageError:
        return True
    return False


def _as_transformers_reads(folder: Path, config: PreTrainedConfig, shapes: Shapes) -> Tensors:
    """Load the model by the library whose format it is."""
    read: Any = AutoModelForCausalLM.from_pretrained
    was_shown = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        model, said = read(
            folder,
            config=config,
            dtype=torch.float32,
            local_files_only=True,
            use_safetensors=True,
            trust_remote_code=False,
            ignore_mismatched_sizes=True,
            output_loading_info=True,
        )
    except (OSError, ValueError, KeyError, RuntimeError) as error:
        reason = (str(error).splitlines() or [type(error).__name__])[0]
        raise CorruptArtifactError(f"{folder.name} can't be read: {reason}") from error
    finally:
        if was_shown:
            logging.enable_progress_bar()
    _check_that_all_was_there(folder.name, said)
    parameters = dict(cast("nn.Module", model).named_parameters())
    found = {name: p.detach().float().numpy() for name, p in parameters.items()}
    for name, shape in shapes.items():
        if name not in found or found[name].shape != tuple(shape):
            held = list(found[name].shape) if name in found else None
            raise UsageError(
                f"the checkpoint {folder.name} doesn't fit: {name} is {held}, not {list(shape)}",
                _HINT,
            )
    return {name: found[name] for name in shapes}


def _check_that_all_was_there(name: str, said: Mapping[str, Any]) -> None:
    """Refuse what transformers has drawn at random, since the files don't hold it."""
    if missing := sorted(said["missing_keys"]):
        raise UsageError(f"the checkpoint {name} doesn't fit: it lacks {missing[0]}", _HINT)
    if others := sorted(said["mismatched_keys"]):
        key, held, wanted = others[0]
        raise UsageError(
            f"the checkpoint {name} doesn't fit: {key} is {list(held)}, not {list(wanted)}", _HINT
        )
