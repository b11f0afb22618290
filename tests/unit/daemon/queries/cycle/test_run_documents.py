"""The documents of runs: what scripts rely on, and the proof of what was trained on."""

import json
import threading
from dataclasses import replace
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.attempt_facts import AttemptOpened
from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    CycleFailed,
    Fact,
    ManifestFrozen,
    RoundCommitted,
    WorkCompleted,
)
from jupiterd.cluster.ledger.cycle_state import CycleState
from jupiterd.cluster.ledger.lww_registers import fact_hash
from jupiterd.ctl.output.data_lines import audit_lines
from jupiterd.cycle.islands.outer_orders import Member, OuterTraining, first_orders, next_order
from jupiterd.cycle.islands.outer_round import Closing
from jupiterd.cycle.runs.run_phases import evaluation_id
from jupiterd.cycle.training.schedule import Schedule
from jupiterd.daemon.catalog.outer_step_mapping import fact_of
from jupiterd.daemon.queries.cluster.status_document import train_document
from jupiterd.daemon.queries.cycle import run_documents
from jupiterd.daemon.queries.cycle.run_documents import (
    audit_document,
    data_document,
)
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, CycleId
from jupiterd.locations import config_folder
from tests.support.cluster.building import CYCLE, NODES, data_asked, started, training
from tests.support.daemon.two_nodes import found, serving
from tests.unit.daemon.queries.cycle.test_cycle_document import FURTHER_KEYS, NAMED_KEYS

SEQ_LEN = 64  # as `training` asks
MADE = WorkCompleted(
    CYCLE, 1, "pack", "r1/pack/0", NODES[0],
    {"tokenizer": ArtifactId("7" * 64), "shards": ArtifactId("5" * 64)},
    {"tokens": 10_000.0, "documents": 9.0, "bytes": 40_000.0, "vocab_size": 300.0,
     "holdout_documents": 1.0},
)  # fmt: skip
MANIFEST = ManifestFrozen(CYCLE, 1, "", ArtifactId("7" * 64), (ArtifactId("5" * 64),), 156, 10_000)


def attempt(number: int, loaded: str = "") -> AttemptOpened:
    return AttemptOpened(CYCLE, 1, number, NODES[:1], "torch", loaded, 0)


def checkpoint(name: str, cursor: int, parent: str, number: int) -> CheckpointCommitted:
    artifact, tokens = ArtifactId(name), cursor * SEQ_LEN
    return CheckpointCommitted(
        CYCLE, 1, parent, artifact, number, cursor // 4, tokens, cursor, 3.5, False
    )


LAST = replace(checkpoint("k3", 120, "k2", 2), is_final=True)
BEFORE_LAST = (
    data_asked(), training(), MADE, MANIFEST,
    attempt(1), checkpoint("k1", 40, "", 1), checkpoint("k2", 80, "k1", 1), attempt(2, "k2"),
)  # fmt: skip
TRAINED = (*BEFORE_LAST, LAST)


async def audited(folder: Path, *facts: Fact) -> dict[str, Any]:
    async with serving(folder, "one") as one:
        await found(one, facts=facts)
        return await audit_document(one.replica.state, one.artifact_cache.store, "")


def problems(document: dict[str, Any]) -> list[str]:
    (only,) = document["audit"]
    (part,) = only["rounds"]
    assert only["ok"] == (not part["problems"] and not only["problems"])
    return [*part["problems"], *only["problems"]]


async def test_a_long_line_is_looked_up_once_a_gang_and_read_beside_the_loop(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    looked_up: list[str] = []
    readers: set[int] = set()
    known = CycleState.checkpoint

    def counted(run: CycleState, artifact: str) -> CheckpointCommitted | None:
        looked_up.append(artifact)
        return known(run, artifact)

    def read(*_: object) -> None:
        readers.add(threading.get_ident())

    monkeypatch.setattr(CycleState, "checkpoint", counted)
    monkeypatch.setattr(run_documents, "_contents", read)
    names = ["k2", *(f"m{number}" for number in range(50))]
    more = [
        checkpoint(name, 120 + 4 * number, parent, 2)
        for number, (parent, name) in enumerate(pairwise(names))
    ]
    assert problems(await audited(tmp_path, *BEFORE_LAST, *more)) == []
    assert looked_up == ["k2"]
    assert threading.get_ident() not in readers


async def test_a_run_through_two_gangs_is_proved(tmp_path: Path) -> None:
    document = await audited(tmp_path, *TRAINED)
    assert problems(document) == []
    (only,) = document["audit"]
    assert (only["kind"], only["name"], only["checkpoints"]) == ("train", "letters", 3)
    assert [(part["first"], part["end"]) for part in only["rounds"][0]["ranges"]] == [
        (0, 40), (40, 80), (80, 120),
    ]  # fmt: skip


async def test_a_gang_that_loaded_an_older_checkpoint_than_the_line_says_is_an_overlap(
    tmp_path: Path,
) -> None:
    planted = [attempt(2, "k1") if fact == attempt(2, "k2") else fact for fact in TRAINED]
    assert "[40, 80) was trained on twice" in problems(await audited(tmp_path, *planted))[0]


async def test_a_line_that_leaves_a_checkpoint_out_is_a_gap(tmp_path: Path) -> None:
    document = await audited(tmp_path, *BEFORE_LAST, replace(LAST, parent="k1"))
    assert "no checkpoint contains [40, 80)" in problems(document)[0]


async def test_tokens_that_don_t_add_up_are_told(tmp_path: Path) -> None:
    document = await audited(tmp_path, *BEFORE_LAST, replace(LAST, tokens=121 * SEQ_LEN))
    assert "reports 7744 tokens of round 1, and its ranges hold 7680" in problems(document)[0]


@pytest.mark.parametrize(("cursor", "ok"), [(40, True), (44, False)])
async def test_a_checkpoint_must_say_itself_what_was_recorded_of_it(
    tmp_path: Path, cursor: int, ok: bool
) -> None:
    made = tmp_path / "made" / "training_state"
    made.mkdir(parents=True)
    state = {"round": 1, "step": 10, "cursor": cursor, "tokens": 40 * SEQ_LEN}
    (made / "state.json").write_text(json.dumps(state))
    async with serving(tmp_path, "one") as one:
        artifact = one.artifact_cache.store.ingest(made.parent)
        first = checkpoint(artifact, 40, "", 1)
        await found(one, facts=(data_asked(), training(), MADE, MANIFEST, attempt(1), first))
        document = await audit_document(one.replica.state, one.artifact_cache.store, "letters")
    assert document["audit"][0]["checkpoints_read"] == 1
    assert (problems(document) == []) is ok


async def test_a_cycle_is_proved_round_by_round(tmp_path: Path) -> None:
    folder = config_folder()
    asked = replace(
        started(),
        domain_yaml=(folder / "domains" / "python.yaml").read_text(),
        model_yaml=(folder / "models" / "1m.yaml").read_text(),
    )
    of_seq_len = 256 * 40
    rounds = [
        fact
        for number, parent, name in ((1, "", "k1"), (2, "k1", "k2"))
        for fact in (
            replace(MANIFEST, round=number),
            replace(attempt(number, parent), round=number),
            replace(
                checkpoint(name, 40, parent, number),
                round=number, tokens=number * of_seq_len, is_final=True,
            ),
            RoundCommitted(CYCLE, number, name, "HOLD", ""),
        )
    ]  # fmt: skip
    document = await audited(tmp_path, asked, *rounds)
    (only,) = document["audit"]
    assert only["ok"], only
    assert [(part["round"], part["cursor"], part["tokens"]) for part in only["rounds"]] == [
        (1, 40, of_seq_len), (2, 40, of_seq_len),
    ]  # fmt: skip


async def test_a_round_on_the_trunk_is_proved_from_the_trunks_end(tmp_path: Path) -> None:
    folder = config_folder()
    asked = replace(
        started(),
        domain_yaml=(folder / "domains" / "python.yaml").read_text(),
        model_yaml=(folder / "models" / "1m.yaml").read_text(),
    )
    first = [
        MANIFEST,
        attempt(1),
        replace(checkpoint("t1", 28, "", 1), tokens=28 * 256, on_trunk=True),
        replace(checkpoint("d1", 40, "t1", 1), tokens=40 * 256, is_final=True),
        RoundCommitted(CYCLE, 1, "d1", "HOLD", ""),
    ]
    second = [
        replace(MANIFEST, round=2),
        replace(attempt(2, "t1"), round=2, follows="d1"),
        replace(checkpoint("t2", 28, "d1", 2), round=2, tokens=56 * 256, on_trunk=True),
        replace(checkpoint("d2", 40, "t2", 2), round=2, tokens=68 * 256, is_final=True),
    ]
    document = await audited(tmp_path / "sound", asked, *first, *second)
    (only,) = document["audit"]
    assert only["ok"], only
    assert [
        (part["tokens"], part["began_with_tokens"], part["trunk_cursor"], part["cursor"])
        for part in only["rounds"]
    ] == [(40 * 256, 0, 28, 40), (40 * 256, 28 * 256, 28, 40)]
    told = "trunk [0, 28), then a branch [28, 40) for the gate"
    assert audit_lines(document)[2:5:2] == [
        f"  round 1: {told}",
        f"  round 2: after 7,168 tokens of earlier rounds, {told}",
    ]
    untrue = [replace(fact, from_checkpoint="d1") if fact == second[1] else fact for fact in second]
    document = await audited(tmp_path / "untrue", asked, *first, *untrue)
    assert "reports 4096 tokens of round 2, and its ranges hold 7168" in str(document)


async def test_nothing_trained_is_nothing_to_prove_and_a_wrong_name_is_told(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(data_asked(), training()))
        assert await audit_document(one.replica.state, one.artifact_cache.store, "") == {
            "schema": "jupiter/v1",
            "audit": [],
        }
        with pytest.raises(NotFoundError, match="is called poems"):
            await audit_document(one.replica.state, one.artifact_cache.store, "poems")


async def test_a_run_is_told_with_the_keys_of_a_cycle(tmp_path: Path) -> None:
    scored = WorkCompleted(
        CYCLE, 1, "evaluate", evaluation_id("k3"), NODES[0], {}, {"documents": 1.0},
        {"val_bpb": 2.25},
    )  # fmt: skip
    other = CycleId("e" * 16)
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(replace(started(), cycle=other), *TRAINED))
        shown = train_document(one.observers.sources, "")["train"]
        assert set(shown) == NAMED_KEYS | FURTHER_KEYS
        assert (shown["id"], shown["domain"], shown["kind"]) == (CYCLE, "letters", "train")
        assert shown["events"][0]["text"].endswith(" from the start")
        assert (shown["state"], shown["step"], shown["val_bpb"]) == ("waiting", 30, None)
        assert [row["phase"] for row in shown["phases"]] == ["pack", "train", "evaluate"]
        assert shown["phases"][0]["detail"].startswith("9 documents of 40,000 bytes")
        await one.replica.append(1, [scored, RoundCommitted(CYCLE, 1, "k3", "", "")])
        ended = train_document(one.observers.sources, CYCLE)["train"]
        assert (ended["state"], ended["val_bpb"], ended["verdicts"]) == ("finished", 2.25, [])
        assert train_document(one.observers.sources, other)["train"] is None
        for called in ("letters", CYCLE[:6]):
            assert train_document(one.observers.sources, called)["train"]["id"] == CYCLE
        with pytest.raises(NotFoundError, match="no training run is called nobody") as caught:
            train_document(one.observers.sources, "nobody")
        assert caught.value.hint == "the newest is letters: jupiterctl train status"


async def test_data_sets_are_listed_with_how_far_they_are(tmp_path: Path) -> None:
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(data_asked(),))
        (row,) = (await data_document(one.observers.sources, ""))["data"]
        assert (row["name"], row["state"], row["tokens"]) == ("letters", "preparing", None)
        await one.replica.append(1, [CycleFailed(CYCLE, "empty-source", "nothing there", "")])
        (row,) = (await data_document(one.observers.sources, ""))["data"]
        assert (row["state"], row["failure"]) == ("failed", "nothing there")
        await one.replica.append(1, [MADE])
        (row,) = (await data_document(one.observers.sources, ""))["data"]
        assert (row["state"], row["tokens"], row["held_here"]) == ("ready", 10_000, False)
        assert (await data_document(one.observers.sources, CYCLE))["data"]["kind"] == "data"


def island_line(*, is_over: bool = False) -> list[Fact]:
    """Two rounds of two islands; the second island's way of the first came too late."""
    run = OuterTraining(Schedule(1.0, 20, 0, 0), 4)
    members = (Member("a" * 16), Member("b" * 16))
    (first,) = first_orders(run, members, 10)
    closing = Closing(("a" * 16,), (10 * 2 * SEQ_LEN,), (), ("b" * 16,))
    second = next_order(run, [first], closing, members, 10)
    both = Closing(("a" * 16, "b" * 16), (20 * SEQ_LEN, 20 * SEQ_LEN))
    third = next_order(run, [second], both, members, 10)
    facts: list[Fact] = [fact_of(first, CYCLE, "", ())]
    for order, ways in ((second, ("5" * 64,)), (third, ("5" * 64, "6" * 64))):
        before = fact_hash(facts[-1])
        facts.append(fact_of(order, CYCLE, before, [ArtifactId(way) for way in ways]))
    return facts if is_over else facts[:2]


async def test_what_islands_have_trained_on_is_proved_along_their_outer_steps(
    tmp_path: Path,
) -> None:
    asked = (data_asked(), training(), MADE, MANIFEST)
    document = await audited(tmp_path / "first", *asked, *island_line())
    assert problems(document) == []
    (only,) = document["audit"]
    (part,) = only["rounds"]
    assert (part["tokens"], part["cursor"], only["outer_steps"]) == (20 * SEQ_LEN, 60, 1)
    assert [(each["first"], each["end"]) for each in part["ranges"]] == [(0, 20)]
    assert (only["given_out"], only["returned"]) == ([[20, 60]], [])
    last = CheckpointCommitted(
        CYCLE, 1, "", ArtifactId("k"), 3, 20, 60 * SEQ_LEN, 60, 3.5, is_final=True
    )
    document = await audited(tmp_path / "over", *asked, *island_line(is_over=True), last)
    assert problems(document) == []
    assert document["audit"][0]["given_out"] == []
    wrong = replace(last, tokens=80 * SEQ_LEN)
    document = await audited(tmp_path / "wrong", *asked, *island_line(is_over=True), wrong)
    assert "recorded with 5120 tokens up to 60" in problems(document)[0]


async def test_islands_are_no_runs_of_their_own_to_people(tmp_path: Path) -> None:
    island = replace(
        training("letters/1"), cycle=CycleId("e" * 16), parent=CYCLE, engine="mlx", nodes=NODES[:1]
    )
    async with serving(tmp_path, "one") as one:
        await found(one, facts=(*BEFORE_LAST, island))
        shown = train_document(one.observers.sources, "")["train"]
        assert (shown["id"], shown["domain"]) == (CYCLE, "letters")
        assert shown["islands"] == [
            {
                "island": 1, "id": "e" * 16, "engine": "mlx", "nodes": [NODES[0]], "step": 0,
                "tokens_per_s": None, "outer_step": 0, "state": "waiting",
            }
        ]  # fmt: skip
        await one.replica.append(1, [CycleFailed(island.cycle, "x", "its GPU is gone", "mend it")])
        shown = train_document(one.observers.sources, "")["train"]
        assert shown["islands"][0]["state"] == "failed"
        texts = [event["text"] for event in shown["events"]]
        assert "island 1, failed: its GPU is gone; mend it" in texts
