"""The small students that judge text: how large they are, and how long and how often they learn.

Owns what follows for them from a cycle's size. Doesn't know text, engines or who is compared.

Two arms of n seeds each tell a difference of D bits per byte with a chance of 80 %, where a
student's result spreads by S between seeds, from n = 2 * ((z_0.05 + z_0.2) * S / D)^2 on.
"""

import math
from dataclasses import dataclass
from typing import Final

from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.plan import ModelShape, Recipe, TrainPlan, derive
from jupiterd.cycle.training.step_budget import first_budget

_Z_SUM: Final = 1.6449 + 0.8416
"""Of a one-sided test at 5 %, and of a chance of 80 %."""

MIN_SEEDS: Final = 2
MAX_SEEDS: Final = 16


@dataclass(frozen=True)
class _Size:
    """One size of small student."""

    from_parameters: int
    """Of the model that the cycle trains: from this on, it is judged by students of this size."""
    name: str
    hidden: int
    layers: int
    ff: int
    heads: int
    kv_heads: int
    seq_len: int
    batch_sequences: int
    steps: int
    micro_batch_sequences: int
    learning_rate: float
    spread_bpb: float
    """Standard deviation of one student's bits per byte between seeds."""
    detectable_bpb: float
    """A difference that is to be noticed, unless a domain says otherwise."""
    prompts: int
    """A contestant writes so much at most."""
    scored_bytes: int
    """So much real text is scored, about."""


_SIZES: Final = (
    _Size(
        90_000_000, "25m", 384, 8, 1024, 6, 2, 1024, 64, 763, 8, 3e-3, 0.004, 0.01, 4096, 1 << 18
    ),
    _Size(10_000_000, "5m", 192, 6, 512, 3, 1, 512, 32, 500, 8, 3e-3, 0.006, 0.015, 1024, 1 << 17),
    _Size(0, "tiny", 64, 2, 192, 1, 1, 128, 8, 40, 8, 3e-3, 0.012, 0.03, 64, 1 << 16),
)


@dataclass(frozen=True)
class Proxies:
    """How small students are trained in a cycle."""

    shape: ModelShape
    seeds: tuple[int, ...]
    spread_bpb: float
    """How much one student's result is taken to depend on its seed, after the size's steps."""
    prompts: int
    scored_bytes: int

    @property
    def tokens(self) -> int:
        """How many tokens each student is trained on."""
        recipe = self.shape.recipe
        return recipe.first_steps * recipe.batch_sequences * self.shape.seq_len

    def plan(self, seed: int, real_tokens: int = 0) -> TrainPlan:
        """Return how the student of one seed is trained.

        real_tokens: of the text that all arms have alike: students take the size's steps, or four
            passes over it where that is less (see `training.step_budget`); 0: nobody knows. It is
            the same for all arms that are compared, so that none wins by more steps.
        """
        recipe = self.shape.recipe
        steps = recipe.first_steps
        if real_tokens:
            sequences = -(-real_tokens // self.shape.seq_len)
            steps = first_budget(steps, recipe.batch_sequences, sequences).least
        plan = derive(self.shape, 1, {"steps": steps}, seed)
        return plan.model_copy(update={"keeps_trunk": False})

    def spread_after(self, plan: TrainPlan) -> float:
        """Return how much a student's result is taken to depend on its seed after a plan's steps.

        Where little text lets it take fewer than the size's, more of that is left: of eight
        thousand characters, nine or ten steps of forty, students were 0.013 to 0.042 apart.
        """
        return self.spread_bpb * max(1.0, self.shape.recipe.first_steps / plan.steps)


def proxies_of(
    shape: ModelShape, seed: int = 0, detectable_bpb: float | None = None, seeds: int | None = None
) -> Proxies:
    """Return the small students of a cycle.

    Args:
        shape: the model that the cycle trains; its tokenizer is theirs.
        seed: the cycle's.
        detectable_bpb: the difference to be noticed with a chance of 80 %, in bits per byte;
            None: what two seeds notice.
        seeds: how many seeds each arm has; None: as many as that takes.
    """
    size = next(each for each in _SIZES if parameter_count(shape) >= each.from_parameters)
    count = seeds or seeds_needed(size.spread_bpb, detectable_bpb or size.detectable_bpb)
    first = seed * 1000
    return Proxies(
        _shape(size, shape),
        tuple(first + number for number in range(1, count + 1)),
        size.spread_bpb,
        size.prompts,
        size.scored_bytes,
    )


def seeds_needed(spread_bpb: float, detectable_bpb: float) -> int:
    """Return how many seeds each arm needs to notice a difference with a chance of 80 %."""
    wanted = 2 * (_Z_SUM * spread_bpb / detectable_bpb) ** 2
    return max(MIN_SEEDS, min(MAX_SEEDS, math.ceil(round(wanted, 6))))


def _shape(size: _Size, of: ModelShape) -> ModelShape:
    seq_len = min(size.seq_len, of.seq_len)
    batch = max(1, size.batch_sequences * size.seq_len // seq_len)
    recipe = Recipe(
        first_steps=size.steps,
        later_steps=size.steps,
        batch_sequences=batch,
        micro_batch_sequences=max(1, size.micro_batch_sequences * size.seq_len // seq_len),
        learning_rate=size.learning_rate,
        later_learning_rate=size.learning_rate,
        warmup_fraction=0.05,
        decay_fraction=0.3,
        checkpoint_every_steps=size.steps,
    )
    return ModelShape(
        version=1,
        size=f"proxy-{size.name}",
        vocab_size=of.vocab_size,
        seq_len=seq_len,
        hidden=size.hidden,
        layers=size.layers,
        ff=size.ff,
        heads=size.heads,
        kv_heads=size.kv_heads,
        recipe=recipe,
    )
