"""AdamW on MLX, as torch computes it.

Owns the update and its moments, by the parameter's name: so a checkpoint's moments are the same on
both engines. (mlx.optimizers keeps one optimizer for each weight decay, and counts in float32.)
"""

import math
from collections.abc import Mapping

import mlx.core as mx

from jupiterd.workers.train.engine import BETAS, EPSILON, is_decayed

Arrays = Mapping[str, mx.array]


class AdamW:
    """The moments of a model's parameters, and the step that uses them."""

    def __init__(self, weight_decay: float) -> None:
        self._weight_decay = weight_decay
        self.steps = 0
        """How many have been taken."""
        self.mean: dict[str, mx.array] = {}
        """Of the gradient."""
        self.mean_square: dict[str, mx.array] = {}

    def update(self, parameters: Arrays, gradients: Arrays, rate: float) -> dict[str, mx.array]:
        """Return the parameters after one step at this learning rate; not yet evaluated."""
        self.steps += 1
        return {
            name: self._updated(name, parameters[name], gradient, rate)
            for name, gradient in gradients.items()
        }

    def _updated(self, name: str, parameter: mx.array, gradient: mx.array, rate: float) -> mx.array:
        first, second = BETAS
        mean = self.mean.get(name, mx.zeros_like(gradient))
        mean_square = self.mean_square.get(name, mx.zeros_like(gradient))
        mean = first * mean + (1 - first) * gradient
        mean_square = second * mean_square + (1 - second) * mx.square(gradient)
        self.mean[name], self.mean_square[name] = mean, mean_square
        spread = mx.sqrt(mean_square) / math.sqrt(1 - second**self.steps) + EPSILON
        decay = self._weight_decay if is_decayed(name, parameter.ndim) else 0.0
        return parameter * (1 - rate * decay) - (rate / (1 - first**self.steps)) * mean / spread
