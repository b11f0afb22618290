"""What the files of an adapter say: peft's, mlx-lm's, and those that others made with either.

Owns reading adapter_config.json and the names of tensors, and which adapters aren't taken. Pure: it
is given what the files say. Which modules have an adapter is told by the tensors, so that no
pattern of a stranger is ever matched.

| folder | tensors | names |
|---|---|---|
| peft | adapter_model.safetensors | base_model.model.MODULE.lora_A.weight, [rank, inputs] |
| mlx-lm | adapters.safetensors | MODULE.lora_a, [inputs, rank] |

DoRA's magnitude, [outputs], is MODULE.lora_magnitude_vector of the one, MODULE.m of the other.
"""

import math
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pydantic import ValidationError

from jupiterd.cycle.training.adapters.adapter import (
    ALL,
    ATTENTION,
    FACTORS,
    MAGNITUDE,
    MLP,
    NAME_PREFIX,
    AdapterOptions,
    adapter_shapes,
    is_in_layer,
    layer_ranges,
    layers_in,
    module_of,
    place_in_layer,
    target_names,
    tensor_name,
)
from jupiterd.errors import UsageError

Shape = tuple[int, ...]

_HINT: Final = "merge it into its base with the program that made it, and tune the sum"
_TOLD_BY_TENSORS: Final = "an adapter of low rank beside matrices of the model's layers is taken"
_OTHERS_FILE: Final = "fetch it again: one of its two files is another adapter's"
_VECTOR, _MATRIX = 1, 2
_NO_DROPOUT: Final = "a share of the inputs is dropped, from 0 to below 1"

_PLAIN_INITS: Final = (None, True, False, "gaussian", "orthogonal", "eva")
"""First numbers that leave the base as it is; pissa, olora and their kin change it."""

_NOT_TAKEN: Final = (
    "modules_to_save", "trainable_token_indices", "target_parameters", "layer_replication",
    "alora_invocation_tokens", "lora_bias", "use_qalora", "use_bdlora", "arrow_config",
    "velora_config", "monteclora_config", "kasa_config",
)  # fmt: skip
"""Fields of adapter_config.json that make another thing of an adapter where they say something."""

_KINDS: Final = frozenset({"LORA", "DORA"})
"""The second is mlx-lm's word, where peft says `use_dora`."""
_PARTS_OF_MLX: Final = {"lora_a": "lora_A", "lora_b": "lora_B", "m": MAGNITUDE}
_PLAIN_NAME: Final = re.compile(r"[A-Za-z0-9_.]+")
_NAME: Final = re.compile(r"(?P<module>.+)\.(?P<part>lora_[AB])(?:\.default)?\.weight")
_NAME_OF_MAGNITUDE: Final = re.compile(
    rf"(?P<module>.+)\.(?P<part>{MAGNITUDE})(?:\.default)?(?:\.weight)?"
)


@dataclass(frozen=True)
class FoundTensor:
    """Where a tensor lies in a file."""

    name: str
    """In the file."""
    shape: Shape
    """As peft has it."""
    is_turned: bool
    """The file has its columns as rows."""


@dataclass(frozen=True)
class AdapterFiles:
    """What an adapter's folder holds."""

    options: AdapterOptions
    """With the whole paths within layers as its targets."""
    base: str
    """What the folder calls its base; empty: it doesn't say."""
    tensors: Mapping[str, FoundTensor]
    """By the names that they have here."""

    def fitted(self, matrices: Mapping[str, tuple[int, int]], base: str) -> AdapterOptions:
        """Return its options in the shortest words that mean the same modules of a model.

        matrices: module -> (outputs, inputs) of the model; base: what people call it

        Raises:
            UsageError: it is an adapter of another model, or no options mean its modules.
        """
        shapes = {name: tensor.shape for name, tensor in self.tensors.items()}
        _check_base(shapes, matrices, base)
        for options in _wordings(self.options):
            if _shapes_of(matrices, options) == shapes:
                return options
        raise UsageError("it has other modules in one layer than in another", _HINT)


def read_adapter(said: Mapping[str, Any], shapes: Mapping[str, Shape]) -> AdapterFiles:
    """Return what there is of an adapter.

    Args:
        said: the content of adapter_config.json.
        shapes: of the tensors in its file, by their names there.

    Raises:
        UsageError: it isn't an adapter that can be taken; what hinders is named.
    """
    is_of_mlx = "fine_tune_type" in said
    _check_fields(said, is_of_mlx=is_of_mlx)
    is_dora = _is_dora(said, is_of_mlx=is_of_mlx)
    tensors = _tensors(shapes, is_of_mlx=is_of_mlx, is_dora=is_dora)
    rank = _rank(tensors)
    if not said.get("rank_pattern") and said.get("r", rank) != rank:
        raise UsageError(f"its r is {said['r']}, and its tensors have {rank}", _OTHERS_FILE)
    alpha = _alpha_of_mlx(said, rank) if is_of_mlx else _alpha(said, tensors)
    places = [place_in_layer(module_of(name)[0]) for name in tensors]
    try:
        options = AdapterOptions(
            rank=rank,
            alpha=alpha,
            form="rslora" if said.get("use_rslora") else "lora",
            dropout=_dropout(said, is_of_mlx=is_of_mlx),
            dora=is_dora,
            numbers=layer_ranges(number for number, _ in places),
            targets="+".join(sorted({place for _, place in places})),
        )
    except ValidationError as error:
        first = error.errors(include_url=False)[0]
        raise UsageError(f"its {first['loc'][0]} is {first['input']}", _HINT) from error
    base = said.get("model") if is_of_mlx else said.get("base_model_name_or_path")
    return AdapterFiles(options, str(base or ""), tensors)


def _check_fields(said: Mapping[str, Any], *, is_of_mlx: bool) -> None:
    kind = str(said.get("fine_tune_type" if is_of_mlx else "peft_type"))
    if kind.upper() not in _KINDS:
        raise UsageError(f"it is of the kind {kind}", _TOLD_BY_TENSORS)
    if (bias := said.get("bias", "none")) != "none":
        raise UsageError(f"its bias is {bias}, so it changes biases of its base, too", _HINT)
    if (init := said.get("init_lora_weights")) not in _PLAIN_INITS:
        raise UsageError(f"its init_lora_weights is {init}, which changes its base", _HINT)
    if odd := next((name for name in _NOT_TAKEN if said.get(name)), ""):
        raise UsageError(f"its {odd} says {str(said[odd])[:80]}, and that isn't trained", _HINT)


def _is_dora(said: Mapping[str, Any], *, is_of_mlx: bool) -> bool:
    if is_of_mlx:
        return str(said["fine_tune_type"]).lower() == "dora"
    return bool(said.get("use_dora"))


def _dropout(said: Mapping[str, Any], *, is_of_mlx: bool) -> float:
    """Return the share of inputs that it was trained without; raises UsageError for any other."""
    name = "dropout" if is_of_mlx else "lora_dropout"
    parameters = said.get("lora_parameters") if is_of_mlx else said
    found = parameters.get(name) if isinstance(parameters, dict) else None
    share = _number(name, found or 0.0)
    if not 0.0 <= share < 1.0:
        raise UsageError(f"its {name} is {share:g}", _NO_DROPOUT)
    return share


def _tensors(
    shapes: Mapping[str, Shape], *, is_of_mlx: bool, is_dora: bool
) -> dict[str, FoundTensor]:
    found: dict[str, FoundTensor] = {}
    for name, shape in shapes.items():
        ours = _name_of_mlx(name) if is_of_mlx else _name_of_peft(name)
        module, part = module_of(ours)
        if not ours or len(shape) != (_VECTOR if part == MAGNITUDE else _MATRIX):
            raise UsageError(f"it holds {name}, which is no factor of a matrix", _TOLD_BY_TENSORS)
        if part == MAGNITUDE and not is_dora:
            raise UsageError(f"it holds {name}, and doesn't say that it is DoRA", _OTHERS_FILE)
        if not is_in_layer(module):
            raise UsageError(f"it changes {module}, which is no part of a layer", _HINT)
        is_turned = is_of_mlx and part != MAGNITUDE
        found[ours] = FoundTensor(name, shape[::-1] if is_turned else shape, is_turned)
    _check_whole(found, (*FACTORS, MAGNITUDE) if is_dora else FACTORS)
    return found


def _check_whole(found: Mapping[str, FoundTensor], parts: Sequence[str]) -> None:
    modules = {module_of(name)[0] for name in found}
    whole = {tensor_name(module, part) for module in modules for part in parts}
    if missing := whole - found.keys():
        raise UsageError(f"it holds no {min(missing)}", "fetch it again: a part of it is missing")
    if not found:
        raise UsageError("it holds no tensors", "fetch it again: a part of it is missing")


def _name_of_peft(name: str) -> str:
    plain = name.removeprefix(NAME_PREFIX)
    match = _NAME.fullmatch(plain) or _NAME_OF_MAGNITUDE.fullmatch(plain)
    return tensor_name(match["module"], match["part"]) if match else ""


def _name_of_mlx(name: str) -> str:
    module, _, part = name.rpartition(".")
    return tensor_name(module, _PARTS_OF_MLX[part]) if part in _PARTS_OF_MLX else ""


def _rank(tensors: Mapping[str, FoundTensor]) -> int:
    """Return the rank that all modules have; raises UsageError where there are several."""
    ranks = {
        tensor.shape[FACTORS.index(part)]
        for name, tensor in tensors.items()
        if (part := module_of(name)[1]) in FACTORS
    }
    if len(ranks) > 1:
        several = ", ".join(map(str, sorted(ranks)))
        raise UsageError(f"its modules have several ranks ({several}; rank_pattern)", _HINT)
    return ranks.pop()


def _alpha(said: Mapping[str, Any], tensors: Mapping[str, FoundTensor]) -> float:
    """Return the alpha that all modules have; raises UsageError where there are several."""
    usual, patterns = said.get("lora_alpha"), said.get("alpha_pattern") or {}
    if odd := [name for name in patterns if not _PLAIN_NAME.fullmatch(str(name))]:
        raise UsageError(f"its alpha_pattern holds {odd[0][:80]}, a regular expression", _HINT)
    modules = {module_of(name)[0] for name in tensors}
    alphas = {_number("lora_alpha", _of_module(module, patterns, usual)) for module in modules}
    if len(alphas) > 1:
        several = ", ".join(f"{alpha:g}" for alpha in sorted(alphas))
        raise UsageError(f"its alpha_pattern gives several ({several})", _HINT)
    return alphas.pop()


def _of_module(module: str, patterns: Mapping[str, Any], usual: object) -> object:
    ends = (value for name, value in patterns.items() if f".{module}".endswith(f".{name}"))
    return next(ends, usual)


def _alpha_of_mlx(said: Mapping[str, Any], rank: int) -> float:
    parameters = said.get("lora_parameters")
    scale = parameters.get("scale") if isinstance(parameters, dict) else None
    return _number("scale", scale) * rank


def _number(name: str, value: object) -> float:
    try:
        found = float(str(value))
    except ValueError:
        found = math.nan
    if not math.isfinite(found):
        raise UsageError(f"its {name} is {value}", "fetch it again: adapter_config.json is damaged")
    return found


def _check_base(
    shapes: Mapping[str, Shape], matrices: Mapping[str, tuple[int, int]], base: str
) -> None:
    for name, shape in shapes.items():
        module, part = module_of(name)
        if module not in matrices:
            raise UsageError(f"it is for another base: {base} has no {module}", _OTHER_BASE)
        outputs, inputs = matrices[module]
        place, what = (1, "inputs") if part == FACTORS[0] else (0, "outputs")
        wanted = (outputs, inputs)[place]
        if shape[place] != wanted:
            reason = f"{module} has {shape[place]:,} {what} there, and {wanted:,} in {base}"
            raise UsageError(f"it is for another base: {reason}", _OTHER_BASE)


_OTHER_BASE: Final = "name its own base: --model of a run, --init of a cycle, --base elsewhere"


def _wordings(options: AdapterOptions) -> list[AdapterOptions]:
    """Return options in shorter words, the shortest first, which may mean other modules, too."""
    names = "+".join(target_names(options.targets.split("+")))
    layers = [
        {"numbers": "", "layers": 0},
        {"numbers": "", "layers": len(layers_in(options.numbers))},
        {},
    ]
    return [
        options.model_copy(update={**some, "targets": targets})
        for some in layers
        for targets in (ALL, ATTENTION, MLP, names, options.targets)
    ]


def _shapes_of(
    matrices: Mapping[str, tuple[int, int]], options: AdapterOptions
) -> Mapping[str, Shape] | None:
    try:
        return adapter_shapes(matrices, options)
    except UsageError:
        return None
