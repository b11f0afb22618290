"""AdamW, and Muon for matrices, on MLX as on torch.

Owns the update and what is kept for it, by the parameter's name: so a checkpoint's moments are the
same on both engines. (mlx.optimizers keeps one optimizer for each weight decay, and counts in
float32; its Muon scales its steps another way.)
"""

import math
from collections.abc import Mapping, Sequence

import mlx.core as mx

from jupiterd.cycle.plan import TrainPlan
from jupiterd.workers.train.engine import (
    BETAS,
    EPSILON,
    MOMENTS,
    MOMENTUM,
    MUON_BETA,
    NEWTON_SCHULZ,
    NEWTON_SCHULZ_EPSILON,
    NEWTON_SCHULZ_STEPS,
    is_decayed,
    moments_of,
    muon_rate,
)

Arrays = Mapping[str, mx.array]

AT_A_TIME_BYTES = 64 << 20
"""Of weights that are updated together: what is computed on the way takes several times as much."""


class MlxOptimizer:
    """The moments of a model's parameters, and the step that uses them."""

    def __init__(self, plan: TrainPlan) -> None:
        self._plan = plan
        self.steps = 0
        """How many have been taken."""
        self.moments: dict[str, mx.array] = {}
        """By KIND.NAME; none before the first step."""

    def step(
        self,
        parameters: dict[str, mx.array],
        gradients: dict[str, mx.array],
        scale: float,
        rate: float,
    ) -> None:
        """Put parameters after one step in the place of those before, and take their gradients.

        Computed a few at a time: of all together, old and new ones and what lies between would be
        there at once, nine times as much as there are weights.

        scale: what gradients are multiplied by first; rate: of learning
        """
        self.steps += 1
        updated: list[str] = []
        while gradients:
            name, gradient = gradients.popitem()
            parameters[name] = self._updated(name, parameters[name], gradient * scale, rate)
            updated.append(name)
            del gradient
            if not gradients or sum(parameters[n].nbytes for n in updated) >= AT_A_TIME_BYTES:
                mx.eval([parameters[n] for n in updated], self._moments_of(updated))
                updated = []

    def _moments_of(self, names: Sequence[str]) -> list[mx.array]:
        held = (self.moments.get(f"{kind}.{n}") for n in names for kind in (*MOMENTS, MOMENTUM))
        return [values for values in held if values is not None]

    def none_yet(self, parameters: Arrays) -> dict[str, mx.array]:
        """Return the moments of these parameters as they are before the first step."""
        return {
            f"{kind}.{name}": mx.zeros_like(values)
            for name, values in parameters.items()
            for kind in moments_of(name, values.ndim, self._plan.options)
        }

    def _updated(self, name: str, parameter: mx.array, gradient: mx.array, rate: float) -> mx.array:
        decay = self._plan.weight_decay if is_decayed(name, parameter.ndim) else 0.0
        kinds = moments_of(name, parameter.ndim, self._plan.options)
        update = self._muon if MOMENTUM in kinds else self._adamw
        decayed = parameter * (1 - rate * decay) if decay else parameter
        return decayed - update(name, gradient, rate)

    def _adamw(self, name: str, gradient: mx.array, rate: float) -> mx.array:
        first, second = BETAS
        mean, mean_square = (self._kept(kind, name, gradient) for kind in MOMENTS)
        mean = first * mean + (1 - first) * gradient
        mean_square = second * mean_square + (1 - second) * mx.square(gradient)
        for kind, value in zip(MOMENTS, (mean, mean_square), strict=True):
            self.moments[f"{kind}.{name}"] = value
        # What both means lack of early steps is made up for by numbers: an array for it takes time.
        lack = math.sqrt(1 - second**self.steps)
        spread = mx.sqrt(mean_square) + EPSILON * lack
        return (rate * lack / (1 - first**self.steps)) * mean / spread

    def _muon(self, name: str, gradient: mx.array, rate: float) -> mx.array:
        momentum = self._kept(MOMENTUM, name, gradient)
        momentum = momentum + (1 - MUON_BETA) * (gradient - momentum)
        self.moments[f"{MOMENTUM}.{name}"] = momentum
        ahead = gradient + MUON_BETA * (momentum - gradient)
        return muon_rate(rate, gradient.shape) * orthogonal(ahead)

    def _kept(self, kind: str, name: str, like: mx.array) -> mx.array:
        return self.moments.get(f"{kind}.{name}", mx.zeros_like(like))


def orthogonal(matrix: mx.array) -> mx.array:
    """Return about the nearest matrix whose directions all have length one (Newton-Schulz)."""
    turned = matrix.shape[0] > matrix.shape[1]
    x = matrix.T if turned else matrix
    x = x / (mx.linalg.norm(x) + NEWTON_SCHULZ_EPSILON)
    a, b, c = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.T
        x = a * x + (b * square + c * (square @ square)) @ x
    return x.T if turned else x
