"""Writes one GGUF file from a model folder.

Owns the order in which fields and tensors are written, with the format's own library. Doesn't know
architectures or tokenizers.
"""

import json
import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from jupiterd.cycle.data.special_tokens import SAYING_FILES
from jupiterd.cycle.data.tokenizer_identity import TEMPLATE_FILE
from jupiterd.cycle.training.model_traits import is_tied
from jupiterd.errors import BrokenModelError, MissingExtraError, UsageError
from jupiterd.gguf_file.architecture import Architecture, architecture_of
from jupiterd.gguf_file.tensors import StoredTensor, stored_tensors
from jupiterd.gguf_file.vocabulary import Vocabulary, vocabulary_of

MOSTLY_F16: Final = 1
QUANTIZATION_VERSION: Final = 2
SLOWED: Final = "rope_freqs.weight"
"""llama.cpp's name for the factors of rotary frequencies."""


def write_gguf(folder: Path, config: Mapping[str, Any], to: Path, name: str) -> None:
    """Write the GGUF file: matrices in 16 bits, other tensors in 32.

    Args:
        folder: the model's folder.
        config: the content of its config.json.
        to: the file to write.
        name: the model's name in the file.

    Raises:
        BrokenModelError: a file of the folder can't be read.
        MissingExtraError: the format's library isn't installed.
        UsageError: the architecture or the tokenizer isn't known here.
    """
    architecture = architecture_of(config)
    template = folder / TEMPLATE_FILE
    vocabulary = vocabulary_of(
        _said(folder),
        template.read_text(encoding="utf-8") if template.is_file() else "",
        int(config["vocab_size"]),
    )
    try:
        import gguf
    except ModuleNotFoundError as error:
        raise MissingExtraError(f"GGUF needs {error.name}", "pip install gguf") from error
    tensors = _named(gguf, architecture, list(stored_tensors(folder, is_tied=is_tied(config))))
    writer: Any = gguf.GGUFWriter(str(to), architecture.name)
    _write_fields(writer, architecture, vocabulary, name)
    _write_tensors(writer, architecture, tensors)


def _said(folder: Path) -> dict[str, dict[str, Any]]:
    names = ("tokenizer.json", *SAYING_FILES)
    try:
        return {
            name: json.loads((folder / name).read_text(encoding="utf-8"))
            for name in names
            if (folder / name).is_file() or name == "tokenizer.json"
        }
    except (OSError, ValueError) as error:
        raise BrokenModelError(f"the tokenizer can't be read: {error}") from error


def _named(
    gguf: Any,  # noqa: ANN401 - the library
    architecture: Architecture,
    tensors: list[StoredTensor],
) -> dict[str, StoredTensor]:
    """Return llama.cpp's name -> tensor; raise UsageError if a tensor has no such name."""
    number = {text: kind for kind, text in gguf.MODEL_ARCH_NAMES.items()}[architecture.name]
    names = gguf.get_tensor_name_map(number, architecture.blocks)
    found: dict[str, StoredTensor] = {}
    for tensor in tensors:
        name = names.get_name(tensor.name, try_suffixes=(".weight", ".bias"))
        if name is None:
            raise UsageError(f"no {architecture.name} model with {tensor.name} is written here")
        found[name] = tensor
    return found


def _write_fields(
    writer: Any,  # noqa: ANN401 - the library's
    architecture: Architecture,
    vocabulary: Vocabulary,
    name: str,
) -> None:
    writer.add_name(name)
    writer.add_file_type(MOSTLY_F16)
    writer.add_quantization_version(QUANTIZATION_VERSION)
    add = {int: writer.add_uint32, float: writer.add_float32, str: writer.add_string}
    for key, value in architecture.fields.items():
        add[type(value)](f"{architecture.name}.{key}", value)
    writer.add_tokenizer_model(vocabulary.model)
    writer.add_tokenizer_pre(vocabulary.split)
    writer.add_token_list([text.encode("utf-8", "surrogatepass") for text in vocabulary.tokens])
    writer.add_token_types(list(map(int, vocabulary.kinds)))
    if vocabulary.scores:
        writer.add_token_scores(list(vocabulary.scores))
        writer.add_bool("tokenizer.ggml.add_space_prefix", vocabulary.begins_with_space)
    else:
        writer.add_token_merges(list(vocabulary.merges))
    for role, token in vocabulary.ids.items():
        getattr(writer, f"add_{role}_token_id")(token)
    writer.add_add_bos_token(vocabulary.adds_bos)
    if vocabulary.template:
        writer.add_chat_template(vocabulary.template)


def _write_tensors(
    writer: Any,  # noqa: ANN401 - the library's
    architecture: Architecture,
    tensors: Mapping[str, StoredTensor],
) -> None:
    import numpy as np

    for name, tensor in tensors.items():
        kind, shape = tensor.written_as(name), tensor.shape_in(architecture)
        writer.add_tensor_info(name, shape, kind, math.prod(shape) * kind.itemsize)
    slowed = np.array(architecture.slowed, dtype=np.float32)
    if slowed.size:
        writer.add_tensor_info(SLOWED, slowed.shape, slowed.dtype, slowed.nbytes)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_ti_data_to_file()
    for name, tensor in tensors.items():
        writer.write_tensor_data(tensor.read(architecture, name))
    if slowed.size:
        writer.write_tensor_data(slowed)
    writer.close()
