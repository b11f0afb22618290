"""What is agreed about one cycle, or one run: training without the cycle, or preparing data.

Owns the fold of its facts. Doesn't know phases, what comes next, or who writes facts.
"""

from collections.abc import Callable, Iterator, Mapping
from collections.abc import Set as AbstractSet
from typing import Any, assert_never

from jupiterd.cluster.facts.attempt_facts import AttemptAdopted, AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    BranchPinned,
    BranchSuspended,
    CheckpointCommitted,
    CycleFailed,
    CycleStarted,
    CycleStateSet,
    DataRequested,
    ManifestFrozen,
    OuterStepAbandoned,
    OuterStepTaken,
    RoundCommitted,
    TrainingStarted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.facts.phase_facts import SteeringFact
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.ledger.lifecycle import EndingFact, Lifecycle
from jupiterd.cluster.ledger.lww_registers import ONLY, Order, Register, fact_hash
from jupiterd.cluster.ledger.outer_branch import outer_branch
from jupiterd.cluster.ledger.phase_steering import Steering
from jupiterd.cluster.ledger.progress_tree import Leaf, Progress, ProgressTree
from jupiterd.cluster.ledger.promotions import Promotions
from jupiterd.cluster.values.bounds import climbed

SetFact = (
    CycleStarted
    | DataRequested
    | TrainingStarted
    | CycleStateSet
    | ManifestFrozen
    | AttemptOpened
    | AttemptAdopted
    | AttemptClosed
    | VerdictReached
    | StudentSteered
    | OuterStepTaken
    | OuterStepAbandoned
)
CycleFact = (
    WorkCompleted | SetFact | EndingFact | SteeringFact | BranchPinned | BranchSuspended | Progress
)
Part = Register[Any, Any] | ProgressTree | Steering | Lifecycle | Promotions
Begun = CycleStarted | TrainingStarted | DataRequested

PREPARING = "pack"
"""The phase whose work makes a data set."""

RUNNING = "running"
STOPPED = "stopped"
PAUSED = "paused"


class CycleState:
    """One cycle as far as its facts are known; they may come in any order, any number of times."""

    def __init__(self, may_decide: Callable[[Order], bool] = lambda _: True) -> None:
        """`may_decide`: see `Promotions`."""
        self._started: Register[str, CycleStarted] = Register(greatest_wins=False)
        self._requested: Register[str, DataRequested] = Register(greatest_wins=False)
        self._training: Register[str, TrainingStarted] = Register(greatest_wins=False)
        self._wanted: Register[str, CycleStateSet] = Register(greatest_wins=True)
        self.lifecycle = Lifecycle()
        self._completed: Register[tuple[int, str], WorkCompleted] = Register(greatest_wins=False)
        self._manifests: Register[tuple[int, int], ManifestFrozen] = Register(greatest_wins=False)
        self._opened: Register[int, AttemptOpened] = Register(greatest_wins=False)
        self._adopted: Register[int, AttemptAdopted] = Register(greatest_wins=True)
        self._closed: Register[int, AttemptClosed] = Register(greatest_wins=True)
        self._verdicts: Register[tuple[int, str], VerdictReached] = Register(greatest_wins=False)
        self._outer_steps: Register[str, OuterStepTaken] = Register(greatest_wins=False)
        self._outer_branches: dict[tuple[int, str], Mapping[str, OuterStepTaken]] = {}
        """Those that were asked for since they last grew."""
        self._steered = Promotions(may_decide)
        self._abandoned_steps: Register[str, OuterStepAbandoned] = Register(greatest_wins=False)
        self._pin: Register[str, BranchPinned] = Register(greatest_wins=True)
        self._parkings: Register[str, BranchSuspended] = Register(greatest_wins=True)
        self._tree = ProgressTree()
        self.steering = Steering()
        self._counting: Mapping[tuple[int, str], WorkCompleted] | None = None
        """What `completed` returns, as long as nothing has changed."""
        self._in_phases: Mapping[tuple[int, str], Mapping[str, WorkCompleted]] | None = None
        """The same for `completed_in`."""

    def apply(self, fact: CycleFact, order: Order) -> None:
        """Take in one fact of this cycle."""
        if isinstance(fact, WorkCompleted):  # most facts are
            self._completed.offer((fact.round, fact.item), fact, order)
            self._counting = self._in_phases = None
        elif isinstance(fact, CheckpointCommitted | RoundCommitted):
            self._tree.apply(fact, order)
        elif isinstance(fact, BranchPinned):
            self._apply_pin(fact, order)
        elif isinstance(fact, BranchSuspended):
            self._apply_parking(fact, order)
        elif isinstance(fact, EndingFact):
            self.lifecycle.apply(fact, order)
        elif isinstance(fact, SteeringFact):
            self.steering.apply(fact, order)
            self._counting = self._in_phases = None
        else:
            self._apply_set_fact(fact, order)

    def _apply_pin(self, fact: BranchPinned, order: Order) -> None:
        if self._pin.offer(ONLY, fact, (fact.edit, *order)):
            self._tree.pin(fact.leaf)

    def _apply_parking(self, fact: BranchSuspended, order: Order) -> None:
        if self._parkings.offer(fact.leaf, fact, (fact.edit, *order)):
            self._tree.park(self.suspended)

    def _apply_set_fact(self, fact: SetFact, order: Order) -> None:  # noqa: C901, PLR0912 - a case for each
        match fact:
            case CycleStarted():
                self._started.offer(ONLY, fact, order)
            case DataRequested():
                self._requested.offer(ONLY, fact, order)
            case TrainingStarted():
                self._training.offer(ONLY, fact, order)
            case CycleStateSet():
                self._wanted.offer(ONLY, fact, (fact.edit, *order))
            case ManifestFrozen():
                self._manifests.offer((fact.round, fact.redo), fact, order)
            case AttemptOpened():
                self._opened.offer(fact.attempt, fact, order)
            case AttemptAdopted():
                self._adopted.offer(fact.attempt, fact, order)
            case AttemptClosed():
                self._closed.offer(fact.attempt, fact, order)
            case VerdictReached():
                self._verdicts.offer((fact.round, fact.candidate), fact, order)
            case StudentSteered():
                self._steered.apply(fact, order)
            case OuterStepTaken():
                if self._outer_steps.offer(fact_hash(fact), fact, order):
                    self._outer_branches.pop((fact.round, fact.start), None)
            case OuterStepAbandoned():
                if self._abandoned_steps.offer(fact.step, fact, order):
                    self._outer_branches.clear()
            case _:
                assert_never(fact)

    @property
    def started(self) -> CycleStarted | None:
        """How it was asked for; None as long as only later facts are known."""
        return self._started.facts.get(ONLY)

    @property
    def training(self) -> TrainingStarted | None:
        """What was asked for, where this is a training run and no cycle."""
        return self._training.facts.get(ONLY)

    @property
    def requested(self) -> DataRequested | None:
        """What data set was asked for, where this run makes one."""
        return self._requested.facts.get(ONLY)

    @property
    def prepared(self) -> WorkCompleted | None:
        """The data set that this run has made, or None."""
        prepared = (fact for fact in self.completed.values() if fact.phase == PREPARING)
        return None if self.requested is None else next(prepared, None)

    @property
    def begun(self) -> Begun | None:
        """How it was asked for, whatever it is; None as long as only later facts are known."""
        return self.started or self.training or self.requested

    @property
    def kind(self) -> str:
        """`cycle`, `train` or `data`, as the commands are called that show it."""
        if self.started is not None:
            return "cycle"
        return "train" if self.training is not None else "data"

    @property
    def label(self) -> str:
        """What people call it: its domain, or its name; empty where only later facts are known."""
        begun = self.begun
        if isinstance(begun, CycleStarted):
            return begun.domain
        return begun.name if begun is not None else ""

    @property
    def wanted_engine(self) -> str:
        """What people want it trained on: auto, torch or mlx."""
        request = self.started or self.training
        return "auto" if request is None else request.engine

    @property
    def rounds_wanted(self) -> int:
        """How many rounds it has, as many as were asked for; training without the cycle has one."""
        return 1 if self.started is None else max(self.started.rounds, self.lifecycle.rounds)

    @property
    def start_order(self) -> tuple[Any, ...]:
        """Compares cycles by when they were asked for; clocks tell seconds, entries the rest."""
        for register in (self._started, self._training, self._requested):
            if (fact := register.facts.get(ONLY)) is not None:
                return fact.started_at, register.rank(ONLY)
        return ()

    @property
    def wanted(self) -> str:
        """`running`, `paused` or `stopped`."""
        command = self._wanted.facts.get(ONLY)
        return command.wanted if command else RUNNING

    @property
    def wanted_edit(self) -> int:
        """The edit number of the command in force; the next command carries one more."""
        command = self._wanted.facts.get(ONLY)
        return command.edit if command else 0

    @property
    def paused(self) -> CycleStateSet | None:
        """The command that has paused it, as long as it has anything left to do; or None."""
        command = self._wanted.facts.get(ONLY)
        is_paused = command is not None and command.wanted == PAUSED
        return command if is_paused and not self.is_over else None

    @property
    def wanted_reason(self) -> str:
        """Why that command was given; empty where there was none."""
        command = self._wanted.facts.get(ONLY)
        return command.reason if command else ""

    @property
    def failed(self) -> CycleFailed | None:
        """Why it can't go on by itself, or None."""
        return self.lifecycle.failed

    @property
    def completed(self) -> Mapping[tuple[int, str], WorkCompleted]:
        """(round, item id) -> what came of it; of a phase that was redone the last redo."""
        if self._counting is None:
            self._counting = self.steering.counting(self._completed.facts)
        return self._counting

    def completed_in(self, round_number: int, phase: str) -> Mapping[str, WorkCompleted]:
        """Return item id -> what came of it, of one phase of a round; in the order of all."""
        if self._in_phases is None:
            found: dict[tuple[int, str], dict[str, WorkCompleted]] = {}
            for (number, item), fact in self.completed.items():
                found.setdefault((number, str(fact.phase)), {})[item] = fact
            self._in_phases = found
        return self._in_phases.get((round_number, str(phase)), {})

    @property
    def recorded(self) -> Mapping[tuple[int, str], WorkCompleted]:
        """(round, id with its redo) -> what came of it, of all redos."""
        return self._completed.facts

    @property
    def manifests(self) -> Mapping[int, ManifestFrozen]:
        """Round -> the shards it trains on; none as long as it is packed anew."""
        frozen = self._manifests.facts.items()
        redo_of = self.steering.redo_of
        return {number: fact for (number, at), fact in frozen if at == redo_of(number, PREPARING)}

    @property
    def attempts_opened(self) -> Mapping[int, AttemptOpened]:
        """Every attempt that was ever opened, by its number."""
        return self._opened.facts

    @property
    def attempts_adopted(self) -> Mapping[int, AttemptAdopted]:
        """Every attempt that went on under another leader, by its number."""
        return self._adopted.facts

    @property
    def attempts_closed(self) -> Mapping[int, AttemptClosed]:
        """Every attempt that has ended, by its number.

        Where a leader was replaced without knowing it, and closed what its successor has adopted,
        that doesn't count.
        """
        return {
            attempt: fact
            for attempt, fact in self._closed.facts.items()
            if (self._closed.rank(attempt) or ()) >= (self._adopted.rank(attempt) or ())
        }

    @property
    def verdicts(self) -> Mapping[int, VerdictReached]:
        """Round -> what the gate said, for the rounds of the canonical line."""
        found = (
            (done, self._verdicts.facts.get((done.round, done.final_checkpoint)))
            for done in self.rounds
        )
        return {done.round: verdict for done, verdict in found if verdict is not None}

    def steered_after(self, round_number: int) -> tuple[StudentSteered, ...]:
        """Return what people decided about generators after a round, students in their order."""
        return self._steered.after(round_number)

    @property
    def judged(self) -> AbstractSet[tuple[int, str]]:
        """Round and candidate of each verdict that was ever reached, on whatever line."""
        return self._verdicts.facts.keys()

    def outer_branch(self, round_number: int = 1) -> Mapping[str, OuterStepTaken]:
        """Return a round's outer steps that count, by their hashes, from the first to the last.

        They begin with what the canonical line has before that round.
        """
        wanted = (round_number, self.start_of(round_number))
        if wanted not in self._outer_branches:
            self._outer_branches[wanted] = outer_branch(self.outer_steps_in(round_number))
        return self._outer_branches[wanted]

    def outer_steps_in(self, round_number: int) -> Mapping[str, OuterStepTaken]:
        """Return a round's outer steps, on whatever line, but for those that are parked."""
        wanted = (round_number, self.start_of(round_number))
        taken, suspended = self._outer_steps.facts.items(), self._abandoned_steps.facts
        return {
            key: fact
            for key, fact in taken
            if (fact.round, fact.start) == wanted and key not in suspended
        }

    def has_outer_step(self, name: str) -> bool:
        """Say whether an outer step is known, on whatever line."""
        return name in self._outer_steps.facts

    def outer_steps(self) -> Iterator[OuterStepTaken]:
        """Yield every outer step that was ever taken, on whatever line."""
        yield from self._outer_steps.facts.values()

    @property
    def open_attempts(self) -> tuple[AttemptOpened, ...]:
        """The attempts that haven't ended, in the order of their numbers."""
        numbers = sorted(set(self._opened.facts) - set(self.attempts_closed))
        return tuple(self._opened.facts[number] for number in numbers)

    @property
    def next_attempt(self) -> int:
        """A number that no attempt has had yet; the first is 1. One that leapt doesn't count."""
        return climbed((*self._opened.facts, *self._closed.facts)) + 1

    def canonical_branch(self) -> tuple[Progress, ...]:
        """Return the canonical branch from the root to its leaf."""
        return self._tree.canonical_branch()

    def other_leaves(self) -> tuple[Progress, ...]:
        """Return the leaves of the tree that aren't canonical, the heaviest first."""
        return self._tree.other_leaves()

    def leaves(self) -> tuple[Leaf, ...]:
        """Return every leaf of the tree, the canonical one first."""
        return self._tree.leaves()

    @property
    def pinned(self) -> str:
        """The leaf that people want the line to lead through, known here or not; or empty."""
        pin = self._pin.facts.get(ONLY)
        return pin.leaf if pin else ""

    @property
    def pin_edit(self) -> int:
        """The edit number of the pin; the next one carries one more."""
        pin = self._pin.facts.get(ONLY)
        return pin.edit if pin else 0

    @property
    def suspended(self) -> frozenset[str]:
        """The checkpoints that were missing: lines that end in one don't compete."""
        found = self._parkings.facts.items()
        return frozenset(leaf for leaf, fact in found if fact.is_suspended)

    def suspension_edit(self, leaf: str) -> int:
        """The edit number of what was last said of a checkpoint; the next one carries one more."""
        fact = self._parkings.facts.get(leaf)
        return fact.edit if fact else 0

    def parkings(self) -> list[tuple[int, BranchSuspended]]:
        """Return the last suspension of each missing checkpoint, and the last attempt before it.

        They come in the order of their entries.
        """
        attempts = [(self._opened.order(attempt), attempt) for attempt in self._opened.facts]
        return [
            (max((attempt for at, attempt in attempts if at < order), default=0), fact)
            for order, fact in sorted(self._parkings.placed(), key=lambda placed: placed[0])
        ]

    def leaf_without(self, missing: frozenset[str]) -> Leaf | None:
        """Return the leaf that would be canonical if these checkpoints were parked too."""
        return self._tree.leaf_without(self.suspended | missing)

    @property
    def rounds(self) -> tuple[RoundCommitted, ...]:
        """The committed rounds of the canonical line."""
        return tuple(fact for fact in self.canonical_branch() if isinstance(fact, RoundCommitted))

    @property
    def rounds_committed(self) -> int:
        """How many rounds of the canonical line are over."""
        return len(self.rounds)

    @property
    def generator(self) -> str:
        """Artifact id of the promoted model in force, or empty."""
        rounds = self.rounds
        return rounds[-1].newest_generator if rounds else ""

    def last_checkpoint(
        self, round_number: int, without: AbstractSet[str] = frozenset()
    ) -> CheckpointCommitted | None:
        """Return the newest checkpoint that the canonical line has of a round, but for these."""
        found = (
            fact
            for fact in reversed(self.canonical_branch())
            if isinstance(fact, CheckpointCommitted) and fact.round == round_number
        )
        return next((fact for fact in found if fact.artifact not in without), None)

    def start_of(self, round_number: int) -> str:
        """Return the checkpoint that a round begins with: the last before it; empty for none."""
        before = self.last_checkpoint(round_number - 1) if round_number > 1 else None
        return "" if before is None else before.artifact

    def checkpoint(self, artifact: str) -> CheckpointCommitted | None:
        """Return what is known of a checkpoint, on whatever line; None where nothing is."""
        found = (fact for fact in self._tree.checkpoints() if fact.artifact == artifact)
        return next(found, None)

    def last_of_attempt(
        self, attempt: int, without: AbstractSet[str] = frozenset()
    ) -> CheckpointCommitted | None:
        """Return the newest checkpoint that a gang has made, on whatever line, but for these."""
        found = (fact for fact in self._tree.checkpoints() if fact.attempt == attempt)
        checkpoints = [fact for fact in found if fact.artifact not in without]
        return max(checkpoints, key=lambda fact: fact.step, default=None)

    def ends_at(self, round_number: int, artifact: str) -> bool:
        """Say whether the canonical line ends in this checkpoint of a round that isn't over."""
        last = self.last_checkpoint(round_number)
        is_open = self.rounds_committed + 1 == round_number
        return is_open and last is not None and last.artifact == artifact

    @property
    def has_nothing_to_do(self) -> bool:
        """Say whether no work is due now: it is over, or people have stopped or paused it."""
        return self.wanted in {STOPPED, PAUSED} or self.is_over

    @property
    def goes_on(self) -> bool:
        """Say whether it runs, or is only paused: what it needs is kept."""
        return not self.has_nothing_to_do or self.paused is not None

    @property
    def is_over(self) -> bool:
        """Say whether nothing is left to be done: all rounds are committed, or it failed."""
        if self.failed is not None:
            return True
        if self.started is None and self.training is None:
            return self.prepared is not None
        return self.rounds_committed >= self.rounds_wanted

    def placed(self) -> Iterator[tuple[Order, CycleFact]]:
        """Return the facts in force with the order of their entries: they make an equal state."""
        for part in self._parts():
            yield from part.placed()

    def digest(self) -> list[Any]:
        """Return hashes of everything that tells two states apart."""
        return [part.digest() for part in self._parts()]

    def _parts(self) -> tuple[Part, ...]:
        return (
            self._started,
            self._requested,
            self._training,
            self._wanted,
            self.lifecycle,
            self._completed,
            self._manifests,
            self._opened,
            self._adopted,
            self._closed,
            self._verdicts,
            self._outer_steps,
            self._abandoned_steps,
            self._steered,
            self._pin,
            self._parkings,
            self._tree,
            self.steering,
        )
