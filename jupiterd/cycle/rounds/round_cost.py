"""What the rounds of a cycle cost: their tokens, on the trunk and on the branch that is judged.

Owns that arithmetic and its words. Doesn't know machines: a speed comes in, where one is known.
"""

from dataclasses import dataclass
from typing import Any

from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.formats import counted, counted_tokens, duration


@dataclass(frozen=True)
class RoundCost:
    """The steps and tokens of one round's training."""

    steps: int
    trunk_tokens: int
    """Tokens at the trunk's constant learning rate; later rounds continue from there."""
    branch_tokens: int
    """Tokens while the learning rate decays, for the candidate alone."""
    least_steps: int = 0
    """Where it may take more steps only while held-out loss falls; else as many as `steps`, or 0.
    """

    @classmethod
    def of(cls, shape: ModelShape, plan: TrainPlan) -> "RoundCost":
        """Return the cost of a plan."""
        tokens = plan.batch_sequences * shape.seq_len
        least = plan.least_steps if plan.extends_by_steps else plan.steps
        return cls(plan.steps, plan.trunk_steps * tokens, plan.decay_steps * tokens, least)

    @property
    def tokens(self) -> int:
        """Return the tokens of trunk and branch together."""
        return self.trunk_tokens + self.branch_tokens

    def to_plain(self, tokens_per_s: float) -> dict[str, Any]:
        """Return the JSON fields; a time of None is unknown."""
        return {
            "steps": self.steps,
            "least_steps": self.least_steps or self.steps,
            "tokens": self.tokens,
            "trunk_tokens": self.trunk_tokens,
            "branch_tokens": self.branch_tokens,
            "eta_s": round(self.tokens / tokens_per_s, 1) if tokens_per_s else None,
        }

    def text(self, tokens_per_s: float) -> str:
        """Return it for people."""
        took = f", {duration(self.tokens / tokens_per_s)}" if tokens_per_s else ""
        grows = 0 < self.least_steps < self.steps
        least = (
            f"{counted(self.least_steps, 'step')}, while held-out loss falls up to "
            if grows
            else ""
        )
        return (
            f"{least}{counted(self.steps, 'step')}, {counted_tokens(self.tokens)}{took}: "
            f"trunk {self._part(self.trunk_tokens)}, branch {self._part(self.branch_tokens)}"
        )

    def _part(self, tokens: int) -> str:
        """Return a part of the tokens, in the unit of the whole."""
        return counted_tokens(tokens, of=self.tokens).split()[0]


@dataclass(frozen=True)
class CycleCost:
    """The rounds of a cycle; all but the first are alike."""

    rounds: int
    first: RoundCost
    later: RoundCost
    tokens_per_s: float
    """0: unknown."""
    has_trunk: bool = True
    """Later rounds continue the trunk; False with islands, which start from the last candidate."""

    def to_plain(self) -> dict[str, Any]:
        """Return it for programs."""
        return {
            "first": self.first.to_plain(self.tokens_per_s),
            "later": self.later.to_plain(self.tokens_per_s) if self.rounds > 1 else None,
            "tokens": self.tokens,
            "eta_s": round(self.tokens / self.tokens_per_s, 1) if self.tokens_per_s else None,
            "goes_on_with_trunk": self.has_trunk,
        }

    def lines(self) -> list[str]:
        """Return lines for people; none for a single round, which other lines describe."""
        if self.rounds == 1:
            return []
        after = "goes on with the trunk" if self.has_trunk else "begins with the last candidate"
        took = f", {duration(self.tokens / self.tokens_per_s)}" if self.tokens_per_s else ""
        return [
            f"Round 1: {self.first.text(self.tokens_per_s)}",
            f"Each later round {after}: {self.later.text(self.tokens_per_s)}",
            f"Training of all {self.rounds} rounds: {counted_tokens(self.tokens)}{took}",
        ]

    @property
    def tokens(self) -> int:
        """The tokens of all rounds together."""
        return self.first.tokens + (self.rounds - 1) * self.later.tokens
