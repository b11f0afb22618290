"""What is known of model architectures: names of their sizes, and how many numbers they learn.

Owns the way between Hugging Face's configurations and a shape's own words, and which engine trains
what (`training.known_architectures`, `training.mlx_proven`). Doesn't know files or engines.
"""

from collections.abc import Collection, Mapping
from difflib import get_close_matches
from typing import Any, Final, Protocol

from jupiterd.cycle.training.adapters.given_quantized import WHOLE, check_given, why_not_beside
from jupiterd.cycle.training.known_architectures import SEES_AHEAD, TRAINED, UNTRIED
from jupiterd.cycle.training.mlx_proven import PROVEN
from jupiterd.cycle.training.model_traits import is_tied, shortest_window, why_not_on_mlx
from jupiterd.errors import UsageError

QWEN3: Final = "qwen3"
GPT2: Final = "gpt2"

ON_MLX: Final = frozenset(PROVEN)
"""What mlx-lm computes as transformers does; a model of these may ask for more than is proven."""

USUAL: Final = ("llama", "qwen3", "mistral", "gemma3_text", "smollm3")
"""Named where people ask for something else."""

MAX_VOCAB = 1 << 20
"""No public model has as many entries; ids take 32 bits where they must (`data.token_width`)."""

_NAMES: Mapping[str, tuple[str, ...]] = {
    "vocab_size": ("vocab_size",),
    "hidden": ("hidden_size", "n_embd", "d_model"),
    "layers": ("num_hidden_layers", "n_layer", "n_layers", "num_layers"),
}
_HEADS = ("num_attention_heads", "n_head", "n_heads", "num_heads", "attention_heads")
"""Models without attention have none."""
_POSITIONS = (
    "max_position_embeddings", "n_positions", "max_seq_len", "model_max_length", "context_length",
    "seq_length",
)  # fmt: skip
"""Some say none: nothing in them depends on it."""
_MAX_SEQ_LEN = 1024
"""Longest sequence that is taken from a configuration unasked."""


class Sizes(Protocol):
    """The sizes of a model."""

    @property
    def architecture(self) -> str: ...  # noqa: D102 - as ModelShape says
    @property
    def vocab_size(self) -> int: ...  # noqa: D102
    @property
    def seq_len(self) -> int: ...  # noqa: D102
    @property
    def hidden(self) -> int: ...  # noqa: D102
    @property
    def layers(self) -> int: ...  # noqa: D102
    @property
    def ff(self) -> int: ...  # noqa: D102
    @property
    def heads(self) -> int: ...  # noqa: D102
    @property
    def kv_heads(self) -> int: ...  # noqa: D102
    @property
    def head_dim(self) -> int: ...  # noqa: D102
    @property
    def tied(self) -> bool: ...  # noqa: D102


class RequestedModel(Sizes, Protocol):
    """A model as a run asks for it."""

    @property
    def config(self) -> Mapping[str, Any]: ...  # noqa: D102 - as ModelShape says


def can_train(engine: str, model: RequestedModel) -> bool:
    """Say whether an engine can train a model."""
    if engine != "mlx":
        return not why_not_beside(model.config, engine)
    return not why_not_on_mlx(_said_of(model), model.seq_len)


def engine_for(wanted: str, model: RequestedModel) -> str:
    """Return the engine to train on: the one that can, where people leave it open."""
    if wanted != "auto":
        return wanted
    if not can_train("mlx", model):
        return "torch"
    return wanted if can_train("torch", model) else "mlx"


def check_engine(engine: str, model: RequestedModel) -> None:
    """Make sure that an engine can train a model.

    Raises:
        UsageError: it can't; the message says what does.
    """
    if why := why_not_beside(model.config, engine):
        raise UsageError(f"torch can't train this model: {why}", f"--engine mlx; or {WHOLE}")
    if engine != "mlx" or not (why := why_not_on_mlx(_said_of(model), model.seq_len)):
        return
    window = shortest_window(model.config)
    shorter = f", or --seq-len {window}" if 0 < window < model.seq_len else ""
    nearest = f"; the nearest that MLX trains is {other}" if (other := _instead(model)) else ""
    raise UsageError(
        f"MLX can't train this {model.architecture} model: {why}",
        f"train it on torch: --engine torch{shorter}{nearest}; docs/models.md says what MLX trains",
    )


def check_architecture(name: str, config: Mapping[str, Any]) -> None:
    """Make sure that a configuration is one of a causal language model that can be trained.

    Raises:
        UsageError: it isn't; the message is one line, and the hint names the nearest that is.
    """
    kind = config.get("model_type")
    if not isinstance(kind, str) or not kind:
        raise UsageError(
            f"config.json of {name} doesn't say what kind of model it is: it has no model_type",
            "give the folder of a causal language model",
        )
    text: object = config.get("text_config")
    if isinstance(text, Mapping) and kind not in TRAINED:
        inner = str(text.get("model_type", ""))
        there = f"{inner} is its part for text: " if inner in TRAINED else ""
        raise UsageError(
            f"{name} is a {kind} model, which isn't of text alone, and only those are trained",
            f"{there}give a folder with such a model, as {_nearest(inner or kind)}",
        )
    check_given(name, config)
    check_that_it_writes(name, config)
    if kind not in TRAINED | UNTRIED:
        raise UsageError(
            f"{name} is a {kind!r} model, and no causal language model is known by that name",
            f"the nearest is {_nearest(kind)}; docs/models.md names those that are known",
        )


def check_that_it_writes(name: str, config: Mapping[str, Any]) -> None:
    """Raise UsageError where a configuration is that of a model that can't write text."""
    kind = config.get("model_type")
    if kind in SEES_AHEAD:
        raise UsageError(
            f"{name} is a {kind} model: its tokens see those behind them, so it can't learn to "
            "predict them",
            f"give a causal language model, such as {USUAL[0]}",
        )


def _instead(model: RequestedModel) -> str:
    """Return what MLX trains in the place of an architecture that it doesn't; empty where it does.

    Others of that architecture may well be trained there.
    """
    kind = model.architecture
    return "" if kind in ON_MLX else _alike(kind, ON_MLX) or _of_the_family(kind)


def _nearest(kind: str) -> str:
    """Return the name of an architecture that both engines train, or torch at the least."""
    return _alike(kind, ON_MLX) or _alike(kind, TRAINED) or _of_the_family(kind)


def _alike(kind: str, known: Collection[str]) -> str:
    """Return the name that another begins with, or is spelt nearly as; empty where there's none."""
    if begins := [name for name in known if kind.startswith(f"{name}_")]:
        return max(begins, key=len)
    return next(iter(get_close_matches(kind, sorted(known), 1, 0.7)), "")


def _of_the_family(kind: str) -> str:
    return next((known for known in USUAL if known[:4] == kind[:4]), QWEN3)


def _said_of(model: RequestedModel) -> Mapping[str, Any]:
    """Return a model's configuration; that of a preset says no more than this."""
    said: dict[str, Any] = {"model_type": model.architecture, "tie_word_embeddings": model.tied}
    if model.architecture == GPT2 and not model.config:
        said |= {"n_embd": model.hidden, "n_inner": model.ff}
    return {**model.config, **said}


def shape_fields(name: str, config: Mapping[str, Any]) -> dict[str, Any]:
    """Return a shape's fields, as config.json of a causal language model says them.

    Raises:
        UsageError: it says too little, or something that can't be trained here.
    """
    check_architecture(name, config)
    found = {field: _first(name, config, keys) for field, keys in _NAMES.items()}
    if found["vocab_size"] > MAX_VOCAB:
        raise UsageError(
            f"{name} has a vocabulary of {found['vocab_size']:,}",
            f"choose a model with a vocabulary of at most {MAX_VOCAB:,}",
        )
    hidden, heads = found["hidden"], _number(config, _HEADS) or 1
    return found | {
        "seq_len": min(_number(config, _POSITIONS) or _MAX_SEQ_LEN, _MAX_SEQ_LEN),
        "heads": heads,
        "ff": int(config.get("intermediate_size") or config.get("n_inner") or 4 * hidden),
        "kv_heads": int(config.get("num_key_value_heads") or heads),
        "head_dim": int(config.get("head_dim") or hidden // heads),
        "rope_theta": _rope_theta(config),
        "tied": is_tied(config),
        "architecture": str(config.get("model_type", "")),
        "config": dict(config),
    }


def parameter_count(shape: Sizes) -> int:
    """Return how many numbers a model of this shape learns; tied weights count once.

    Exact for Qwen3 and GPT-2, and for others as if they were Qwen3.
    """
    embedding = shape.vocab_size * shape.hidden * (1 if shape.tied else 2)
    if shape.architecture == GPT2:
        return embedding + _gpt2_body(shape)
    norms = 2 * shape.hidden + 2 * shape.head_dim
    return embedding + shape.layers * (_matrices(shape) + norms) + shape.hidden


def matrix_parameters(shape: Sizes) -> int:
    """Return how many of them are in the layers' matrices: those that Muon takes."""
    return shape.layers * _matrices(shape)


def _matrices(shape: Sizes) -> int:
    attention = shape.hidden * shape.head_dim * (2 * shape.heads + 2 * shape.kv_heads)
    return attention + (2 if shape.architecture == GPT2 else 3) * shape.hidden * shape.ff


def _gpt2_body(shape: Sizes) -> int:
    """Positions, layers with their biases and two norms, and the last norm."""
    hidden = shape.hidden
    biases = 3 * hidden + hidden + shape.ff + hidden
    layer = _matrices(shape) + biases + 4 * hidden
    return shape.seq_len * hidden + shape.layers * layer + 2 * hidden


def _first(name: str, config: Mapping[str, Any], keys: tuple[str, ...]) -> int:
    value = _number(config, keys)
    if value is None or value < 1:
        raise UsageError(
            f"config.json of {name} says no {keys[0]}", "give the folder of a causal language model"
        )
    return value


def _number(config: Mapping[str, Any], keys: tuple[str, ...]) -> int | None:
    return next((int(config[key]) for key in keys if isinstance(config.get(key), int)), None)


def _rope_theta(config: Mapping[str, Any]) -> float:
    rope = config.get("rope_parameters")
    nested = rope.get("rope_theta") if isinstance(rope, Mapping) else None
    return float(config.get("rope_theta") or nested or 100_000.0)
