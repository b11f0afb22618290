"""The models that people name: presets in `config/models`, or a Hugging Face configuration.

Owns finding and reading them. Doesn't know what a preset says (`cycle.training.plan`).
"""

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from jupiterd.cycle.data.special_tokens import without_token_ids
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.locations import config_folder

if TYPE_CHECKING:
    from jupiterd.cycle.training.plan import ModelShape

MAX_CONFIG_BYTES = 64 << 10
"""A config.json is a page; it travels in an entry of the ledger."""

MAX_NAME_CHARACTERS = 32
HINT = "give the Hugging Face folder of a causal language model"


def model_text(name: str) -> str:
    """Return the text of a preset that can be read.

    Raises:
        NotFoundError: there is no such model.
        InvalidSettingError: it says something that it can't.
    """
    from jupiterd.cycle.training.plan import parse_model  # its models take 8 MB, idle or not

    if name not in _names():
        raise NotFoundError(
            f"there is no size {name}",
            f"sizes: {', '.join(_names())}; or a folder with a config.json, or ORG/NAME of the hub",
        )
    text = (_folder() / f"{name}.yaml").read_text()
    parse_model(text)
    return text


def presets() -> "list[ModelShape]":
    """Return every preset."""
    from jupiterd.cycle.training.plan import parse_model

    return [parse_model((_folder() / f"{name}.yaml").read_text()) for name in _names()]


def text_of_config(name: str, config_json: str, seq_len: int) -> str:
    """Return a model that is given as Hugging Face's config.json, in the form of a preset.

    Its recipe is that of the preset which is nearest in size.

    Raises:
        UsageError: it isn't the configuration of a causal language model, or one that is too short
            for such sequences.
    """
    from pydantic import ValidationError

    from jupiterd.cycle.training.architectures import parameter_count
    from jupiterd.cycle.training.plan import shape_of_config

    config, sizes = parsed_config(config_json), presets()
    shown = re.sub(r"[^\w.-]+", "-", name)[:MAX_NAME_CHARACTERS] or "model"
    try:
        shape = shape_of_config(shown, config, sizes[0].recipe)
    except ValidationError as error:  # a number that no model has
        first = error.errors(include_url=False)[0]
        reason = ".".join(map(str, first["loc"])) + ": " + first["msg"].lower()
        raise UsageError(f"{shown} can't be trained: {reason}", HINT) from error
    _check_positions(shown, config, seq_len)
    wanted = parameter_count(shape)
    nearest = min(sizes, key=lambda preset: abs(parameter_count(preset) - wanted))
    return shape.model_copy(update={"recipe": nearest.recipe}).to_text()


def with_own_tokens(config_json: str) -> str:
    """Return a configuration without the special tokens of its tokenizer: the model gets another.

    Raises:
        UsageError: it isn't one JSON object.
    """
    return json.dumps(without_token_ids(parsed_config(config_json)))


def parsed_config(config_json: str, name: str = "") -> dict[str, Any]:
    """Return what the text of a config.json says.

    name: the model's, where a message must distinguish it from another

    Raises:
        UsageError: it isn't one JSON object, or too large.
    """
    file = f"config.json of {name}" if name else "config.json"
    if len(config_json.encode()) > MAX_CONFIG_BYTES:
        raise UsageError(f"{file} is larger than {MAX_CONFIG_BYTES >> 10} KiB")
    try:
        config: object = json.loads(config_json)
    except (ValueError, RecursionError):
        config = None
    if not isinstance(config, dict):
        raise UsageError(f"{file} isn't one JSON object", HINT)
    return cast("dict[str, Any]", config)


def _check_positions(name: str, config: dict[str, Any], seq_len: int) -> None:
    positions = config.get("max_position_embeddings") or config.get("n_positions")
    if isinstance(positions, int) and seq_len > positions:
        raise UsageError(
            f"{name} has {positions} positions, and a sequence would have {seq_len} tokens",
            f"--seq-len {positions}",
        )


def _folder() -> Path:
    return config_folder() / "models"


def _names() -> list[str]:
    return sorted(path.stem for path in _folder().glob("*.yaml"))
