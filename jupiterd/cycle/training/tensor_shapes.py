"""Which tensors the files of a model hold, by its configuration: their names and shapes.

Owns that for the architectures whose files people bring most; a test compares each with
transformers. Others are compared by the number of their layers here, and as a whole by the machine
that loads them. Pure: it is given what config.json says, and what the files' headers say.
"""

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from jupiterd.cycle.training.model_traits import is_tied

Shape = tuple[int, ...]
Shapes = Mapping[str, Shape]
Config = Mapping[str, Any]

OUTPUTS: Final = ("lm_head.weight", "embed_out.weight")
"""What files call an output layer, which those of a tied model may hold as well."""

_BUFFERS: Final = (
    "rotary_emb.inv_freq", "attn.bias", "attn.masked_bias", "attention.bias",
    "attention.masked_bias",
)  # fmt: skip
"""Masks and positions that old files hold beside the weights; nobody reads those."""

_LAYER: Final = re.compile(r"\b(?:layers|h|blocks)\.(\d+)\.")
_LAYERS: Final = ("num_hidden_layers", "n_layer", "n_layers", "num_layers")
_PASSED_AGAIN: Final = frozenset({"hrm_text"})
"""Their text passes through the same layers again: the files hold fewer than are counted."""


def misfit(config: Config, found: Shapes) -> str:
    """Return how the tensors of a model's files differ from what its configuration says.

    Empty: they don't, as far as this is known of its architecture.

    found: name -> shape, of all files together
    """
    expected = expected_tensors(config)
    if expected is None:
        return _too_few_layers(config, found)
    strange = dict(found)
    for name, shape in expected.items():
        known = next((each for each in _names(name) if each in found), None)
        if known is None:
            return f"its weights hold no {name}, which its config.json has"
        if found[known] != shape:
            held, wanted = _times(found[known]), _times(shape)
            return f"its weights have {known} of {held}, and its config.json says {wanted}"
        del strange[known]
    unused = (name for name in sorted(strange) if not name.endswith((*_BUFFERS, *OUTPUTS)))
    first = next(unused, None)
    return "" if first is None else f"its weights hold {first}, which its config.json hasn't"


def expected_tensors(config: Config) -> Shapes | None:
    """Return what the files of a model hold; None: this isn't known, or sizes aren't said."""
    make = _FAMILIES.get(str(config.get("model_type")))
    try:
        return None if make is None else dict(make(config))
    except (KeyError, TypeError, ValueError, ZeroDivisionError):
        return None


def _names(name: str) -> tuple[str, ...]:
    """Return what files may call a tensor: some leave out the first part of each name."""
    return (name, name.partition(".")[2])


def _times(shape: Shape) -> str:
    return " x ".join(f"{size:,}" for size in shape) or "one number"


def _too_few_layers(config: Config, found: Shapes) -> str:
    wanted = next((config[key] for key in _LAYERS if isinstance(config.get(key), int)), 0)
    numbers = {int(match[1]) for name in found if (match := _LAYER.search(name))}
    if config.get("model_type") in _PASSED_AGAIN:
        return ""
    if not numbers or "encoder" in " ".join(found) or len(numbers) >= wanted:
        return ""
    return f"its weights have {len(numbers)} layers, and its config.json says {wanted}"


def _llama(config: Config) -> Iterator[tuple[str, Shape]]:
    """Yield the tensors of Llama and its kin: they differ in biases, norms and what goes unsaid."""
    kind, hidden = config["model_type"], int(config["hidden_size"])
    vocab = int(config["vocab_size"])
    yield "model.embed_tokens.weight", (vocab, hidden)
    for number in range(int(config["num_hidden_layers"])):
        layer = f"model.layers.{number}"
        yield from _llama_attention(f"{layer}.self_attn", config, hidden)
        yield from _llama_feed_forward(f"{layer}.mlp", config, hidden)
        for norm in _FOUR_NORMS if kind == "gemma2" else _TWO_NORMS:
            yield f"{layer}.{norm}.weight", (hidden,)
    yield "model.norm.weight", (hidden,)
    if not is_tied(config):
        yield "lm_head.weight", (vocab, hidden)


def _llama_attention(part: str, config: Config, hidden: int) -> Iterator[tuple[str, Shape]]:
    kind, heads = config["model_type"], int(config["num_attention_heads"])
    width = int(
        config["head_dim"] if kind in _OWN_WIDTH else _said(config, "head_dim", hidden // heads)
    )
    groups = _said(config, _GROUPS, heads) if kind in _AS_MANY_GROUPS else config[_GROUPS]
    rows = {"q": heads * width, "k": int(groups) * width, "v": int(groups) * width}
    has_bias = bool(config.get("attention_bias")) and kind != "mistral"
    for letter, count in rows.items():
        yield f"{part}.{letter}_proj.weight", (count, hidden)
        if has_bias or kind == "qwen2":
            yield f"{part}.{letter}_proj.bias", (count,)
        if kind == "qwen3" and letter != "v":
            yield f"{part}.{letter}_norm.weight", (width,)
    yield f"{part}.o_proj.weight", (hidden, rows["q"])
    if has_bias and kind != "qwen2":
        yield f"{part}.o_proj.bias", (hidden,)


def _llama_feed_forward(part: str, config: Config, hidden: int) -> Iterator[tuple[str, Shape]]:
    inner = int(config["intermediate_size"])
    has_bias = config["model_type"] in _BIAS_FORWARD and bool(config.get("mlp_bias"))
    shapes = {"gate": (inner, hidden), "up": (inner, hidden), "down": (hidden, inner)}
    for name, shape in shapes.items():
        yield f"{part}.{name}_proj.weight", shape
        if has_bias:
            yield f"{part}.{name}_proj.bias", shape[:1]


def _said(config: Config, key: str, usual: int) -> int:
    value = config.get(key)
    return usual if value is None else int(value)


_GROUPS: Final = "num_key_value_heads"
_AS_MANY_GROUPS: Final = frozenset({"llama", "granite"})
"""Have as many as heads where nobody says; others have a number of their own then."""
_OWN_WIDTH: Final = frozenset({"qwen3", "gemma", "gemma2"})
"""Have heads of a width of their own where nobody says."""
_BIAS_FORWARD: Final = frozenset({"llama", "smollm3", "granite"})
_TWO_NORMS: Final = ("input_layernorm", "post_attention_layernorm")
_FOUR_NORMS: Final = (*_TWO_NORMS, "pre_feedforward_layernorm", "post_feedforward_layernorm")


def _gpt2(config: Config) -> Iterator[tuple[str, Shape]]:
    hidden, vocab = int(config["n_embd"]), int(config["vocab_size"])
    inner = int(config.get("n_inner") or 4 * hidden)
    yield "transformer.wte.weight", (vocab, hidden)
    yield "transformer.wpe.weight", (int(config["n_positions"]), hidden)
    for number in range(int(config["n_layer"])):
        layer = f"transformer.h.{number}"
        for norm in ("ln_1", "ln_2"):
            yield from _both(f"{layer}.{norm}", (hidden,), hidden)
        yield from _both(f"{layer}.attn.c_attn", (hidden, 3 * hidden), 3 * hidden)
        yield from _both(f"{layer}.attn.c_proj", (hidden, hidden), hidden)
        yield from _both(f"{layer}.mlp.c_fc", (hidden, inner), inner)
        yield from _both(f"{layer}.mlp.c_proj", (inner, hidden), hidden)
    yield from _both("transformer.ln_f", (hidden,), hidden)
    if not is_tied(config):
        yield "lm_head.weight", (vocab, hidden)


def _gpt_neox(config: Config) -> Iterator[tuple[str, Shape]]:
    hidden, vocab = int(config["hidden_size"]), int(config["vocab_size"])
    inner = int(config["intermediate_size"])
    yield "gpt_neox.embed_in.weight", (vocab, hidden)
    for number in range(int(config["num_hidden_layers"])):
        layer = f"gpt_neox.layers.{number}"
        for norm in _TWO_NORMS:
            yield from _both(f"{layer}.{norm}", (hidden,), hidden)
        for name, rows in (("query_key_value", 3 * hidden), ("dense", hidden)):
            yield f"{layer}.attention.{name}.weight", (rows, hidden)
            if config.get("attention_bias", True):
                yield f"{layer}.attention.{name}.bias", (rows,)
        yield from _both(f"{layer}.mlp.dense_h_to_4h", (inner, hidden), inner)
        yield from _both(f"{layer}.mlp.dense_4h_to_h", (hidden, inner), hidden)
    yield from _both("gpt_neox.final_layer_norm", (hidden,), hidden)
    if not is_tied(config):
        yield "embed_out.weight", (vocab, hidden)


def _both(name: str, weight: Shape, bias: int) -> Iterator[tuple[str, Shape]]:
    yield f"{name}.weight", weight
    yield f"{name}.bias", (bias,)


_FAMILIES: Final[Mapping[str, Callable[[Config], Iterator[tuple[str, Shape]]]]] = {
    **dict.fromkeys(
        ("llama", "mistral", "qwen2", "qwen3", "smollm3", "granite", "gemma", "gemma2"), _llama
    ),
    "gpt2": _gpt2,
    "gpt_neox": _gpt_neox,
}

KNOWN: Final = frozenset(_FAMILIES)
"""The architectures whose tensors are known by name."""
