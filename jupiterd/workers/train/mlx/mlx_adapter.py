"""Low-rank adapters in a model of mlx-lm.

Owns where they are put, and their parameters under peft's names. The layers are mlx-lm's own, or
`mlx_adapted_layer`'s; which modules get one is `cycle.training.adapters.adapter`'s. Doesn't know
losses or training.
"""

from collections.abc import Mapping
from typing import Any

import mlx.core as mx
from mlx_lm.tuner.lora import LoRALinear
from transformers import PreTrainedConfig

from jupiterd.cycle.training.adapters.adapter import (
    FACTORS,
    MAGNITUDE,
    AdapterOptions,
    adapter_shapes,
    module_of,
    tensor_name,
)
from jupiterd.workers.train.architectures.mlx_module import MlxModule
from jupiterd.workers.train.architectures.skeleton import skeleton
from jupiterd.workers.train.mlx.mlx_adapted_layer import AdaptedLinear, Dropout, TokenKeys


class MlxAdapter:
    """The adapters of one model."""

    def __init__(self, config: PreTrainedConfig, options: AdapterOptions) -> None:
        """Choose the modules; raises UsageError where there are none."""
        self._options = options
        self.keys = TokenKeys()
        """Of the tokens that pass through the model, which dropout follows from."""
        self.shapes = adapter_shapes(skeleton(config).matrices, options)
        """Of its tensors, by peft's names."""
        self._layers: dict[str, Any] = {}
        """transformers' path of a module -> mlx-lm's layer in its place."""

    @property
    def bits(self) -> int:
        """Return the bits of a frozen number in a layer's matrix; 0: it isn't quantized."""
        return self._options.bits

    def put_into(self, module: MlxModule) -> None:
        """Freeze a module that has its weights, and put adapters into it."""
        module.inner.freeze()
        paths = dict.fromkeys(module_of(name)[0] for name in self.shapes)
        for path, place in module.places_of(list(paths)).items():
            parent, _, name = place.rpartition(".")
            held = _at(module.inner, parent)
            layer = self._layer(path, getattr(held, name))
            layer.linear.freeze()
            setattr(held, name, layer)
            self._layers[path] = layer

    def _layer(self, path: str, linear: Any) -> Any:  # noqa: ANN401 - layers of MLX
        options = self._options
        if not (options.dora or options.dropout):
            return LoRALinear.from_base(linear, r=options.rank, scale=options.scale)
        dropout = None
        if options.dropout:
            _, inputs = self.shapes[tensor_name(path, FACTORS[0])]
            dropout = Dropout(path, inputs, options.dropout, self.keys)
        return AdaptedLinear.beside(
            linear, options.rank, options.scale, dropout, is_dora=options.dora
        )

    def update(self, parameters: Mapping[str, mx.array]) -> None:
        """Give the layers these parameters; mlx-lm's factors lie the other way round."""
        for path, layer in self._layers.items():
            first, second = (parameters[tensor_name(path, factor)] for factor in FACTORS)
            layer.lora_a, layer.lora_b = first.T, second.T
            if self._options.dora:
                layer.m = parameters[tensor_name(path, MAGNITUDE)]

    def let_go(self) -> None:
        """Hold no parameters any more, until others are given."""
        none = mx.zeros(())
        for layer in self._layers.values():
            layer.lora_a = layer.lora_b = none
            if self._options.dora:
                layer.m = none


def _at(module: Any, path: str) -> Any:  # noqa: ANN401 - modules of mlx-lm, and lists of them
    for part in path.split("."):
        module = module[int(part)] if part.isdecimal() else getattr(module, part)
    return module
