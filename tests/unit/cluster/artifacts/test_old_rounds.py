"""What may go of old rounds, proved by the table of phases itself: whatever it asks for is here."""

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.artifacts.old_rounds import outlived
from jupiterd.cluster.artifacts.replication_policy import of_record
from jupiterd.cluster.facts.facts import ManifestFrozen, WorkCompleted
from jupiterd.cluster.ledger.cycle_state import CycleFact, CycleState
from jupiterd.cycle.base.work_item import WorkItem, WorkResult
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.generation.promotion import ActiveGenerators
from jupiterd.cycle.phases.steps import CloseRound, RunItems, TrainRound
from jupiterd.cycle.phases.table import next_step
from jupiterd.cycle.phases.view import RoundView
from jupiterd.cycle.training.plan import parse_model
from jupiterd.ids import ArtifactId
from jupiterd.locations import config_folder
from tests.support.cluster.building import CYCLE, NODES, data_asked, pinned, started, training
from tests.unit.cluster.artifacts.test_retention import run_of

DOMAIN = parse_domain(
    """
version: 1
domain: tiny
title: A tiny domain
language: code:python
data_sources:
  - {kind: python_stdlib}
  - {kind: folder, path: /data, license: MIT}
generation:
  templates: [{kind: complete_function, samples: 10}]
holdout: {salt: s}
""",
    "tiny.yaml",
)
SHAPE = parse_model((config_folder() / "models" / "1m.yaml").read_text())
OUTPUTS = {
    "collect": ("train", "holdout", "state", "skipped"),
    "generate": ("samples", "parents"),
    "clean": ("clean", "dropped"),
    "unite": ("kept", "dropped"),
    "pack": ("shards", "tokenizer"),
    "evaluate": ("scores",),
    "gate": ("verdict",),
}


def _active_generators(generates: bool) -> ActiveGenerators:
    return ActiveGenerators({"complete_function": ("promoted",)} if generates else {})


@dataclass
class Walk:
    """A cycle on its way, item by item, as the table of phases asks."""

    changes: bool = True
    """What is collected differs from round to round."""
    keeps_parents: bool = True
    completed: dict[str, WorkResult] = field(default_factory=dict[str, WorkResult])
    facts: list[CycleFact] = field(default_factory=lambda: [started(rounds=9)])
    made: set[ArtifactId] = field(default_factory=set[ArtifactId])
    read: set[ArtifactId] = field(default_factory=set[ArtifactId])

    def go(self, number: int, *, generates: bool = False, line: str = "") -> Iterator[str]:
        """Walk through one round; yield the name of each item once it is done."""
        trained = None
        while True:
            active = _active_generators(generates)
            view = RoundView(
                CYCLE, number, 7, "", self.completed, trained, 0, active_generators=active
            )
            match next_step(view, DOMAIN, SHAPE)[0]:
                case RunItems(_, items):
                    for item in items:
                        self._do(number, item)
                        yield item.id
                case TrainRound(tokenizer, shards, held_out):
                    self.read |= {tokenizer, shards, *held_out}
                    trained = ArtifactId(f"model{number}{line}".ljust(64, "0"))
                    yield "train"
                case CloseRound():
                    return

    def rounds(self, *, to: int) -> "Walk":
        """Walk through so many rounds; all but the first one generate."""
        for number in range(1, to + 1):
            list(self.go(number, generates=number > 1))
        return self

    @property
    def state(self) -> CycleState:
        return run_of(*self.facts)

    def _do(self, number: int, item: WorkItem) -> None:
        self.read |= set(item.inputs.values())
        is_same = item.task == "collect" and not self.changes
        label = item.id.partition("/")[2] if is_same else item.id
        names = [n for n in OUTPUTS[item.task] if n != "parents" or self.keeps_parents]
        outputs = {name: ArtifactId(f"{label}-{name}") for name in names}
        self.made |= set(outputs.values())
        self.completed[item.id] = WorkResult(outputs)
        done = WorkCompleted(CYCLE, number, str(item.phase), item.id, NODES[0], outputs)
        self.facts.append(done)


def test_of_rounds_older_than_the_last_two_goes_what_lay_on_the_way_to_the_shards() -> None:
    walk = Walk().rounds(to=4)
    gone = outlived([walk.state], 2)
    collected = {f"r{n}/collect/{source}-{name}" for n in (1, 2) for source in (0, 1)
                 for name in ("train", "state")}  # fmt: skip
    batches = [("r1", 2), ("r2", 3)]  # two sources, and in round 2 what was generated
    cleaned = {f"{r}/filter/{number}-{name}" for r, count in batches
               for number in range(1, count + 1) for name in ("clean", "dropped")}  # fmt: skip
    assert gone == collected | cleaned
    assert outlived([walk.state], 4) == frozenset()


def test_the_newest_packed_round_stays_whole_whatever_is_set() -> None:
    walk = Walk().rounds(to=2)
    assert outlived([walk.state], 0) == outlived([walk.state], 1)
    assert not any(each.startswith("r2/") for each in outlived([walk.state], 0))


def test_what_a_source_that_has_not_changed_gave_stays_as_long_as_a_newer_round_names_it() -> None:
    gone = outlived([Walk(changes=False).rounds(to=4).state], 2)
    assert gone
    assert not any("collect" in each for each in gone)


def test_collected_text_stays_where_made_samples_may_have_their_parents_in_it_alone() -> None:
    gone = outlived([Walk(keeps_parents=False).rounds(to=4).state], 1)
    assert {each for each in gone if each.endswith("-train")} == {
        "r1/collect/0-train", "r1/collect/1-train",
    }  # fmt: skip
    assert "r3/collect/0-state" in gone


def test_what_another_fact_or_run_names_stays() -> None:
    walk = Walk().rounds(to=4)
    shards = (ArtifactId("r1/filter/1-clean"),)
    named = ManifestFrozen(CYCLE, 9, "", ArtifactId("tok"), shards, 1, 1)
    other = run_of(training(), pinned("r1/filter/2-clean"))
    gone = outlived([walk.state], 2)
    assert gone - outlived([run_of(*walk.facts, named), other], 2) == {
        "r1/filter/1-clean", "r1/filter/2-clean",
    }  # fmt: skip


def test_what_is_another_output_of_the_same_work_stays() -> None:
    walk = Walk().rounds(to=4)
    assert {"r1/collect/0-train", "r1/collect/0-state"} <= outlived([walk.state], 2)
    facts = [
        replace(fact, outputs={**fact.outputs, "holdout": fact.outputs["train"]})
        if isinstance(fact, WorkCompleted) and fact.item == "r1/collect/0"
        else fact
        for fact in walk.facts
    ]
    gone = outlived([run_of(*facts)], 2)
    assert "r1/collect/0-train" not in gone
    assert "r1/collect/0-state" in gone


def test_nothing_goes_of_data_sets_and_of_what_nobody_knows_the_start_of() -> None:
    facts = Walk().rounds(to=4).facts[1:]
    assert outlived([run_of(*facts)], 2) == frozenset()
    assert outlived([run_of(data_asked(), *facts)], 2) == frozenset()


def test_what_some_node_may_have_let_go_is_copied_no_more() -> None:
    walk = Walk().rounds(to=3)
    record = of_record({CYCLE: walk.state})
    assert record == walk.made - outlived([walk.state], 1)
    assert {"r3/collect/0-train", "r2/filter/0-kept", "r1/collect/0-holdout"} <= record


@st.composite
def walks(draw: st.DrawFn) -> tuple[Walk, int]:
    """Draw a cycle that stands somewhere, and how many rounds were begun."""
    walk = Walk(changes=draw(st.booleans()), keeps_parents=draw(st.booleans()))
    rounds = draw(st.integers(1, 5))
    for number in range(1, rounds):
        list(walk.go(number, generates=number > 1 and draw(st.booleans())))
    last = walk.go(rounds, generates=draw(st.booleans()) and rounds > 1)
    for _ in range(draw(st.integers(0, 12))):
        next(last, "")
    return walk, rounds


@given(walks(), st.integers(1, 3), st.data())
def test_whoever_goes_on_from_any_leaf_finds_all_it_reads(
    walked: tuple[Walk, int], kept: int, data: st.DataObject
) -> None:
    walk, rounds = walked
    gone = outlived([walk.state], kept)
    later = replace(walk, completed=dict(walk.completed), facts=list(walk.facts), read=set())
    for number in range(data.draw(st.integers(1, rounds)), rounds + 3):
        list(later.go(number, generates=data.draw(st.booleans()), line="again"))
    assert gone.isdisjoint(later.read)
    assert gone <= walk.made
    assert not any(
        each.endswith(("kept", "holdout", "samples", "parents", "shards", "tokenizer", "scores"))
        for each in gone
    )


@given(walks(), st.integers(1, 3))
def test_what_goes_is_gone_for_good_as_the_cycle_goes_on(
    walked: tuple[Walk, int], kept: int
) -> None:
    walk, rounds = walked
    gone = outlived([walk.state], kept)
    for number in range(rounds, rounds + 3):
        for _ in walk.go(number):
            now = outlived([walk.state], kept)
            assert gone <= now
            gone = now
