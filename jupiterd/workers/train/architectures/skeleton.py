"""What transformers has for a configuration: the model without its numbers.

Owns making it, and what it says of itself: the parameters' names and shapes, which of them are
frozen, and how its files call them. Holds no weights: torch's device "meta" has no memory.
"""

from collections.abc import Mapping
from functools import lru_cache
from importlib import import_module
from typing import Any, cast

import torch
from torch import Tensor, nn
from transformers import AutoModelForCausalLM, PreTrainedConfig
from transformers.conversion_mapping import get_checkpoint_conversion_mapping
from transformers.core_model_loading import revert_weight_conversion
from transformers.models.auto.modeling_auto import (
    MODEL_FOR_CAUSAL_LM_MAPPING_NAMES,
    MODEL_MAPPING_NAMES,
)
from transformers.pytorch_utils import Conv1D

from jupiterd.errors import UsageError

_WITHOUT_PREFIX = frozenset({"gpt2"})
"""Whose files on the hub leave out the body's name, and mlx-lm reads no others."""


MATRICES = (nn.Linear, Conv1D)
"""Modules that multiply with a matrix; the second kind has it the other way round."""


class Skeleton:
    """A causal language model of transformers, its parameters without values."""

    def __init__(self, config: PreTrainedConfig) -> None:
        make: Any = AutoModelForCausalLM.from_config
        try:
            with torch.device("meta"):
                self._model: Any = make(config, dtype=torch.float32, trust_remote_code=False)
        except (ValueError, TypeError, KeyError, AttributeError, ImportError) as error:
            reason = (str(error).splitlines() or [type(error).__name__])[0]
            raise UsageError(
                f"transformers can't make a {config.model_type} model: {reason}",
                "give the folder of a causal language model",
            ) from error
        parameters = dict(cast("nn.Module", self._model).named_parameters())
        self.shapes: Mapping[str, tuple[int, ...]] = {
            name: tuple(parameter.shape) for name, parameter in parameters.items()
        }
        """Of the parameters, tied ones once."""
        self.frozen = frozenset(n for n, p in parameters.items() if not p.requires_grad)
        """Parameters that aren't trained."""
        self.matrices: Mapping[str, tuple[int, int]] = {
            path: matrix_size(module)
            for path, module in self._model.named_modules()
            if isinstance(module, MATRICES)
        }
        """(outputs, inputs) of each module that multiplies with a matrix, by its path."""
        self.turned = frozenset(
            path for path, module in self._model.named_modules() if isinstance(module, Conv1D)
        )
        """Those of them whose matrix is [inputs, outputs]."""
        self.prefix = f"{self._model.base_model_prefix}."

    def in_files(self, weights: Mapping[str, Tensor]) -> dict[str, Tensor]:
        """Return weights as transformers writes them into files."""
        return revert_weight_conversion(self._model, dict(weights))

    def names_in_files(self) -> dict[str, str]:
        """Return what files call each parameter.

        Raises:
            UsageError: files cut parameters into others, as those of experts.
        """
        empty = {name: torch.empty(shape, device="meta") for name, shape in self.shapes.items()}
        ours = {id(tensor): name for name, tensor in empty.items()}
        written = self.in_files(empty)
        if {id(tensor) for tensor in written.values()} != ours.keys():
            raise UsageError("its files hold parameters in other pieces than transformers does")
        return {ours[id(tensor)]: name for name, tensor in written.items()}


def matrix_size(module: nn.Module) -> tuple[int, int]:
    """Return (outputs, inputs) of a module that multiplies with a matrix."""
    rows, columns = cast("Any", module).weight.shape
    return (columns, rows) if isinstance(module, Conv1D) else (rows, columns)


@lru_cache(maxsize=4)
def _built(config_json: str, kind: type[PreTrainedConfig]) -> Skeleton:
    return Skeleton(kind.from_dict(_plain(config_json)))


def skeleton(config: PreTrainedConfig) -> Skeleton:
    """Return what transformers has for a configuration; made once.

    Raises:
        UsageError: transformers can't make it.
    """
    return _built(config.to_json_string(use_diff=False), type(config))


def load_models() -> None:
    """Have transformers load what all its models share, once for all workers that are forked.

    One model brings it along, with a part of torch that takes most of the time: 0.8 s of a core. A
    thousand patterns of its table of conversions take 0.1 s. Each rank would pay that on its own.
    """
    import_module("transformers.models.qwen3.modeling_qwen3")
    get_checkpoint_conversion_mapping("")


def is_converted(config: PreTrainedConfig) -> bool:
    """Say whether files call parameters otherwise, or hold them in other pieces."""
    kind = config.model_type
    tables = (MODEL_FOR_CAUSAL_LM_MAPPING_NAMES, MODEL_MAPPING_NAMES)
    names: list[Any] = [kind, *(table.get(kind) for table in tables)]
    return any(
        isinstance(name, str) and get_checkpoint_conversion_mapping(name) is not None
        for name in names
    )


def leaves_out_prefix(config: PreTrainedConfig) -> bool:
    """Say whether files name parameters without the body's own name."""
    return config.model_type in _WITHOUT_PREFIX


def _plain(config_json: str) -> dict[str, Any]:
    import json

    return json.loads(config_json)
