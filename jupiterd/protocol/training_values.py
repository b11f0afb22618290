"""What training has come to, as everybody between a rank and the ledger describes it.

Owns one value type for each thing: how far training is, an island's pseudo-gradient, an island's
part of an outer round. Pure. Doesn't know where their tensors lie: a worker's frame adds a path on
its machine (`protocol.frames`), an event of work an artifact (`daemon.runtime.work_events`).
"""

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True)
class TrainingProgress:
    """How far the training of a round is: the weights beside it contain exactly that much."""

    step: int
    """Optimizer steps of the round that are done."""
    tokens: int
    """Tokens trained on since the cycle began, along this branch of checkpoints."""
    cursor: int
    """Sequences of the round's manifest trained on so far."""
    loss: float
    """In nats a token, the mean over the last steps."""
    horizon: Mapping[str, float] = field(default_factory=dict[str, float])
    """What losses on held-out text had decided by then, see `cycle.training.horizon`."""


@dataclass(frozen=True)
class PseudoGradient:
    """An island's weight difference since an outer step (DiLoCo, 2311.08105), but for its numbers.

    A field's default means that nobody knows it: an older build leaves it out.
    """

    after: str
    """Hash of that step's fact."""
    tokens: int
    """Trained on since then."""
    norm: float
    """The L2 norm of the difference; infinite where a weight isn't a number."""
    elapsed_s: float = 0.0
    """How long the inner steps took."""
    logits: bytes = field(default=b"", repr=False)
    """Of a batch that is the same everywhere, at that step's weights: float32 in little endian, see
    `cycle.training.model_fingerprint`."""
    size_bytes: int = 0
    """What it takes to send it once, packed."""
    stands_at: str = ""
    """Hash of the last outer step that the island had taken when its round ended."""
    digest: bytes = field(default=b"", repr=False)
    """BLAKE3 of the weights and momentum that it had after that one, see
    `cycle.training.state_divergence`."""
    scored_step: int = 0
    """Steps that the weights contain that it has scored last on held-out text; 0: none."""
    held_out: float = 0.0
    """Their loss in nats a token, see `cycle.islands.outer_horizon`; 0: no text may decide."""
    counted: int = 0
    """Of the tokens, those that the loss counts; 0: all of them."""

    @property
    def tokens_per_s(self) -> float:
        """Return how fast the island was; 0 where nobody knows."""
        return self.tokens / self.elapsed_s if self.elapsed_s > 0 else 0.0


@dataclass(frozen=True)
class RoundOrder:
    """What one island trains on in the round that follows an outer step.

    Checkpoints of islands hold it: a field may be added, with a default, and none be renamed.
    """

    step: str
    """Hash of the outer step's fact."""
    number: int
    """Outer steps taken, this one among them; the first has 0."""
    first_step: int
    """Inner steps that are done before the round, of all the run's."""
    steps: int
    """Inner steps of the round; 0: all were given out before."""
    batch_sequences: int
    """Of this island, in each of them; 0: it has no part in this round."""
    positions: str
    """Where they lie in the order of the data, see `cycle.base.positions`."""
    island: str = ""
    """Whose order it is."""
    lag: int = 1
    """How many steps lie between this order and the step that merges its pseudo-gradients."""
    scored_step: int = 0
    """Steps that the weights after the outer step contain, where these are scored on held-out text;
    0: they aren't."""

    @property
    def end_step(self) -> int:
        """Return the inner steps that are done after the round."""
        return self.first_step + self.steps

    @property
    def closes(self) -> int:
        """Return the number of the step whose round ended with this one; below 0: none did."""
        return self.number - self.lag

    @property
    def has_part(self) -> bool:
        """Say whether the island trains in this round."""
        return self.steps > 0 and self.batch_sequences > 0
