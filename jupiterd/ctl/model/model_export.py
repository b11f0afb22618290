"""Writes a model into a folder that other programs load.

Owns the list of files, and makes the folder appear complete or not at all. Doesn't know what the
card says (`model_card`), or how GGUF is written (`gguf`).

| format | files |
|---|---|
| hf | config.json, generation_config.json, model.safetensors, the tokenizer's |
| mlx | the same files, unchanged: mlx-lm reads them too |
| gguf | model.gguf: weights, tokenizer, chat template |
| hf, of an adapter | adapter_config.json, adapter_model.safetensors, the tokenizer's: peft's |
| mlx, of an adapter | adapter_config.json, adapters.safetensors: mlx-lm's `--adapter-path` |

Each folder also has README.md (the card) and jupiter.json.
"""

import json
import os
import shutil
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from jupiterd.adapter_folder import ADAPTER_CONFIG, BASE_KEY
from jupiterd.ctl.model.adapter_export import FOR_MLX, check_form, merged, run
from jupiterd.ctl.model.gguf import GGUF_FILE, make_gguf
from jupiterd.ctl.model.model_card import CardFacts, card
from jupiterd.ctl.model.special_tokens import exported_marks
from jupiterd.ctl.sources.adapter_base import NAME_OF_MLX, RECORD, RECORD_FILE, RecordedBase
from jupiterd.ctl.sources.exported_base import adapter_facts, exported_base
from jupiterd.errors import BrokenModelError, ConflictError, DiskFullError, UsageError
from jupiterd.formats import size
from jupiterd.store.disk import NO_ROOM, is_no_room
from jupiterd.weights_header import read_weights

CARD_FILE = "README.md"
CONFIG_FILE = "config.json"
GENERATION_FILE = "generation_config.json"

_READERS = {"hf": "transformers", "mlx": "mlx-lm", "gguf": "llama.cpp"}


@dataclass(frozen=True)
class ExportedModel:
    """The exported folder."""

    folder: Path
    form: str
    parameters: int
    sizes: Mapping[str, int]
    """File name -> size in bytes."""

    @property
    def reader(self) -> str:
        """Return the name of the program or library that loads the folder."""
        return _READERS[self.form]

    def file_lines(self) -> list[str]:
        """Return a line for each file, with its size."""
        return [f"  {name}  {size(count)}" for name, count in sorted(self.sizes.items())]

    def to_plain(self) -> dict[str, Any]:
        """Return the fields of the JSON document."""
        return {
            "folder": str(self.folder),
            "parameters": self.parameters,
            "files": dict(sorted(self.sizes.items())),
        }


def write_model(
    model: Mapping[str, Any],
    form: str,
    to: Path,
    converter: Path | None = None,
    add: Callable[[Path, Mapping[str, Any]], None] | None = None,
    *,
    merges: bool = False,
) -> ExportedModel:
    """Write the folder; return a description of it.

    Args:
        model: the daemon's document of the model, with `files_at`.
        form: hf, mlx or gguf.
        to: the folder, which doesn't exist yet or is empty.
        converter: llama.cpp's converter for gguf; None: use Jupiter's own code if it can.
        add: gets the folder and the model, and adds files before the folder appears.
        merges: an adapter becomes one model with its base; otherwise it is written alone.

    Raises:
        ConflictError: the folder exists and isn't empty.
        UsageError: the folder can't be written.
        BrokenModelError: the stored files aren't a model.
        DiskFullError: the disk is full.
        MissingExtraError: gguf needs a converter or a library that isn't installed.
        WorkFailedError: the converter failed.
    """
    _check_free(to)
    stored = Path(model["files_at"])
    check_form(stored, form, merges=merges)
    if merges:
        with merged(stored, to.absolute()) as folder:
            return write_model({**model, "files_at": str(folder)}, form, to, converter, add)
    draft = to.with_name(f".{to.name}.{os.getpid()}")
    try:
        shutil.rmtree(draft, ignore_errors=True)
        draft.mkdir(parents=True)
        written = _fill(draft, model, form, converter, to)
        if add is not None:
            add(draft, model)
            written = replace(written, sizes=_sizes(draft))
        with suppress(FileNotFoundError):
            to.rmdir()  # it may exist, but is empty
        draft.rename(to)
    except OSError as error:
        if is_no_room(error):
            raise DiskFullError(NO_ROOM) from error
        raise UsageError(f"{to} can't be written: {error.strerror or error}") from error
    finally:
        shutil.rmtree(draft, ignore_errors=True)
    return written


def _check_free(to: Path) -> None:
    is_free = not to.exists() or (to.is_dir() and not any(to.iterdir()))
    if not is_free:
        raise ConflictError(f"{to} is there already", "choose another folder, or remove it")


def _fill(
    draft: Path, model: Mapping[str, Any], form: str, converter: Path | None, to: Path
) -> ExportedModel:
    stored = Path(model["files_at"])
    weights = read_weights(stored)
    config = _config(stored)
    gguf_maker, beside = "", exported_base(model, stored, to.name)
    if form == "gguf":
        gguf_maker = _convert(converter, stored, config, draft, str(model["name"]))
    else:
        _copy(stored, config, draft, form, beside)
    record = {name: value for name, value in model.items() if name not in _OF_THIS_MACHINE}
    said = {} if beside is None else {RECORD: beside.to_plain()}
    _write_json(draft / RECORD_FILE, record | said)
    sizes = _sizes(draft)
    marks, adapter = exported_marks(stored), adapter_facts(model, stored, beside)
    facts = CardFacts(model, form, config, weights, sizes, to.name, marks, gguf_maker, adapter)
    (draft / CARD_FILE).write_text(card(facts), encoding="utf-8")
    return ExportedModel(to, form, weights.parameters, _sizes(draft))


_OF_THIS_MACHINE = frozenset({"files_at", "folder", "held_here"})


def _convert(
    converter: Path | None, stored: Path, config: Mapping[str, Any], draft: Path, name: str
) -> str:
    """Write the GGUF file; return the name of the program that wrote it."""
    source = draft / "hf"
    source.mkdir()
    _copy(stored, config, source)
    gguf_maker = make_gguf(converter, source, config, draft / GGUF_FILE, name)
    shutil.rmtree(source)
    return gguf_maker


def _copy(
    stored: Path,
    config: Mapping[str, Any],
    folder: Path,
    form: str = "hf",
    base: RecordedBase | None = None,
) -> None:
    """Copy the model's files, without the subfolder with training state; an adapter's alone."""
    if base is not None:
        _copy_adapter(stored, folder, form, base.name)
        return
    for path in sorted(stored.iterdir()):
        if path.is_file() and path.name not in {CONFIG_FILE, CARD_FILE, RECORD_FILE}:
            shutil.copyfile(path, folder / path.name)
    _write_json(folder / CONFIG_FILE, config)


def _copy_adapter(stored: Path, folder: Path, form: str, base: str) -> None:
    """Copy an adapter's files; base: what people call the model that it stands beside."""
    if form == "mlx":
        run(FOR_MLX, stored, folder / "adapter")
        for path in (folder / "adapter").iterdir():
            path.rename(folder / path.name)
        (folder / "adapter").rmdir()
        _name_base(folder, NAME_OF_MLX, base)
        return
    for path in sorted(stored.iterdir()):
        if path.is_file() and path.name not in {CONFIG_FILE, GENERATION_FILE}:
            shutil.copyfile(path, folder / path.name)
    _name_base(folder, BASE_KEY, base)


def _name_base(folder: Path, key: str, base: str) -> None:
    said = json.loads((folder / ADAPTER_CONFIG).read_text(encoding="utf-8"))
    _write_json(folder / ADAPTER_CONFIG, said | ({key: base} if base else {}))


def _config(stored: Path) -> dict[str, Any]:
    """Return config.json with the rope base under the keys of both libraries.

    transformers 5 reads `rope_parameters`; mlx-lm's Llama, Mistral and Qwen2 read only
    `rope_theta`, and use 10,000 if it is missing.
    """
    try:
        config = json.loads((stored / CONFIG_FILE).read_text(encoding="utf-8"))
        nested: dict[str, Any] = dict(config.get("rope_parameters") or {})
    except (OSError, ValueError, TypeError, AttributeError) as error:
        raise BrokenModelError(f"{stored.name[:8]}/{CONFIG_FILE} can't be read") from error
    if "rope_theta" in nested:
        config.setdefault("rope_theta", nested["rope_theta"])
        if nested.get("rope_type", "default") != "default":
            scaling = {name: value for name, value in nested.items() if name != "rope_theta"}
            config.setdefault("rope_scaling", scaling)
    elif "rope_theta" in config:
        scaling = dict(config.get("rope_scaling") or {})
        base = {"rope_type": "default", "rope_theta": config["rope_theta"]}
        config["rope_parameters"] = base | scaling
    return config


def _write_json(path: Path, fields: Mapping[str, Any]) -> None:
    text = json.dumps(fields, indent=2, sort_keys=True, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8", errors="replace")


def _sizes(folder: Path) -> dict[str, int]:
    files = [path for path in folder.rglob("*") if path.is_file()]
    return {str(path.relative_to(folder)): path.stat().st_size for path in files}
