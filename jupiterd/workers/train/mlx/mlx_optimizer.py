"""AdamW, and Muon for matrices, on MLX as on torch.

Owns the update and what is kept for it, by the parameter's name: so a checkpoint's moments are the
same on both engines. (mlx.optimizers keeps one optimizer for each weight decay, and counts in
float32; its Muon scales its steps another way.)
"""

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import mlx.core as mx

from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.workers.training_engine import (
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


@dataclass(frozen=True)
class StepScale:
    """How far a step goes: what gradients are multiplied by first, and the rate of learning."""

    scale: float
    rate: float


class MlxOptimizer:
    """The moments of a model's parameters, and the step that uses them."""

    def __init__(self, plan: TrainPlan, *, is_alone: bool) -> None:
        """is_alone: no other rank comes to the same weights by itself.

        Compiled, AdamW takes half the time, and its last digit may be another: where a machine has
        no compiler it stays as it is, so ranks that are to be equal don't compile.
        """
        self._plan = plan
        self._adamw = mx.compile(adamw) if is_alone else adamw
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
            update = self._by_muon if self._is_by_muon(name, gradient) else self._by_adamw
            parameters[name] = update(name, parameters[name], gradient, StepScale(scale, rate))
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

    def _is_by_muon(self, name: str, gradient: mx.array) -> bool:
        return MOMENTUM in moments_of(name, gradient.ndim, self._plan.options)

    def _by_adamw(
        self, name: str, parameter: mx.array, gradient: mx.array, pace: StepScale
    ) -> mx.array:
        first, second = BETAS
        # What both means lack of early steps is made up for by numbers: an array for it takes time.
        lack = math.sqrt(1 - second**self.steps)
        length = pace.rate * lack / (1 - first**self.steps)
        numbers = (
            pace.scale,
            self._share_after_decay(name, parameter, pace),
            length,
            EPSILON * lack,
        )
        means = [self._moment(kind, name, gradient) for kind in MOMENTS]
        updated, means = self._adamw(parameter, gradient, means, [*map(mx.array, numbers)])
        for kind, value in zip(MOMENTS, means, strict=True):
            self.moments[f"{kind}.{name}"] = value
        return updated

    def _by_muon(
        self, name: str, parameter: mx.array, gradient: mx.array, pace: StepScale
    ) -> mx.array:
        gradient = gradient * pace.scale
        momentum = self._moment(MOMENTUM, name, gradient)
        momentum = momentum + (1 - MUON_BETA) * (gradient - momentum)
        self.moments[f"{MOMENTUM}.{name}"] = momentum
        ahead = gradient + MUON_BETA * (momentum - gradient)
        step = muon_rate(pace.rate, gradient.shape) * orthogonal(ahead)
        return parameter * self._share_after_decay(name, parameter, pace) - step

    def _share_after_decay(self, name: str, parameter: mx.array, pace: StepScale) -> float:
        """Return how much of a parameter its decay leaves."""
        return 1 - pace.rate * self._plan.weight_decay * is_decayed(name, parameter.ndim)

    def _moment(self, kind: str, name: str, like: mx.array) -> mx.array:
        return self.moments.get(f"{kind}.{name}", mx.zeros_like(like))


def adamw(
    parameter: mx.array, gradient: mx.array, means: Sequence[mx.array], numbers: Sequence[mx.array]
) -> tuple[mx.array, Sequence[mx.array]]:
    """Return a parameter after a step of AdamW (Loshchilov & Hutter 2019), and its two means.

    numbers: what the gradient is multiplied by, the share of the parameter that its decay leaves,
    the length of the step, and what is added to the root. They are arrays, so that one compiled
    step serves every rate.
    """
    (mean, mean_square), (scale, share_after_decay, length, floor) = means, numbers
    first, second = BETAS
    gradient = gradient * scale
    mean = first * mean + (1 - first) * gradient
    mean_square = second * mean_square + (1 - second) * mx.square(gradient)
    updated = parameter * share_after_decay - length * mean / (mx.sqrt(mean_square) + floor)
    return updated, (mean, mean_square)


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
