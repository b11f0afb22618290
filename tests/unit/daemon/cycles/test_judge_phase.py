"""How the leader has a judge break a tie: real workers, real small models, a real server."""

import json
import random
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any, cast

import pytest

from jupiterd.cluster.facts.facts import (
    CheckpointCommitted,
    Fact,
    RoleAssigned,
    RoundCommitted,
    VerdictReached,
    WorkCompleted,
)
from jupiterd.ctl.cycle.verdict_folder import decide_again
from jupiterd.cycle.base.work_item import Phase, WorkItem
from jupiterd.cycle.data.lineage import Sample
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.gate.record import VERDICT_FILE
from jupiterd.cycle.gate.sanity import Sanity
from jupiterd.cycle.rounds.explanation import explain
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.catalog.gate_history import best_student
from jupiterd.daemon.cycles import judge_phase
from jupiterd.daemon.cycles.cycle_driver import CycleDriver
from jupiterd.daemon.leader import work_item
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.leader.work_item import ItemRunner, Patience
from jupiterd.daemon.queries.cycle.cycle_document import cycle_document
from jupiterd.errors import PeerUnreachableError
from jupiterd.ids import ArtifactId
from jupiterd.locations import config_folder
from jupiterd.workers.evaluate.score_file import write_sanity, write_scores
from tests.support.cluster.building import CYCLE, started
from tests.support.cycle.gate_material import documents, gaps
from tests.support.daemon.two_nodes import found, serving
from tests.support.workers.answering_server import answering, trouble
from tests.support.workers.data_material import real, write
from tests.support.workers.judging import knowing
from tests.support.workers.tiny_models import write_model
from tests.unit.daemon.cycles.test_cycle_driver import a_trained_round

pytestmark = [pytest.mark.net, pytest.mark.timeout(180), pytest.mark.usefixtures("warm_starts")]

DOMAIN = """\
version: 1
title: Bread
language: en
data_sources:
  - {kind: folder, path: /text, license: MIT}
holdout: {fraction: 0.2, salt: bread, min_documents: 20, min_clusters: 5}
evaluation: {min_document_bytes: 64}
gate: {proxies: off, judge: "http://box/v1#oak"}
"""
WORDS = ["bread", "rises", "yeast", "rests", "oven", "crust", "salt", "warm", "night", "knead"]


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_item, "SOURCE_RETRY_S", 0.0)
    monkeypatch.setattr(work_item, "SPARED", Patience(2, 60.0))


def held_out() -> list[Sample]:
    chance = random.Random(3)
    texts = [" ".join(chance.choices(WORDS, k=120)) for _ in range(20)]
    return [replace(real(text, cluster=f"c{n % 10}"), split="dev") for n, text in enumerate(texts)]


class Made:
    """What the rounds before have left in the store of one node."""

    def __init__(self, node: Node, folder: Path) -> None:
        self.node, self.folder = node, folder
        self.candidate = self._kept(write_model(folder / "ours", "qwen3"))
        self.student = self._kept(write_model(folder / "theirs", "llama"))

    def _kept(self, folder: Path) -> ArtifactId:
        return self.node.artifact_cache.store.ingest(folder)

    def _work(
        self, item: str, summary: dict[str, Any] | None = None, **outputs: ArtifactId
    ) -> Fact:
        number, phase = int(item[1]), item.split("/")[1]
        own = self.node.identity.node_id
        return WorkCompleted(CYCLE, number, phase, item, own, outputs, {}, summary or {})

    def facts(self) -> list[Fact]:
        """Return round 1, whose student was better, and round 2 up to its scores: they tie."""
        texts = self._kept(write(self.folder / "dev", held_out()))
        tied = documents(random.Random(3), 0.003, noise_bpb=0.005)
        write_scores(self.folder / "s0", tied[::2], gaps(22, 20, 100))
        write_sanity(self.folder / "s0", Sanity(loads=True, completions=8))
        write_scores(self.folder / "s1", tied[1::2])
        scores = [self._kept(self.folder / name) for name in ("s0", "s1")]
        first, last = self.student, self.candidate
        return [
            self._work("r1/collect/0", holdout=texts, train=texts),
            self._work("r1/pack/0", shards=texts, tokenizer=texts),
            CheckpointCommitted(CYCLE, 1, "", first, 1, 10, 100, 10, 3.0, is_final=True),
            self._work(f"r1/gate/0/{first[:8]}", {"better": True}, verdict=texts),
            VerdictReached(CYCLE, 1, "HOLD", "so", 2.5, texts, first, ""),
            RoundCommitted(CYCLE, 1, first, "HOLD", ""),
            self._work("r2/filter/0", kept=texts),
            self._work("r2/pack/0", shards=texts, tokenizer=texts),
            CheckpointCommitted(CYCLE, 2, first, last, 2, 10, 200, 10, 2.9, is_final=True),
            *(self._work(f"r2/evaluate/{n}/{last[:8]}", scores=scores[n]) for n in (0, 1)),
        ]


@asynccontextmanager
async def tied_round(folder: Path, url: str) -> AsyncGenerator[tuple[TermServices, Made]]:
    async with serving(folder, "one", threads=1) as one:
        judge = Generator("oak", url=url, model="oak", node=one.identity.node_id)
        start = replace(
            started(rounds=2),
            domain="bread",
            domain_yaml=DOMAIN,
            model_yaml=(config_folder() / "models" / "1m.yaml").read_text(),
            judge=judge.to_plain(),
        )
        own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
        made = Made(one, folder)
        await found(one, facts=(own, start, *made.facts()))
        yield one._begin_term(1), made


async def closed(leading: TermServices) -> dict[str, Any]:
    """Go on to the end of the round; return what its verdict says."""
    for _ in range(8):
        if 2 in leading.term.cycle(CYCLE).verdicts:
            break
        await CycleDriver(leading, CYCLE)._step()
    folder = leading.reach.artifact_cache.store.path(leading.term.cycle(CYCLE).verdicts[2].artifact)
    return json.loads((folder / VERDICT_FILE).read_text())


def items_of_gate(leading: TermServices) -> list[str]:
    done = leading.term.cycle(CYCLE).completed
    return sorted(item.rpartition("/")[0] for _, item in done if item.startswith("r2/gate"))


@pytest.mark.full
async def test_a_tie_is_put_before_a_judge_and_the_verdict_can_be_reached_again_without_it(
    tmp_path: Path,
) -> None:
    with answering(knowing(each.text for each in held_out())) as served:
        async with tied_round(tmp_path, served.url) as (leading, made):
            verdict = await closed(leading)
            asked = len(served.asked)
            assert items_of_gate(leading) == [
                "r2/gate/0", "r2/gate/2", "r2/gate/judge/ask", "r2/gate/judge/write",
            ]  # fmt: skip
            found = verdict["verdict"]["tie_break"]
            assert (found["trial"]["right"], found["trial"]["trouble"]) == (60, "")
            preference = found["preference"]
            assert asked == 2 * (60 + preference["pairs"]) > 120
            assert verdict["given"]["judge"]["id"] == f"{served.url}#oak"
            assert verdict["schema"] == "jupiter/verdict/v4"

            store = leading.reach.artifact_cache.store
            recorded = store.path(leading.term.cycle(CYCLE).verdicts[2].artifact)
            pieces = [store.path(ArtifactId(each)) for each in verdict["given"]["scores"].values()]
            for material in ([recorded], pieces):
                assert decide_again(recorded, material).is_same
            assert len(served.asked) == asked, "it isn't asked again"
            told = "\n".join(explain(verdict))
            assert "First the judge oak was tried on 60 pairs" in told
            assert f"the candidate won {preference['wins']}" in told

            assert leading.term.cycle(CYCLE).verdicts[2].verdict == verdict["verdict"]["decision"]
            assert best_student(leading.term.cycle(CYCLE)) == made.student, "the one to beat stays"
            shown = cycle_document(leading.term.cycle(CYCLE), None, model=None, has_leader=True)
            row = next(p for p in shown["phases"] if (p["round"], p["phase"]) == (2, "gate"))
            assert row["done"] == 90


async def test_a_judge_that_cannot_be_had_ends_no_cycle(tmp_path: Path) -> None:
    with answering(lambda *_: trouble(401, "no")) as served:
        async with tied_round(tmp_path, served.url) as (leading, _):
            verdict = await closed(leading)
            assert leading.term.cycle(CYCLE).failed is None
    assert verdict["verdict"]["decision"] == "HOLD"
    assert (
        f"the judge couldn't be had: one: {served.url}: HTTP 401, no"
        in (verdict["verdict"]["reason"])
    )


class _NobodyThere:
    """What an item runner does while the one node that could ask is away."""

    async def run(
        self, _: int, __: WorkItem, only_on: str, *, longest_s: float, **___: object
    ) -> WorkCompleted:
        assert (only_on, longest_s) == ("away", judge_phase.LONGEST_S)
        raise PeerUnreachableError("only away can do that, and it isn't here")


async def test_a_machine_that_has_gone_with_the_judge_is_not_waited_for_for_ever() -> None:
    term, driver = a_trained_round()
    judge = Generator("oak", url="http://localhost:1/v1", model="oak", node="away")
    view = replace(driver._view(), judge=judge)
    asking = WorkItem("r1/gate/judge/ask/k1", Phase.GATE, "ask_judge")
    done = await judge_phase.hear_judge(
        term.term, term.board, cast("ItemRunner", _NobodyThere()), view, asking
    )
    assert done.outputs == {}
    assert done.summary == {"without": "only away can do that, and it isn't here"}
