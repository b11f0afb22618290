"""Checks of a model folder before training, made before anything is copied or started.

Owns those checks: which files there are, what the headers of the weights say, whether an output
layer contradicts the configuration, and whether the tokenizer belongs to the same model. Needs no
machine-learning library. `cycle.training.architectures` decides whether an architecture can be
trained.
"""

import json
from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jupiterd.adapter_folder import no_model
from jupiterd.cycle.base.model_files import FAST_TOKENIZER, INDEX, WHOLE, weight_files
from jupiterd.cycle.data.special_tokens import SAYING_FILES
from jupiterd.cycle.data.tokenizer_fit import tokenizer_misfit
from jupiterd.cycle.training.adapters.given_quantized import WHOLE as OF_QUANTIZED
from jupiterd.cycle.training.adapters.given_quantized import given_bits
from jupiterd.cycle.training.model_traits import is_tied
from jupiterd.cycle.training.tensor_shapes import misfit
from jupiterd.errors import BrokenModelError, UsageError
from jupiterd.weight_files import check_file
from jupiterd.weights_header import LENGTH_BYTES, header

OTHER_FORMS = ("pytorch_model*.bin", "*.pth", "*.pt", "*.ckpt", "*.h5", "*.msgpack", "*.gguf")
"""Names of weights in forms that aren't read; the first four are pickles, which can run code."""

CONVERT = (
    'convert them: python -c "from transformers import AutoModelForCausalLM as M; '
    "M.from_pretrained('DIR').save_pretrained('DIR')\""
)
_FETCH = "fetch the model again: a file of it is missing or cut off"
_OF_ANOTHER = "one of them is of another model: fetch both again"

TRAINED = frozenset({"F64", "F32", "F16", "BF16"})
OF_MASKS = frozenset({"BOOL", "U8", "I64"})
"""dtypes of masks and positions in old files, which nothing reads."""

PACKED, _WHOLE_KIND = "U32", "BF16"
"""dtypes of what mlx-lm packs, and of what it stands for."""

_OUTPUT = ("lm_head.weight", "embed_out.weight")
_EMBEDDING = ("embed_tokens.weight", "wte.weight", "embed_in.weight", "word_embeddings.weight")
_WIDTHS = ("word_embed_proj_dim", "hidden_size", "n_embd", "d_model")
"""Configuration keys for the width of the embedding; OPT's comes first, as OPT has two of them."""
_CHUNK_BYTES = 1 << 20


@dataclass(frozen=True)
class _Tensor:
    """The position, dtype and shape of one tensor in a file."""

    file: Path
    begin: int
    end: int
    """`begin` and `end` are bytes from the start of the file."""
    kind: str
    shape: tuple[int, ...]


def check_folder(folder: Path, said: Mapping[str, Any]) -> bool:
    """Return whether a folder holds weights as safetensors, after checking them.

    said: the content of its config.json

    Raises:
        BrokenModelError: a file is missing or cut off, or can't be read.
        UsageError: it holds an adapter, weights in another form or dtype, or parts of two models.
    """
    check_that_it_is_no_adapter(folder)
    names = [path.name for path in folder.iterdir()]
    if not any(name.endswith(".safetensors") for name in names):
        _refuse_other_forms(folder)
        return False
    _check_that_none_is_missing(folder)
    files = [folder / name for name in weight_files(names, index_of(folder))]
    if not files:
        raise unnamed_weights(str(folder), names)
    for path in files:
        check_file(path)
    tensors = _as_whole(dict(_tensors(files)), said)
    for name, tensor in tensors.items():
        _check_kind(folder, name, tensor.kind)
    _check_embedding(folder, tensors, said)
    if why := misfit(said, {name: tensor.shape for name, tensor in tensors.items()}):
        raise UsageError(f"{folder}: {why}", _OF_ANOTHER)
    if is_tied(said):
        _check_output(folder, tensors)
    _check_tokenizer(folder, said)
    return True


def unnamed_weights(model: str, names: Collection[str]) -> UsageError:
    """Return the error for weights with file names that no loader looks for."""
    first = min(name for name in names if name.endswith(".safetensors"))
    return UsageError(
        f"{model} holds {first}, and neither {WHOLE} nor {INDEX}, which every loader looks for",
        f"call it {WHOLE}, where it is all of the model; its shards need their index",
    )


def index_of(folder: Path) -> str:
    """Return the text of the weights' index; empty if the folder has none."""
    index = folder / INDEX
    return index.read_text(encoding="utf-8") if index.is_file() else ""


def check_that_it_is_no_adapter(folder: Path) -> None:
    """Raise UsageError if a folder holds a LoRA adapter instead of a model."""
    why, hint = no_model(folder)
    if why:
        raise UsageError(why, hint)


def _refuse_other_forms(folder: Path) -> None:
    """Raise UsageError for weights in another form: training would start from random ones."""
    others = sorted(path.name for form in OTHER_FORMS for path in folder.glob(form))
    if others:
        raise UsageError(
            f"{folder} holds weights as {others[0]}, and only safetensors are read", CONVERT
        )


def _check_that_none_is_missing(folder: Path) -> None:
    if not (folder / INDEX).is_file():
        return
    try:
        said: Any = json.loads((folder / INDEX).read_text(encoding="utf-8"))["weight_map"]
        named = sorted({Path(str(file)).name for file in said.values()})
    except (OSError, ValueError, TypeError, KeyError, AttributeError) as error:
        raise BrokenModelError(f"{INDEX} of {folder} can't be read", _FETCH) from error
    if missing := [name for name in named if not (folder / name).is_file()]:
        more = f" and {len(missing) - 1} more" if missing[1:] else ""
        raise BrokenModelError(f"{folder} lacks {missing[0]}{more}", _FETCH)


def _tensors(files: list[Path]) -> Iterator[tuple[str, _Tensor]]:
    for file in files:
        with file.open("rb") as opened:
            start = LENGTH_BYTES + int.from_bytes(opened.read(LENGTH_BYTES), "little")
        for name, said in header(file).items():
            begin, end = said["data_offsets"]
            kind, shape = str(said["dtype"]), tuple(said["shape"])
            yield name, _Tensor(file, start + begin, start + end, kind, shape)


def _as_whole(tensors: Mapping[str, _Tensor], said: Mapping[str, Any]) -> dict[str, _Tensor]:
    """Return tensors as those that they stand for, where the model is quantized for MLX."""
    if (bits := given_bits(said)) is None:
        return dict(tensors)
    whole = bits.whole_shapes({name: tensor.shape for name, tensor in tensors.items()})
    return {
        name: replace(tensors[name], shape=shape, kind=_kind_of(tensors[name]))
        for name, shape in whole.items()
    }


def _kind_of(tensor: _Tensor) -> str:
    return _WHOLE_KIND if tensor.kind == PACKED else tensor.kind


def _check_kind(folder: Path, name: str, kind: str) -> None:
    is_mask = kind in OF_MASKS and not name.endswith("weight")
    if kind not in TRAINED and not is_mask:
        raise UsageError(
            f"{folder} holds weights of dtype {kind} ({name}), and such ones can't be trained",
            OF_QUANTIZED,
        )


def _check_embedding(folder: Path, tensors: Mapping[str, _Tensor], said: Mapping[str, Any]) -> None:
    """Raise UsageError if the embedding's shape contradicts the configuration."""
    name = _ending(tensors, _EMBEDDING)
    width = next((said[key] for key in _WIDTHS if isinstance(said.get(key), int)), None)
    entries = said.get("vocab_size")
    if name is None or not isinstance(entries, int) or len(tensors[name].shape) != 2:
        return
    wanted = (entries, tensors[name].shape[1] if width is None else width)
    if tensors[name].shape != wanted:
        raise UsageError(
            f"{folder}: its weights have {name} of {_times(tensors[name].shape)}, and its "
            f"config.json says {_times(wanted)}",
            _OF_ANOTHER,
        )


def _check_tokenizer(folder: Path, said: Mapping[str, Any]) -> None:
    """Raise UsageError if the tokenizer is another model's; older forms are checked later."""
    if not (folder / FAST_TOKENIZER).is_file():
        return
    found = [name for name in (FAST_TOKENIZER, *SAYING_FILES) if (folder / name).is_file()]
    entries = said.get("vocab_size")
    try:
        files = {name: (folder / name).read_text(encoding="utf-8") for name in found}
        why = tokenizer_misfit(files, entries if isinstance(entries, int) else None)
    except (OSError, ValueError, TypeError, KeyError, IndexError, AttributeError) as error:
        raise BrokenModelError(f"the tokenizer of {folder} can't be read", _FETCH) from error
    if why:
        raise UsageError(
            f"{folder}: {why}",
            "put the files of the model's own tokenizer next to its weights; eos_token of its "
            "tokenizer_config.json names what ends a text",
        )


def _times(shape: tuple[int, ...]) -> str:
    return " x ".join(f"{size:,}" for size in shape)


def _check_output(folder: Path, tensors: Mapping[str, _Tensor]) -> None:
    """Raise UsageError if there is a separate output layer but the configuration ties it."""
    output = _ending(tensors, _OUTPUT)
    embedding = _ending(tensors, _EMBEDDING)
    if output is None or embedding is None or _are_same(tensors[output], tensors[embedding]):
        return
    raise UsageError(
        f"{folder} holds an output layer of its own ({output}) despite tie_word_embeddings: true",
        "one of them is wrong: set tie_word_embeddings to false in its config.json, or take "
        f"{output} out of its weights",
    )


def _ending(tensors: Mapping[str, _Tensor], endings: tuple[str, ...]) -> str | None:
    return next((name for name in sorted(tensors) if name.endswith(endings)), None)


def _are_same(one: _Tensor, other: _Tensor) -> bool:
    if (one.kind, one.shape) != (other.kind, other.shape):
        return False
    with one.file.open("rb") as first, other.file.open("rb") as second:
        first.seek(one.begin)
        second.seek(other.begin)
        left = one.end - one.begin
        while left > 0:
            size = min(left, _CHUNK_BYTES)
            if first.read(size) != second.read(size):
                return False
            left -= size
    return True
