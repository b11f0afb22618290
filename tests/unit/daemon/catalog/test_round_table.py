"""cycles.tsv: what stands in it, and that it is always whole."""

from dataclasses import replace
from pathlib import Path

from jupiterd.cluster.facts.attempt_facts import AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    CycleStarted,
    Fact,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.ledger.state import State
from jupiterd.cycle.phases.view import item_id
from jupiterd.cycle.rounds.round_table import COLUMNS, table_text
from jupiterd.daemon.catalog.round_rows import round_rows
from jupiterd.daemon.queries.cycle.round_table_file import RoundTableFile
from jupiterd.ids import ArtifactId, CycleId
from tests.support.cluster.building import CYCLE, NODES, started
from tests.support.daemon.two_nodes import found, serving

MODELS = [ArtifactId(digit * 64) for digit in "123"]
JUDGED = "2026-01-02T03:04:05+00:00"


def wrote(number: int, cycle: CycleId, writer: str) -> WorkCompleted:
    item, told = item_id(number, "generate", 0), {"generator": writer, "template": "faq"}
    return WorkCompleted(
        cycle, number, "generate", item, NODES[0], {}, {"samples": 5.0}, summary=told
    )


def a_round(
    number: int, verdict: str, promoted: str, writer: str = MODELS[0], cycle: CycleId = CYCLE
) -> tuple[Fact, ...]:
    model = MODELS[number - 1]
    parent = MODELS[number - 2] if number > 1 else ""
    packed = {"bytes": 1000.0, "synthetic_bytes": 300.0 * (number > 1), "documents": 9.0}
    judged = {"incumbent_bpb": 2.5, "judged_at": JUDGED}
    return (
        WorkCompleted(cycle, number, "collect", item_id(number, "collect", 0), NODES[0], {},
                      elapsed_s=1.0),
        WorkCompleted(cycle, number, "collect", item_id(number, "collect", 1), NODES[1], {},
                      elapsed_s=3.04),
        WorkCompleted(cycle, number, "pack", item_id(number, "pack", 0), NODES[0], {}, packed),
        AttemptOpened(cycle, number, number, NODES[:1], "torch", parent, 0),
        CheckpointCommitted(cycle, number, parent, model, number, 50, 800 * number, 4, 2.5, True),
        AttemptClosed(cycle, number, "finished", 30.0),
        WorkCompleted(cycle, number, "gate", item_id(number, "gate", 0, model), NODES[0], {},
                      summary=judged),
        *([wrote(number, cycle, writer)] if number > 1 else []),
        VerdictReached(cycle, number, verdict, "why", 2.25, ArtifactId("9" * 64), model, parent),
        RoundCommitted(cycle, number, model, verdict, promoted),
    )  # fmt: skip


def text_of(*facts: Fact) -> str:
    state = State()
    for term, fact in enumerate(facts, 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return table_text(round_rows(state))


def rows_of(text: str) -> list[dict[str, str]]:
    head, *lines = text.splitlines()
    assert head.split("\t") == list(COLUMNS)
    return [dict(zip(COLUMNS, line.split("\t"), strict=True)) for line in lines]


def test_each_finished_round_has_a_line_and_the_running_one_has_none() -> None:
    third = a_round(3, "HOLD", MODELS[0])[:-1]
    facts = (*a_round(1, "PROMOTE", MODELS[0]), *a_round(2, "HOLD", MODELS[0]), *third)
    first, second = rows_of(text_of(started(rounds=3), *facts))
    assert (first["round"], first["verdict"], first["generator"]) == ("1", "PROMOTE", "")
    assert second == {
        "date": JUDGED, "cycle": CYCLE, "domain": "python", "round": "2", "verdict": "HOLD",
        "val_bpb": "2.250000", "incumbent_bpb": "2.500000", "tokens": "800",
        "collect_s": "3.0", "generate_s": "0.0", "filter_s": "", "pack_s": "0.0", "train_s": "30.0",
        "evaluate_s": "", "gate_s": "0.0", "synthetic_share": "0.3000", "generator": MODELS[0],
        "candidate": MODELS[1],
    }  # fmt: skip


def test_a_round_on_the_trunk_counts_its_own_tokens_alone() -> None:
    ended = CheckpointCommitted(
        CYCLE, 1, "", ArtifactId("e" * 64), 1, 40, 640, 3, 2.5, is_final=False, on_trunk=True
    )
    first, second = list(a_round(1, "HOLD", "")), list(a_round(2, "HOLD", ""))
    first[4] = replace(first[4], parent=ended.artifact)
    second[3] = replace(second[3], from_checkpoint=ended.artifact, follows=MODELS[0])
    second[4] = replace(second[4], tokens=640 + 800)
    rows = rows_of(text_of(started(), ended, *first, *second))
    assert [row["tokens"] for row in rows] == ["800", "800"]


def test_where_it_was_not_recorded_who_wrote_it_was_the_generator_in_force() -> None:
    named = CycleStarted(
        CYCLE, "python", "name: python\n", 2, "1m", 7, "2026-01-01T00:00:00Z",
        generator={"name": "org/wri\tter", "url": "http://box/v1", "model": "m"},
    )  # fmt: skip
    unsaid = a_round(2, "HOLD", "", writer="")
    rows = rows_of(text_of(named, *a_round(1, "PROMOTE", ""), *unsaid))
    assert [row["generator"] for row in rows] == ["", "org/wri?ter"], "nobody wrote in round 1"


def test_all_who_wrote_in_a_round_are_named_who_wrote_most_first() -> None:
    canary = replace(wrote(2, CYCLE, MODELS[1]), item="r2/generate/1", counts={"samples": 9.0})
    rows = rows_of(text_of(started(), *a_round(1, "HOLD", ""), *a_round(2, "HOLD", ""), canary))
    assert rows[1]["generator"] == f"{MODELS[1]},{MODELS[0]}"


def test_whatever_order_the_facts_come_in_the_text_is_the_same() -> None:
    facts = (started(), *a_round(1, "PROMOTE", MODELS[0]), *a_round(2, "HOLD", MODELS[0]))
    state = State()
    for term, fact in reversed([*enumerate(facts, 1)]):
        state.apply(fact, (term, NODES[0], "u", 1))
    assert table_text(round_rows(state)) == text_of(*facts)


async def test_the_file_is_written_whole_and_anew_whatever_lay_there(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        path = one.state_dir.round_table
        keeper = RoundTableFile(one.replica, path)
        assert await keeper.look()
        assert not path.exists(), "nothing is over yet"
        await found(one, facts=(started(), *a_round(1, "PROMOTE", MODELS[0])))
        path.write_text("date\tcyc")  # a file that somebody has cut off
        assert await keeper.look()
        assert len(rows_of(path.read_text())) == 1
        path.write_text("mine")
        assert await keeper.look()
        assert path.read_text() == "mine", "it is written when something has changed"
        await one.replica.append(2, a_round(2, "HOLD", MODELS[0]))
        assert await keeper.look()
        assert [row["round"] for row in rows_of(path.read_text())] == ["1", "2"]
        assert [each.name for each in path.parent.glob("*cycles*")] == ["cycles.tsv"]


async def test_a_file_that_cannot_be_written_is_tried_again(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(started(), *a_round(1, "PROMOTE", MODELS[0])))
        path = tmp_path / "not there yet" / "cycles.tsv"
        keeper = RoundTableFile(one.replica, path)
        assert not await keeper.look()
        path.parent.mkdir()
        assert await keeper.look()
        assert len(rows_of(path.read_text())) == 1
