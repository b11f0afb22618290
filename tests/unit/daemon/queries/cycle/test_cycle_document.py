"""The document of a cycle, built from facts through the real state."""

from dataclasses import replace
from typing import Any

import pytest

from jupiterd.cluster.facts.attempt_facts import LEFT_OPEN, AttemptClosed, AttemptOpened
from jupiterd.cluster.facts.facts import (
    BranchSuspended,
    CheckpointCommitted,
    CycleFailed,
    CycleStateSet,
    ManifestFrozen,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.cluster.ledger.cycle_state import CycleFact
from jupiterd.cluster.ledger.state import CycleState, State
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.leader.progress_board import ProgressBoard
from jupiterd.daemon.queries.cycle.cycle_document import Live, cycle_document
from jupiterd.errors import Bug
from jupiterd.ids import ArtifactId, NodeId, short
from jupiterd.protocol.frames import Progressed
from tests.support.cluster.building import CYCLE, NODES, paused, started
from tests.unit.daemon.catalog.test_model_catalog import silent

NAMED_KEYS = {
    "id", "domain", "state", "round", "phase", "step", "total_steps", "tokens", "loss", "val_bpb",
    "tokens_per_s", "epoch", "resumed_from_step", "gang", "verdicts", "model",
}  # fmt: skip
"""The keys that the design promises to scripts."""

FURTHER_KEYS = {
    "predicted_tokens_per_s", "measured_tokens_per_s", "kind", "rounds", "failure", "phases",
    "events", "islands", "outer_steps", "inner_steps", "lost_sources", "generators", "paused",
    "heavy_drops", "attempt", "attempt_in_round", "lost_generator",
    "self_hosting", "self_hosting_round", "writers", "promotions", "promoted",
    "lr", "grad_norm", "mfu",
    "held_out_loss", "best_step", "bits_per_byte_before", "bits_per_byte", "best_bits_per_byte",
    "ended_worse", "gang_encrypted", "stage",
}  # fmt: skip

FAILED = CycleFailed(CYCLE, "empty-source", "nothing there", "look again")
STOPPED = CycleStateSet(CYCLE, "stopped", "stopped by a person", 1)


def folded(*facts: CycleFact) -> CycleState:
    """The cycle's state after these facts, each of a term of its own."""
    state = State()
    for term, fact in enumerate(facts, 1):
        state.apply(fact, (term, NODES[0], "u", 1))
    return state.cycles[CYCLE]


def document(
    *facts: CycleFact, live: Live | None = None, model: str | None = None, has_leader: bool = True
) -> dict[str, Any]:
    return cycle_document(folded(*facts), live, model=model, has_leader=has_leader)


def phase(shown: dict[str, Any], name: str, number: int = 1) -> dict[str, Any]:
    return next(p for p in shown["phases"] if (p["round"], p["phase"]) == (number, name))


def work(name: str, piece: int = 0, number: int = 1, **fields: Any) -> WorkCompleted:
    item = f"r{number}/{name}/{piece}" + ("/k2" if name == "gate" else "")
    return WorkCompleted(
        CYCLE, number, name, item, NODES[0], {"out": ArtifactId("f" * 64)}, **fields
    )


def attempt(number: int, from_step: int = 0, round_number: int = 1) -> AttemptOpened:
    return AttemptOpened(CYCLE, round_number, number, NODES[:2], "torch/gloo", "", from_step)


def checkpoint(
    name: str, step: int, parent: str = "", number: int = 1, *, final: bool = False
) -> CheckpointCommitted:
    tokens = 1000 * step
    artifact = ArtifactId(name)
    return CheckpointCommitted(
        CYCLE, number, parent, artifact, 1, step, tokens, 4 * step, 3.5, final
    )


def verdict(said: str, number: int = 1, candidate: str = "k2") -> VerdictReached:
    return VerdictReached(
        CYCLE, number, said, "a reason", 2.5, ArtifactId("4" * 64), ArtifactId(candidate), ""
    )


def committed(said: str, number: int = 1, parent: str = "k2") -> RoundCommitted:
    return RoundCommitted(CYCLE, number, parent, said, parent if said == "PROMOTE" else "")


TRAINED = (
    started(),
    attempt(1),
    checkpoint("k1", 100),
    AttemptClosed(CYCLE, 1, "node b has gone", 10.0),
    attempt(2, from_step=100),
    checkpoint("k2", 200, "k1", final=True),
    AttemptClosed(CYCLE, 2, "finished", 30.0),
)


def training(done: int = 150) -> Live:
    """What a leader's board says while a gang trains."""
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.TRAIN, 100.0)
    gang = [{"node": NODES[0], "rank": 0, "engine": "torch", "device": "cpu", "pid": 4711}]
    board.show_gang(CYCLE, gang, {})
    values = {"loss": 2.75, "tokens_per_s": 5000.0}
    board.advance(CYCLE, "train", Progressed(done - 50, 200, "steps", values), 120.0)
    board.advance(CYCLE, "train", Progressed(done, 200, "steps", values), 130.0)
    return board.to_plain(130.0)[0]


def test_a_paused_cycle_says_who_paused_it_and_when() -> None:
    facts = folded(started(), paused(1))
    shown = cycle_document(
        facts, None, model=None, has_leader=False, names={NodeId(NODES[0]): "alpha"}
    )
    assert shown["state"] == "paused"
    assert shown["paused"] == {
        "node": NODES[0],
        "name": "alpha",
        "at": "2026-01-02T03:04:05+00:00",
        "reason": "asked for",
        "asks": False,
        "edit": 1,
    }
    assert document(started(), paused(1))["paused"]["name"] == NODES[0][:8]
    assert document(started(), paused(1), FAILED)["state"] == "failed"


def test_every_document_has_the_keys_that_scripts_rely_on() -> None:
    for shown in (document(started()), document(*TRAINED), document(*TRAINED, live=training())):
        assert set(shown) == NAMED_KEYS | FURTHER_KEYS


def test_a_fresh_cycle_waits_in_every_phase() -> None:
    shown = document(started())
    assert (shown["id"], shown["domain"], shown["round"], shown["rounds"]) == (
        CYCLE, "python", 1, 2,
    )  # fmt: skip
    assert (shown["phase"], shown["step"], shown["tokens"], shown["loss"]) == (None, 0, 0, None)
    assert (shown["epoch"], shown["resumed_from_step"], shown["gang"]) == (0, None, [])
    assert (shown["verdicts"], shown["val_bpb"], shown["model"]) == ([], None, None)
    assert [p["phase"] for p in shown["phases"]] == [str(p) for p in Phase]
    assert {p["state"] for p in shown["phases"]} == {"waiting"}


@pytest.mark.parametrize(
    ("facts", "has_leader", "state"),
    [
        ((started(),), True, "running"),
        ((started(),), False, "waiting"),
        ((started(), STOPPED), True, "stopped"),
        ((started(), STOPPED), False, "stopped"),
        ((started(), FAILED), True, "failed"),
        ((*TRAINED, committed("HOLD")), True, "running"),
        ((started(rounds=1), *TRAINED[1:], committed("HOLD")), True, "finished"),
        ((started(rounds=1), *TRAINED[1:], committed("HOLD"), STOPPED), True, "finished"),
    ],
)
def test_the_state_follows_from_the_facts(
    facts: tuple[CycleFact, ...], has_leader: bool, state: str
) -> None:
    assert document(*facts, has_leader=has_leader)["state"] == state


def test_a_failure_says_what_and_what_to_do() -> None:
    assert document(started(), FAILED)["failure"] == {
        "code": "empty-source",
        "message": "nothing there",
        "hint": "look again",
    }
    assert document(started())["failure"] is None


def test_a_finished_phase_tells_its_counts_and_how_fast_it_was() -> None:
    counts = {"documents": 10.0, "bytes": 5000.0, "clusters": 4.0}
    shown = document(
        started(),
        work("collect", 0, counts=counts, elapsed_s=2.0),
        work("collect", 1, counts=counts, elapsed_s=4.0),
    )
    collected = phase(shown, "collect")
    assert (collected["state"], collected["done"], collected["total"]) == ("done", 20, 20)
    assert (collected["unit"], collected["rate"], collected["elapsed_s"]) == (
        "documents", 5.0, 4.0,
    )  # fmt: skip
    assert "10,000 bytes" in collected["detail"]
    assert phase(shown, "filter")["state"] == "waiting"


def test_a_source_that_failed_is_told_until_a_later_round_has_it_again() -> None:
    lost = {"lost_source": "docs", "lost_reason": "no way"}
    facts = [started(), work("collect", 0), replace(work("collect", 1), summary=lost)]
    shown = document(*facts)
    (told,) = shown["lost_sources"]
    assert (told["round"], told["source"], told["reason"]) == (1, "docs", "no way")
    assert phase(shown, "collect")["detail"].endswith(told["told"])
    assert document(*facts, work("collect", 0, number=2))["lost_sources"] == []


def test_a_phase_that_dropped_more_than_half_is_told_until_a_later_round_is_better() -> None:
    counts = {"kept": 12.0, "dropped": 188.0, "dropped.few-letters": 180.0, "dropped.symbols": 6.0,
              "dropped.list": 2.0}  # fmt: skip
    facts = [started(), work("collect", counts={"documents": 200.0}), work("filter", counts=counts)]
    (told,) = document(*facts)["heavy_drops"]
    assert told == {
        "round": 1, "phase": "filter", "dropped": 188, "in": 200,
        "reasons": {"few-letters": 180, "symbols": 6},
        "told": "filter dropped 188 of 200 texts (94 %): few-letters 180, symbols 6",
    }  # fmt: skip
    later = [
        checkpoint("k2", 9, final=True),
        RoundCommitted(CYCLE, 1, ArtifactId("k2"), "HOLD", ""),
    ]
    assert document(*facts, *later)["heavy_drops"] == [told]
    better = work("filter", number=2, counts={"kept": 150.0, "dropped": 50.0})
    assert document(*facts, *later, better)["heavy_drops"] == []


def test_a_running_phase_shows_the_leader_s_readings() -> None:
    shown = document(*TRAINED[:5], live=training())
    assert (shown["phase"], shown["step"], shown["total_steps"]) == ("train", 150, 200)
    assert (shown["loss"], shown["tokens_per_s"]) == (2.75, 5000.0)
    assert [seat["pid"] for seat in shown["gang"]] == [4711]
    assert (shown["epoch"], shown["resumed_from_step"]) == (2, 100)
    trains = phase(shown, "train")
    assert (trains["state"], trains["done"], trains["unit"]) == ("running", 150, "steps")
    assert trains["rate"] == pytest.approx(5.0)
    assert trains["eta_s"] == pytest.approx(10.0)


def test_it_says_whether_what_a_gang_sends_can_be_read_on_the_way() -> None:
    def shown(nodes: tuple[str, ...], **settings: str) -> object:
        live = training()
        live["gang"] = [{"node": node, "rank": rank} for rank, node in enumerate(nodes)]
        begun = replace(started(), settings=settings)
        return document(begun, *TRAINED[1:5], live=live)["gang_encrypted"]

    assert shown(NODES[:2], gang_encryption="on") is True
    assert shown(NODES[:2], gang_encryption="off") is False
    assert shown(NODES[:2]) is False, "of a run of before"
    assert shown((NODES[0], NODES[0]), gang_encryption="on") is None, "nothing leaves the machine"
    assert document(*TRAINED)["gang_encrypted"] is None, "nobody trains"


def test_a_running_training_is_predicted_and_measured_by_what_the_leader_tells() -> None:
    live = training()
    live["values"]["predicted_tokens_per_s"] = 6_000.0
    assert speeds(document(*TRAINED[:5], live=live)) == (6_000, 5_000)
    assert speeds(document(*TRAINED[:5])) == (None, None), "where nobody tells, nobody knows"


def test_what_was_predicted_stands_beside_what_was_measured_after_the_end() -> None:
    facts = (started(), *predicted_attempt(1, 6_000.0, 40.0))
    shown = document(*facts)
    assert speeds(shown) == (6_000, 5_000)
    assert shown["tokens_per_s"] is None, "nothing is trained just now"
    values = phase(shown, "train")["values"]
    assert (values["predicted_tokens_per_s"], values["tokens_per_s"]) == (6_000, 5_000)
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.GATE, 100.0)
    judged = document(*facts, live=board.to_plain(130.0)[0])
    assert speeds(judged) == (6_000, 5_000)


def test_a_round_that_is_not_trained_yet_has_no_speeds_but_those_before_it_keep_theirs() -> None:
    facts = (*predicted_attempt(1, 6_000.0, 40.0), verdict("HOLD"), committed("HOLD"))
    shown = document(started(), *facts)
    assert (shown["round"], speeds(shown)) == (2, (None, None))
    assert phase(shown, "train")["values"]["predicted_tokens_per_s"] == 6_000


def test_each_round_is_compared_by_itself() -> None:
    first = (*predicted_attempt(1, 6_000.0, 40.0), verdict("HOLD"), committed("HOLD"))
    made = replace(checkpoint("k3", 100, "k2", number=2, final=True), attempt=2, tokens=300_000)
    begun = replace(attempt(2, round_number=2), predicted_tokens_per_s=3_000.0)
    opened = replace(begun, from_checkpoint="k2")
    shown = document(started(), *first, opened, made, AttemptClosed(CYCLE, 2, "finished", 50.0))
    assert speeds(shown) == (3_000, 2_000)
    assert phase(shown, "train")["values"]["predicted_tokens_per_s"] == 6_000


def speeds(shown: dict[str, Any]) -> tuple[float | None, float | None]:
    return shown["predicted_tokens_per_s"], shown["measured_tokens_per_s"]


def predicted_attempt(number: int, predicted: float, elapsed_s: float) -> tuple[CycleFact, ...]:
    """An attempt of 200,000 tokens that trains a round to its end."""
    opened = replace(attempt(number), predicted_tokens_per_s=predicted)
    made = replace(checkpoint("k2", 200, final=True), attempt=number)
    return opened, made, AttemptClosed(CYCLE, number, "finished", elapsed_s)


def test_facts_outrun_readings_that_are_late() -> None:
    shown = document(*TRAINED, work("evaluate", counts={"documents": 5.0}), live=training())
    assert phase(shown, "train")["state"] == "done"
    assert phase(shown, "evaluate")["state"] == "done"


def test_a_phase_tells_what_went_in_came_out_and_was_dropped() -> None:
    counts = {"kept": 7.0, "dropped": 4.0, "dropped.no-parse": 4.0}
    frozen = ManifestFrozen(CYCLE, 1, "", ArtifactId("1" * 64), (ArtifactId("2" * 64),), 90, 1000)
    shown = document(*TRAINED, work("filter", counts=counts), frozen)
    filtered, trained = phase(shown, "filter"), phase(shown, "train")
    assert (filtered["in"], filtered["out"], filtered["dropped"]) == (11, 7, {"no-parse": 4})
    assert (trained["in"], trained["out"]) == (90, 200)
    assert phase(shown, "gate")["dropped"] == {}


def test_a_trained_round_tells_of_its_ranks_and_how_often_they_began_anew() -> None:
    trained = phase(document(*TRAINED), "train")
    assert (trained["state"], trained["done"], trained["unit"]) == ("done", 200, "steps")
    assert trained["detail"] == "loss 3.500, 200,000 tokens, 2 ranks, begun anew once"
    assert trained["elapsed_s"] == 40.0
    assert trained["rate"] == pytest.approx(5.0)


def test_steps_that_nobody_timed_do_not_make_a_round_look_faster() -> None:
    left = AttemptClosed(CYCLE, 1, LEFT_OPEN, 0.01)
    second = replace(checkpoint("k2", 200, "k1", final=True), attempt=2)
    facts = [
        left if isinstance(fact, AttemptClosed) and fact.attempt == 1 else fact for fact in TRAINED
    ]
    facts = [
        second if isinstance(fact, CheckpointCommitted) and fact.is_final else fact
        for fact in facts
    ]
    trained = phase(document(*facts), "train")
    assert trained["detail"].endswith("without the time of 100 steps whose leader fell silent")
    assert trained["rate"] == pytest.approx(100 / 30, rel=0.01)


def test_who_trains_is_told_by_name_too() -> None:
    told = {NODES[0]: "attic"}
    shown = cycle_document(folded(started()), training(), model=None, has_leader=True, names=told)
    assert [seat["name"] for seat in shown["gang"]] == ["attic"]
    assert document(started(), live=training())["gang"][0]["name"] is None


def test_the_loss_of_the_gates_students_is_not_the_models() -> None:
    board = ProgressBoard()
    board.begin(CYCLE, 1, Phase.GATE, 100.0)
    board.advance(CYCLE, "r1/gate/0", Progressed(3, 9, "prompts", {"loss": 8.2}), 130.0)
    (live,) = board.to_plain(130.0)
    assert document(*TRAINED, live=live)["loss"] == 3.5


def test_between_checkpoints_the_last_one_counts_when_nobody_tells_more() -> None:
    shown = document(*TRAINED[:3])
    assert (shown["step"], shown["tokens"], shown["loss"]) == (100, 100_000, 3.5)
    assert phase(shown, "train")["state"] == "waiting"


def test_generating_is_skipped_with_the_reason() -> None:
    first = document(started(), work("collect"), work("filter"))
    skipped = phase(first, "generate")
    assert (skipped["state"], skipped["detail"]) == (
        "skipped", "round 1 trains on real data alone",
    )  # fmt: skip
    facts = (*TRAINED, verdict("HOLD"), committed("HOLD"), work("filter", number=2))
    second = phase(document(*facts), "generate", 2)
    assert second["state"] == "skipped"
    assert "no generator was promoted" in second["detail"]


def test_a_promoted_model_has_something_to_generate() -> None:
    facts = (*TRAINED, verdict("PROMOTE"), committed("PROMOTE"))
    assert phase(document(*facts, work("collect", number=2)), "generate", 2)["state"] == "waiting"
    counts = {"samples": 4.0, "prompts": 5.0, "tokens": 64.0}
    done = phase(document(*facts, work("generate", number=2, counts=counts)), "generate", 2)
    assert (done["state"], done["done"], done["unit"]) == ("done", 4, "samples")
    assert phase(document(*facts), "generate", 1)["state"] == "skipped"


def test_a_domain_without_templates_has_a_promoted_model_and_nothing_to_generate() -> None:
    begun = replace(started(), domain_yaml=silent().domain_yaml)
    shown = document(begun, *TRAINED[1:], verdict("PROMOTE"), committed("PROMOTE"))
    model = committed("PROMOTE").final_checkpoint
    assert (shown["promoted"], shown["writers"]) == (model, [])
    assert shown["promotions"] == [f"round 1: student {short(model)} was promoted"]
    facts = (*TRAINED[1:], verdict("PROMOTE"), committed("PROMOTE"), work("filter", number=2))
    skipped = phase(document(begun, *facts), "generate", 2)
    assert skipped["state"] == "skipped"
    assert skipped["detail"] == "the domain has no templates, so all rounds use real data alone"


def test_verdicts_carry_the_numbers_of_the_gate() -> None:
    summary = {
        "incumbent_bpb": 2.75,
        "base_bpb": 2.8,
        "forgetting": 0.01,
        "generator_bpb": 2.75,
        "byte_bpb": 2.75,
        "unigram_bpb": 4.5,
        "improvement_bpb": 0.25,
        "lower_bound_bpb": 0.2,
        "margin_bpb": 0.005,
        "vault_gap_bpb": None,
        "vault_alarm": None,
        "teaching_gain_bpb": 0.01,
        "control_gain_bpb": None,
    }
    shown = document(*TRAINED, work("gate", summary=summary), verdict("HOLD"), committed("HOLD"))
    assert shown["verdicts"] == [
        {
            "round": 1,
            "verdict": "HOLD",
            "candidate": verdict("HOLD").candidate,
            "val_bpb": 2.5,
            "reason": "a reason",
            **summary,
        }
    ]
    assert shown["val_bpb"] == 2.5
    assert shown["round"] == 2


def test_events_tell_of_each_attempt_and_of_its_end_unless_that_was_orderly() -> None:
    events = document(*TRAINED)["events"]
    assert [event["text"] for event in events] == [
        "attempt 1: 2 ranks (torch/gloo) from the start of the round",
        "attempt 1 ended: node b has gone",
        "attempt 2: 2 ranks (torch/gloo) from step 100",
    ]
    numbers = [event["seq"] for event in events]
    assert numbers == sorted(set(numbers))


def test_attempts_are_counted_in_their_round_however_many_others_the_cluster_has_had() -> None:
    later = (started(), attempt(4), AttemptClosed(CYCLE, 4, "node b has gone", 10.0), attempt(6))
    shown = document(*later)
    assert [event["text"].partition(":")[0] for event in shown["events"]] == [
        "attempt 1", "attempt 1 ended", "attempt 2",
    ]  # fmt: skip
    assert (shown["epoch"], shown["attempt"], shown["attempt_in_round"]) == (6, 6, 2)


def test_events_tell_of_lines_that_were_parked_and_taken_up_again() -> None:
    def shown(*more: BranchSuspended) -> list[dict[str, Any]]:
        return document(*TRAINED, *more)["events"]

    before = shown()[-1]["seq"]
    *_, suspended = shown(BranchSuspended(CYCLE, "k2" + "0" * 62, True, 1))
    *_, back = shown(BranchSuspended(CYCLE, "k2" + "0" * 62, False, 2))
    assert suspended["text"].endswith("-k2000000 is parked: nobody in reach has its checkpoint")
    assert back["text"].endswith("-k2000000 competes again: its checkpoint has turned up")
    assert before < suspended["seq"] < back["seq"]


def test_the_model_is_where_this_machine_has_it() -> None:
    assert document(*TRAINED, model="/somewhere/round-1")["model"] == "/somewhere/round-1"


def test_a_cycle_nobody_started_is_never_shown() -> None:
    with pytest.raises(Bug):
        document(attempt(1))


def proxy_work(name: str, elapsed_s: float, **fields: Any) -> WorkCompleted:
    item = f"r1/gate/proxies/{name}/k2"
    return WorkCompleted(CYCLE, 1, "gate", item, NODES[0], {}, elapsed_s=elapsed_s, **fields)


def test_small_students_are_told_beside_what_the_gate_has_judged() -> None:
    students = {"proxy_students": 1.0, "documents": 12.0}
    facts = (
        work("gate", counts={"documents": 65.0}, elapsed_s=0.5),
        proxy_work("write-candidate-0", 4.0, counts={"samples": 30.0, "prompts": 64.0}),
        proxy_work("candidate-7001", 3.0, counts=students),
        proxy_work("real-7001", 2.0, counts=students),
        work("gate", 1, counts={"documents": 65.0}, elapsed_s=0.5),
    )
    shown = phase(document(*TRAINED, *facts, verdict("HOLD"), committed("HOLD")), "gate")
    assert (shown["done"], shown["unit"]) == (65, "documents")
    assert shown["elapsed_s"] == pytest.approx(0.5 + 4.0 + 3.0)
    assert shown["detail"] == "2 small students trained"
