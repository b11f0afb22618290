"""A low-rank adapter: which matrices of a frozen model get one, and how large it is.

Owns the options, their short text, and the choice of matrices by the names of the model's modules.
Doesn't know tensors or engines. Names are those of the package peft: an adapter of a module lies in
`base_model.model.MODULE.lora_A.weight`, [rank, inputs], and `lora_B.weight`, [outputs, rank]; the
module computes W x + scale B A x (Hu et al. 2021, "LoRA", arXiv 2106.09685). DoRA has a number for
each output, too, `lora_magnitude_vector`: the length that this row of W + scale B A is given (Liu
et al. 2024, arXiv 2402.09353).
"""

import math
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Annotated, Any, Final, Literal

from pydantic import (
    Field,
    SerializerFunctionWrapHandler,
    ValidationError,
    model_serializer,
)

from jupiterd.cycle.base.plain_text import Plain
from jupiterd.errors import UsageError

ALL: Final = "all"
ATTENTION, MLP = "attention", "mlp"
_PARTS: Final = frozenset({ALL, ATTENTION, MLP})

NAME_PREFIX: Final = "base_model.model."
FACTORS: Final = ("lora_A", "lora_B")
MAGNITUDE: Final = "lora_magnitude_vector"
"""peft's file has its name without the `.weight` that the factors have."""

_HINT: Final = "such as --lora rank=16,alpha=32,layers=all,targets=attention"
_NO_RANGE: Final = "the lower number comes first, such as layers=3-5"
_DORA: Final = "dora"
_SAID: Final = ("rank", "alpha", "form", "layers", "targets", "dropout", "quantize")
_UNSAID: Final = {"quantize": "none", "numbers": "", "dropout": 0.0, _DORA: False}
"""Choices that nobody made."""
_RANGES: Final = r"\d{1,4}-\d{1,4}(\+\d{1,4}-\d{1,4})*"
_IN_LAYER: Final = re.compile(r"(?:^|\.)(?:layers|h|blocks)\.(\d+)\.(.+)$")
_OF_ATTENTION: Final = re.compile(r"attn|attention")


class AdapterOptions(Plain):
    """What people may choose of an adapter."""

    rank: Annotated[int, Field(ge=1, le=1024)] = 16
    alpha: Annotated[float, Field(gt=0.0, le=65_536.0)] = 32.0
    """The product of both factors counts alpha / rank times."""
    form: Literal["lora", "rslora"] = "lora"
    """rslora: it counts alpha / sqrt(rank) times (Kalajdzievski 2023, arXiv 2312.03732)."""
    layers: Annotated[int, Field(ge=0, le=10_000)] = 0
    """How many of the last layers get one; 0: all, or those of `numbers`."""
    numbers: Annotated[str, Field(pattern=rf"^({_RANGES})?$")] = ""
    """Which layers get one, from 0 on: `0-7+12-12`; empty: `layers` says it."""
    targets: Annotated[str, Field(pattern=r"^[A-Za-z0-9_.]+(\+[A-Za-z0-9_.]+)*$")] = ALL
    """`attention`, `mlp`, `all`, or names of modules with a + between them: q_proj+v_proj. Where
    several have the same name, the whole path within a layer says which: mlp.c_proj."""

    dropout: Annotated[float, Field(ge=0.0, lt=1.0)] = 0.0
    """The share of a module's inputs that the first factor doesn't see, others at each step."""
    dora: bool = False
    """The lengths of a matrix's rows are learned apart from their directions."""

    quantize: Literal["none", "4bit", "8bit"] = "none"
    """What the frozen matrices in layers are kept in (Dettmers et al. 2023, arXiv 2305.14314)."""

    base: Annotated[str, Field(pattern=r"^([0-9a-f]{64})?$")] = ""
    """The artifact of the frozen weights; empty where nobody has decided yet."""

    @model_serializer(mode="wrap")
    def _said(self, plain: SerializerFunctionWrapHandler) -> dict[str, Any]:
        """Return it without a choice that nobody made: ranks of older builds refuse what is new."""
        said: dict[str, Any] = plain(self)
        return {n: value for n, value in said.items() if n not in _UNSAID or value != _UNSAID[n]}

    @property
    def bits(self) -> int:
        """Return the bits of a frozen number in a layer's matrix; 0: it isn't quantized."""
        return 0 if self.quantize == "none" else int(self.quantize.removesuffix("bit"))

    @property
    def scale(self) -> float:
        """Return by what the product of both factors is multiplied."""
        return self.alpha / (math.sqrt(self.rank) if self.form == "rslora" else self.rank)

    @property
    def parts(self) -> tuple[str, ...]:
        """Return what each adapted module has: the factors, and the magnitude where it is DoRA."""
        return (*FACTORS, MAGNITUDE) if self.dora else FACTORS

    @property
    def is_by_part(self) -> bool:
        """Say whether parts of layers get one, not modules by their names."""
        return _PARTS.issuperset(self.targets.split("+"))

    def to_text(self) -> str:
        """Return the short text that `parse_adapter` reads."""
        said = self.model_dump(exclude_defaults=True, exclude={"base", "numbers", _DORA}) | {
            "rank": self.rank,
            "alpha": self.alpha,
        }
        if self.numbers:
            said["layers"] = self.numbers
        words = [f"{name}={_number(value)}" for name, value in said.items()]
        return ",".join([*words, *([_DORA] if self.dora else [])])


def parse_adapter(text: str) -> AdapterOptions:
    """Read options from a text such as `rank=16,alpha=32,dora`; empty: all are as usual.

    Unless it is said, alpha is twice the rank.

    Raises:
        UsageError: a part isn't NAME=VALUE, or says what can't be.
    """
    said = _parts_of(text)
    if said.get("layers") == ALL:
        del said["layers"]
    elif _is_of_ranges(said.get("layers", "")):
        said["numbers"] = _united(said.pop("layers"))
    elif "layers" in said and not said["layers"].strip("0"):
        raise UsageError("--lora: an adapter needs one layer at least", _HINT)
    try:
        found = AdapterOptions.model_validate(said)
        twice = {} if "alpha" in said else {"alpha": 2.0 * found.rank}
        return found.model_copy(update=twice)
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        reason = f"--lora: {first['loc'][0]}={first['input']}: {first['msg'].lower()}"
        raise UsageError(reason, _HINT) from error


def with_quantize(text: str, quantize: str, *, replaces: bool = False) -> str:
    """Return an adapter's text that says what its base is kept in, too.

    replaces: in the place of what it says of that; else saying it twice is a mistake
    """
    parts = [part for part in text.split(",") if part]
    if replaces:
        parts = [part for part in parts if part.partition("=")[0].strip() != "quantize"]
    return ",".join([*parts, f"quantize={quantize}"])


def _parts_of(text: str) -> dict[str, str]:
    """Return what a text says, by name; raises as `parse_adapter`."""
    said: dict[str, str] = {}
    for part in filter(None, (each.strip() for each in text.split(","))):
        name, equals, value = (each.strip() for each in part.partition("="))
        if not (equals and name in _SAID) and part != _DORA:
            known = ", ".join(_SAID)
            hint = "names of modules have a + between them" if "targets" in said else _HINT
            raise UsageError(f"--lora: {part} is none of {known} with a value, or dora", hint)
        if name in said:
            raise UsageError(f"--lora: {name} is said twice", _HINT)
        said[name] = value if equals else "true"
    return said


def checked_adapter(text: str) -> str:
    """Return a text that `parse_adapter` reads; raises ValueError for any other."""
    try:
        parse_adapter(text)
    except UsageError as error:
        raise ValueError(error.message.removeprefix("--lora: ")) from error
    return text


def adapted_modules(modules: Iterable[str], options: AdapterOptions) -> list[str]:
    """Return which modules get an adapter, in the order given.

    Args:
        modules: paths of the modules that multiply with a matrix, such as
            `MODEL.layers.0.self_attn.q_proj`; those outside of layers never get one.
        options: says which.

    Raises:
        UsageError: the model has none that is asked for; those that it has are named.
    """
    places = {path: match for path in modules if (match := _IN_LAYER.search(path))}
    numbers = sorted({int(match[1]) for match in places.values()})
    if options.layers > len(numbers):
        reason = f"--lora: the model has {len(numbers)} layers, not {options.layers}"
        raise UsageError(reason, f"layers=all, or at most {len(numbers)}")
    layers = frozenset(_chosen_layers(numbers, options))
    _check_targets(options.targets, [match[2] for match in places.values()])
    return [
        path
        for path, match in places.items()
        if int(match[1]) in layers and _is_target(match[2], options.targets)
    ]


def adapter_shapes(
    matrices: Mapping[str, tuple[int, int]], options: AdapterOptions
) -> dict[str, tuple[int, ...]]:
    """Return the shapes of an adapter's tensors by their names.

    matrices: module -> (outputs, inputs), of all modules that multiply with a matrix

    Raises:
        UsageError: as `adapted_modules`.
    """
    found: dict[str, tuple[int, ...]] = {}
    for path in adapted_modules(matrices, options):
        outputs, inputs = matrices[path]
        sizes = {
            FACTORS[0]: (options.rank, inputs),
            FACTORS[1]: (outputs, options.rank),
            MAGNITUDE: (outputs,),
        }
        found |= {tensor_name(path, part): sizes[part] for part in options.parts}
    return found


def tensor_name(module: str, part: str) -> str:
    """Return what an adapter's file calls a factor of a module's adapter, or its magnitude."""
    return f"{NAME_PREFIX}{module}.{part}{'' if part == MAGNITUDE else '.weight'}"


def module_of(name: str) -> tuple[str, str]:
    """Return the module and the part of an adapter's tensor; the other way of `tensor_name`."""
    module, _, factor = name.removeprefix(NAME_PREFIX).removesuffix(".weight").rpartition(".")
    return module, factor


def is_in_layer(module: str) -> bool:
    """Say whether a path leads into one of a model's layers."""
    return _IN_LAYER.search(module) is not None


def place_in_layer(module: str) -> tuple[int, str]:
    """Return the number of a module's layer, and its path within it."""
    match = _IN_LAYER.search(module)
    assert match is not None  # noqa: S101 - an adapter's module lies in a layer
    return int(match[1]), match[2]


def target_names(modules: Iterable[str]) -> list[str]:
    """Return the last parts of modules' names, each once, as adapter_config.json lists them."""
    return sorted({path.rpartition(".")[2] for path in modules})


def is_of_attention(place: str) -> bool:
    """Say whether a module is a part of attention; place: its path within the layer."""
    return _OF_ATTENTION.search(place) is not None


def layer_ranges(numbers: Iterable[int]) -> str:
    """Return numbers of layers as `AdapterOptions.numbers` has them: 0-7+12-12."""
    ranges: list[list[int]] = []
    for number in sorted(set(numbers)):
        if ranges and ranges[-1][1] == number - 1:
            ranges[-1][1] = number
        else:
            ranges.append([number, number])
    return "+".join(f"{first}-{last}" for first, last in ranges)


def layers_in(numbers: str) -> list[int]:
    """Return the layers that a text such as 0-7+12-12 means; the other way of `layer_ranges`."""
    pairs = (part.split("-") for part in numbers.split("+"))
    return sorted({n for first, last in pairs for n in range(int(first), int(last) + 1)})


def _united(ranges: str) -> str:
    """Return ranges without any that overlap or touch; what is none stays, and is refused later.

    Raises:
        UsageError: one of them holds no layer, such as 5-3.
    """
    if not re.fullmatch(_RANGES, ranges):
        return ranges
    if empty := [part for part in ranges.split("+") if not layers_in(part)]:
        raise UsageError(f"--lora: layers={empty[0]} is no layer", _NO_RANGE)
    return layer_ranges(layers_in(ranges))


def _is_of_ranges(layers: str) -> bool:
    return "-" in layers.lstrip("-")


def _chosen_layers(known: Sequence[int], options: AdapterOptions) -> Iterable[int]:
    """Return the layers that get an adapter; raises UsageError where the model lacks one."""
    if not options.numbers:
        return known[-options.layers :]
    chosen = layers_in(options.numbers)
    if not chosen:
        raise UsageError(f"--lora: layers={options.numbers} is no layer", _NO_RANGE)
    if missing := sorted(set(chosen).difference(known)):
        reason = f"--lora: the model has no layer {missing[0]}"
        raise UsageError(reason, f"its layers are {layer_ranges(known)}")
    return chosen


def _is_target(place: str, targets: str) -> bool:
    """Say whether a module is asked for; place: its path within the layer."""
    part = ATTENTION if is_of_attention(place) else MLP
    return not {ALL, part, place, place.rpartition(".")[2]}.isdisjoint(targets.split("+"))


def _check_targets(targets: str, places: Sequence[str]) -> None:
    known = target_names(places)
    wanted = [name for name in targets.split("+") if name not in _PARTS]
    if missing := [name for name in wanted if name not in known and name not in places]:
        raise UsageError(f"--lora: the model has no {missing[0]}", f"it has {', '.join(known)}")
    if not any(_is_target(place, targets) for place in places):
        what = "" if targets == ALL else f" of its {targets}"
        raise UsageError(
            f"--lora: the model has no matrices{what} in layers", f"it has {', '.join(known)}"
        )


def _number(value: object) -> str:
    if not isinstance(value, float):
        return str(value)
    short = f"{value:g}"
    return short if float(short) == value else repr(value)
