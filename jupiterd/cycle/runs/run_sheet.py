"""What is said of a training run before it starts: its size, memory, batch, speed and end.

Owns the arithmetic of a run and its words. Doesn't know who prints them, or where numbers about
devices come from.
"""

from dataclasses import dataclass

from jupiterd.cycle.base.snapshot_pace import expected_copy_s, lost_words, steps_between
from jupiterd.cycle.training.architectures import parameter_count
from jupiterd.cycle.training.engine_options import ResolvedOptions
from jupiterd.cycle.training.memory import MemoryNeed, checkpoint_bytes, flops_per_token
from jupiterd.cycle.training.plan import ModelShape, TrainPlan
from jupiterd.cycle.training.save_clock import save_interval_s
from jupiterd.formats import counted, counted_tokens, duration

USUAL_UTILISATION = 0.3
"""Share of a device's peak that training reaches, where nothing was measured yet."""


@dataclass(frozen=True)
class Gang:
    """What trains: equal ranks, as far as this page is concerned."""

    ranks: int
    memory_bytes: int
    """Of the smallest device; 0: unknown."""
    flops_per_s: float
    """Of all devices together, as measured, or their peak times USUAL_UTILISATION; 0: unknown."""
    ram_bytes: int = 0
    """Of the smallest machine, where a GPU's memory is a part of it; 0: it isn't."""

    def tokens_per_s(self, shape: ModelShape, plan: TrainPlan) -> float:
        """Return how many tokens are trained on in a second; 0 where nobody knows."""
        return self.flops_per_s / flops_per_token(shape, plan.options.adapter)


@dataclass(frozen=True)
class Accumulation:
    """How the sequences of a step are shared."""

    micro_batch: int
    steps: int
    """Micro batches of each rank in one optimizer step; those of a part may be smaller."""
    ranks: int
    sequences: int
    """Of one optimizer step; exactly as planned, whatever the rest comes to."""

    @classmethod
    def of(cls, plan: TrainPlan, ranks: int) -> "Accumulation":
        """Return how `ranks` equal ranks share a step of the plan."""
        share = -(-plan.batch_sequences // ranks)
        micro_batch = min(plan.micro_batch_sequences, share)
        return cls(micro_batch, -(-share // micro_batch), ranks, plan.batch_sequences)

    def __str__(self) -> str:
        product = self.micro_batch * self.steps * self.ranks
        factors = f"{self.micro_batch} x {self.steps} x {self.ranks}"
        joined = " =" if product == self.sequences else ", not all full:"
        return f"{factors}{joined} {self.sequences:,}"


def run_sheet(
    shape: ModelShape,
    plan: TrainPlan,
    options: ResolvedOptions,
    need: MemoryNeed,
    gang: Gang,
    *,
    is_open: bool = False,
) -> list[str]:
    """Return the lines that are printed before training starts.

    is_open: the plan's batch is the most, as the data that decides isn't there yet
    """
    return [
        _model(shape),
        f"{options.line()} | {_optimizer(options)}",
        *options.reasons,
        *_losses(shape, plan, need, gang),
        _memory(need, gang),
        _batch(shape, plan, gang.ranks, is_open=is_open),
        _expectation(shape, plan, gang, is_open=is_open),
    ]


def _losses(shape: ModelShape, plan: TrainPlan, need: MemoryNeed, gang: Gang) -> list[str]:
    """Return what deaths cost that trains alone; nothing of ranks that hold the state together."""
    if gang.ranks > 1:
        return []
    size = checkpoint_bytes(shape, plan.options)
    seconds = save_interval_s(size, is_alone=True)
    has_room = bool(need.snapshots) or not need.program
    of_worker = f"If its worker dies it loses {_lost(shape, plan, gang, size, has_room=has_room)}"
    of_machine = f"at most {duration(seconds)} of training (checkpoint_every_s)"
    return [f"{of_worker}; if its machine dies, {of_machine}"]


def _lost(
    shape: ModelShape, plan: TrainPlan, gang: Gang, state_bytes: int, *, has_room: bool
) -> str:
    tokens, rate = plan.batch_sequences * shape.seq_len, gang.tokens_per_s(shape, plan)
    if has_room and not rate:
        return "at most as many steps as a copy of the state takes 2 % of: status shows it"
    every = steps_between(expected_copy_s(state_bytes), tokens / rate) if has_room else 0
    return lost_words(every)


def _model(shape: ModelShape) -> str:
    return (
        f"Model {shape.size}: d_model={shape.hidden}, layers={shape.layers}, heads={shape.heads}, "
        f"seq_len={shape.seq_len}, vocabulary {shape.vocab_size:,}, "
        f"{parameter_count(shape) / 1e6:,.1f} million parameters"
    )


def _optimizer(options: ResolvedOptions) -> str:
    name = {"adamw": "AdamW", "muon": "Muon for matrices, AdamW for the rest"}[options.optimizer]
    return f"{name} | weights {options.weights}"


def _memory(need: MemoryNeed, gang: Gang) -> str:
    of = f" of {gang.memory_bytes / 1e9:.1f}" if gang.memory_bytes else ""
    own = _parts(
        ("weights", need.weights),
        ("gradients", need.gradients),
        ("optimizer", need.optimizer),
        ("activations", need.activations),
        ("logits", need.logits),
    )
    if not need.program:
        return f"Memory per device {need.on_device / 1e9:.2f}{of} GB: {own}"
    snapshots = [("copies of the state", need.snapshots)] if need.snapshots else []
    beside = _parts(("program", need.program), ("a checkpoint's copy", need.copies), *snapshots)
    if not gang.ram_bytes:
        return f"Memory per device {need.total / 1e9:.2f}{of} GB: {own}, {beside}"
    whole = f"{need.total / 1e9:.2f} of the machine's {gang.ram_bytes / 1e9:.1f} GB with {beside}"
    return f"Memory per device {need.on_device / 1e9:.2f}{of} GB: {own}; {whole}"


def _parts(*parts: tuple[str, int]) -> str:
    return ", ".join(f"{name} {size / 1e9:.2f}" for name, size in parts)


def _batch(shape: ModelShape, plan: TrainPlan, ranks: int, *, is_open: bool) -> str:
    tokens, most = plan.batch_sequences * shape.seq_len, "at most " * is_open
    return (
        f"Effective batch {most}{Accumulation.of(plan, ranks)} sequences (micro-batch x "
        f"accumulation x ranks), {tokens:,} tokens; {_length(plan, tokens, most)}"
    )


def _length(plan: TrainPlan, tokens: int, most: str) -> str:
    steps = plan.steps
    if not steps:
        return "as many steps as the data takes"
    grows = f"{counted(plan.least_steps, 'step')}, while held-out loss falls up to "
    least = grows if plan.extends_by_steps else ""
    return f"{least}{counted(steps, 'step')}, {most}{counted_tokens(steps * tokens)}"


def _expectation(shape: ModelShape, plan: TrainPlan, gang: Gang, *, is_open: bool) -> str:
    rate = gang.tokens_per_s(shape, plan)
    if not rate:
        return (
            "Expected speed isn't known yet: not all of these devices were measured; "
            "the first steps measure it, and status shows it"
        )
    tokens = plan.steps * plan.batch_sequences * shape.seq_len
    if not tokens:
        return f"Expected {rate:,.0f} tokens/s"
    return f"Expected {rate:,.0f} tokens/s, done in {'at most ' * is_open}{duration(tokens / rate)}"
