"""The update of weights on torch: AdamW, Muon for matrices, and weights in bf16.

Owns what is kept beside each weight, by the parameter's name. Doesn't know models, learning-rate
curves or files. AdamW of fp32 weights is torch's own, fused; the rest is written out here.

Weights in bf16 have 8 bits of precision, and most steps are smaller than that. What rounding lost
is kept in a second bf16 (`low`) and added before the next step; so nothing random is drawn, and
ranks on unlike machines stay alike.
"""

import math
from collections.abc import Callable, Mapping

import torch
from torch import Tensor, nn

from jupiterd.cycle.training.plan import TrainPlan
from jupiterd.workers.training_engine import (
    BETAS,
    EPSILON,
    LOW,
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

Moments = dict[str, Tensor]
"""One parameter's, by their kinds."""


class TorchOptimizer:
    """The moments of a model's parameters, and the step that uses them."""

    def __init__(
        self,
        parameters: Mapping[str, nn.Parameter],
        plan: TrainPlan,
        dimensions: Mapping[str, int] | None = None,
    ) -> None:
        """dimensions: of whole tensors, where parameters are pieces of them; None: their own."""
        self._parameters = parameters
        self._plan = plan
        self._dimensions = dimensions or {name: p.ndim for name, p in parameters.items()}
        self._kinds = {n: moments_of(n, self._dimensions[n], plan.options) for n in parameters}
        fused = [name for name, kinds in self._kinds.items() if kinds == MOMENTS]
        decays = {name: is_decayed(name, self._dimensions[name]) for name in fused}
        self._fused = _fused_adamw({name: parameters[name] for name in fused}, decays, plan)
        self._own: dict[str, Moments] = {n: {} for n in parameters if n not in set(fused)}
        self.steps = 0
        """How many have been taken."""

    @property
    def can_leave_out(self) -> bool:
        """Say whether the device can leave a step out before anybody has read why."""
        return self._fused is not None and not self._own

    def step(self, rate: float, left_out: Tensor | None = None) -> None:
        """Take one step along the gradients.

        left_out: float32[], 1 where the step is to change nothing; only where `can_leave_out`
        """
        self.steps += 1
        if self._fused is not None:
            # What torch's own GradScaler sets: the fused kernel reads it on the device.
            self._fused.__dict__["found_inf"] = left_out
            for settings in self._fused.param_groups:
                settings["lr"] = rate
            self._fused.step()
        with torch.no_grad():
            for name, moments in self._own.items():
                self._step_of(name, self._parameters[name], moments, rate)

    def moments(self) -> dict[str, Tensor]:
        """Return all moments as KIND.NAME: zeros where no step has made any yet."""
        fused = {} if self._fused is None else self._fused.state
        found: dict[str, Tensor] = {}
        for name, parameter in self._parameters.items():
            stored = self._own[name] if name in self._own else fused.get(parameter, {})
            for kind in self._kinds[name]:
                found[f"{kind}.{name}"] = (
                    stored[kind] if kind in stored else torch.zeros_like(parameter)
                )
        return found

    def load(self, moments: Mapping[str, Tensor], steps: int) -> None:
        """Go on with moments as they were after `steps` steps."""
        self.steps = steps
        for name, parameter in self._parameters.items():
            place = parameter.device
            given = {kind: moments[f"{kind}.{name}"] for kind in self._kinds[name]}
            placed = {kind: value.to(place, copy=True) for kind, value in given.items()}
            if name in self._own:
                self._own[name] = placed | _in_bf16(placed)
            elif self._fused is not None:
                step = torch.tensor(float(steps), device=place)
                self._fused.state[parameter] = {"step": step, **placed}

    def exact_weights(self) -> dict[str, Tensor]:
        """Return the weights with what rounding has lost of them."""
        return {
            name: parameter.detach().float() + self._own[name][LOW]
            if LOW in self._own.get(name, {})
            else parameter
            for name, parameter in self._parameters.items()
        }

    def keep_lost(self, exact: Mapping[str, Tensor]) -> None:
        """Keep what rounding has lost of these weights, which the parameters have taken over."""
        for name, parameter in self._parameters.items():
            if LOW in self._kinds[name]:
                lost = exact[name].to(parameter.device) - parameter.detach().float()
                self._own[name][LOW] = lost.to(torch.bfloat16)

    def _step_of(self, name: str, parameter: Tensor, moments: Moments, rate: float) -> None:
        gradient = parameter.grad
        if gradient is None:
            return
        weights = parameter.float() if LOW in self._kinds[name] else parameter
        if LOW in moments:
            weights += moments[LOW]
        decay = self._plan.weight_decay if is_decayed(name, self._dimensions[name]) else 0.0
        weights.mul_(1 - rate * decay)
        update = muon_update if MOMENTUM in self._kinds[name] else self._adamw_update
        weights.sub_(update(gradient.float(), moments, rate))
        if LOW in self._kinds[name]:
            parameter.copy_(weights)
            moments[LOW] = (weights - parameter).to(torch.bfloat16)

    def _adamw_update(self, gradient: Tensor, moments: Moments, rate: float) -> Tensor:
        (first, second), (mean, square) = BETAS, MOMENTS
        _moment(moments, mean, gradient).lerp_(gradient, 1 - first)
        _moment(moments, square, gradient).mul_(second).addcmul_(
            gradient, gradient, value=1 - second
        )
        spread = moments[square].sqrt().div_(math.sqrt(1 - second**self.steps)).add_(EPSILON)
        return moments[mean].div(spread).mul_(rate / (1 - first**self.steps))


def muon_update(gradient: Tensor, moments: Moments, rate: float) -> Tensor:
    """Return what Muon takes off a matrix: its momentum with all directions of one length."""
    momentum = _moment(moments, MOMENTUM, gradient).lerp_(gradient, 1 - MUON_BETA)
    ahead = gradient.lerp(momentum, MUON_BETA)
    return orthogonal(ahead).float().mul_(muon_rate(rate, gradient.shape))


def orthogonal(matrix: Tensor) -> Tensor:
    """Return about the nearest matrix whose directions all have length one (Newton-Schulz).

    In fp32 on a CPU, as MLX does it; a GPU has bf16 and would take too long otherwise.
    """
    compute = torch.bfloat16 if matrix.is_cuda else torch.float32
    turned = matrix.shape[0] > matrix.shape[1]
    x = (matrix.t() if turned else matrix).to(compute)
    x = x / (torch.linalg.vector_norm(x) + NEWTON_SCHULZ_EPSILON)
    a, b, c = NEWTON_SCHULZ
    for _ in range(NEWTON_SCHULZ_STEPS):
        square = x @ x.t()
        x = torch.addmm(x, torch.addmm(square, square, square, beta=b, alpha=c), x, beta=a)
    return x.t() if turned else x


def _moment(moments: Moments, kind: str, like: Tensor) -> Tensor:
    return moments.setdefault(kind, torch.zeros_like(like))


def _in_bf16(moments: Mapping[str, Tensor]) -> Moments:
    return {kind: v.to(torch.bfloat16) for kind, v in moments.items() if kind == LOW}


def _fused_adamw(
    parameters: Mapping[str, nn.Parameter], decays: Mapping[str, bool], plan: TrainPlan
) -> torch.optim.AdamW | None:
    """Return AdamW that decays matrices, and neither embeddings nor norms."""
    decayed = [p for name, p in parameters.items() if decays[name]]
    others = [p for name, p in parameters.items() if not decays[name]]
    groups = [
        {"params": decayed, "weight_decay": plan.weight_decay},
        {"params": others, "weight_decay": 0.0},
    ]
    make: Callable[..., torch.optim.AdamW] = torch.optim.AdamW
    if not parameters:
        return None
    return make(groups, lr=plan.learning_rate, betas=BETAS, eps=EPSILON, fused=True)
