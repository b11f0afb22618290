"""How the leader generates with a server that others run: real workers, a real server."""

import re
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, RoleAssigned
from jupiterd.cycle.base.work_item import Phase
from jupiterd.cycle.domain.domain import parse_domain
from jupiterd.cycle.domain.generator import Generator
from jupiterd.cycle.generation.usual_templates import recorded
from jupiterd.cycle.phases.generate import ahead
from jupiterd.cycle.templates.texts import USUAL
from jupiterd.daemon.commands.start_cycle import _generator, _judge
from jupiterd.daemon.cycles.cycle_driver import CycleDriver
from jupiterd.daemon.cycles.lost_generator import lost_generator_findings
from jupiterd.daemon.cycles.speculative_generation import generating_ahead
from jupiterd.daemon.leader import work_item
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.leader.work_item import Patience
from jupiterd.daemon.queries.cycle.cycle_document import cycle_document
from jupiterd.errors import UsageError
from jupiterd.locations import config_folder
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.workers.samples.sample_file import read_samples
from tests.support.cluster.building import CYCLE, started
from tests.support.daemon.two_nodes import found, serving, until
from tests.support.workers.answering_server import Answering, answer, answering, trouble
from tests.unit.cycle.templates.test_answers import FAQ, PASSAGE

pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]

DOMAIN = """\
version: 1
title: Bread
language: en
data_sources:
  - {{kind: folder, path: {path}, license: MIT}}
generation:
  templates: [{{kind: faq, samples: 6}}, {{kind: faq, samples: 6}}]
holdout: {{fraction: 0.2, salt: bread}}
"""


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_item, "SOURCE_RETRY_S", 0.0)
    monkeypatch.setattr(work_item, "SPARED", Patience(2, 60.0))


def bread(folder: Path, served: Answering) -> CycleStarted:
    for number in range(20):
        place = folder / "text" / f"baker_{number}"
        place.mkdir(parents=True)
        (place / "loaf.txt").write_text(f"Loaf {number} of baker {number}. {PASSAGE}")
    return replace(
        started(rounds=3),
        domain="bread",
        domain_yaml=DOMAIN.format(path=folder / "text"),
        model_yaml=(config_folder() / "models" / "1m.yaml").read_text(),
        generator=Generator("tiny", url=served.url, model="tiny").to_plain(),
        without_verdict=True,  # its texts are nearly the same
    )


@asynccontextmanager
async def a_term(folder: Path, served: Answering) -> AsyncGenerator[TermServices]:
    start = bread(folder, served)
    async with serving(folder, "one", readable_folders=(folder,)) as one:
        own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
        await found(one, facts=(own, start))
        yield one._begin_term(1)


async def collect(leading: TermServices) -> None:
    """Read the text, clean it, and part it."""
    for _ in range(3):
        await step(leading)


async def step(leading: TermServices) -> None:
    await CycleDriver(leading, CYCLE)._step()


def shown(leading: TermServices) -> dict[str, Any]:
    return cycle_document(leading.term.cycle(CYCLE), None, model=None, has_leader=True)


def row(leading: TermServices) -> dict[str, Any]:
    return next(each for each in shown(leading)["phases"] if each["phase"] == "generate")


@pytest.mark.full
async def test_a_named_generator_writes_from_the_first_round_on(tmp_path: Path) -> None:
    with answering(lambda _, n: answer(f"What is loaf {n}?\n{FAQ}", tokens=100)) as served:
        async with a_term(tmp_path, served) as leading:
            await collect(leading)
            await step(leading)
            done = [leading.term.cycle(CYCLE).completed[1, f"r1/generate/{n}"] for n in range(4)]
            made = [
                [*read_samples(leading.reach.artifact_cache.store.path(fact.outputs["samples"]))]
                for fact in done
            ]
            parents = [{each.parents[0] for each in samples} for samples in made]
            assert list(map(len, made)) == [5, 1, 5, 1]
            assert sum(map(len, parents)) == len(set().union(*parents))
            assert row(leading)["detail"].startswith("12 samples from 12 prompts, 1,200 tokens")
            (node,) = shown(leading)["generators"]
            assert node["node"] == leading.term.self_id
            assert node["tokens_per_s"] > 0
            assert node["accepted_per_min"] == pytest.approx(0.6 * node["tokens_per_s"])
            await step(leading)
            cleaned = leading.term.cycle(CYCLE).completed[1, "r1/filter/2"]
            assert cleaned.outputs.keys() == {"clean", "dropped"}
    assert {body["model"] for body in served.asked} == {"tiny"}


async def test_a_round_goes_on_without_a_server_that_cannot_be_had(tmp_path: Path) -> None:
    with answering(lambda *_: trouble(401, "no")) as served:
        async with a_term(tmp_path, served) as leading:
            await collect(leading)
            await step(leading)
            assert (
                f"without what 4 of 4 items would give: one: {served.url}: HTTP 401, no"
                in (row(leading)["detail"])
            )
            await step(leading)
            assert (1, "r1/filter/0") in leading.term.cycle(CYCLE).completed
            assert (1, "r1/filter/2") not in leading.term.cycle(CYCLE).completed
            assert leading.term.cycle(CYCLE).failed is None
            lost = shown(leading)["lost_generator"]
            assert (lost["round"], lost["name"], lost["items"], lost["of"]) == (1, "tiny", 4, 4)
            (finding,) = lost_generator_findings(leading.term.state.cycles.values())
            assert (finding.code, finding.about) == ("generator-lost", CYCLE)
            assert finding.detail.endswith("HTTP 401, no")


@pytest.mark.full
async def test_what_a_server_answered_before_it_went_away_is_kept_and_the_loss_is_shown(
    tmp_path: Path,
) -> None:
    def reply(_: dict[str, Any], number: int):
        said = answer(f"What is loaf {number}?\n{FAQ}", tokens=100)
        return said if number < 3 else trouble(404, "gone")

    with answering(reply) as served:
        async with a_term(tmp_path, served) as leading:
            await collect(leading)
            await step(leading)
            first = leading.term.cycle(CYCLE).completed[1, "r1/generate/0"]
            assert 1 <= first.counts["prompts"] == first.counts["samples"] <= 3
            assert "of 5 prompts were answered" in str(first.summary["without"])
            assert len(served.asked) <= 8, "the other items don't ask it once more"
            assert shown(leading)["lost_generator"]["items"] == 4
            await step(leading)
            assert (1, "r1/filter/2") in leading.term.cycle(CYCLE).completed


@pytest.mark.full
async def test_a_domain_that_names_no_templates_has_the_usual_tasks_written(tmp_path: Path) -> None:
    with answering(lambda _, n: answer(f"Loaf {n} rises by wild yeast. {FAQ}")) as served:
        start = bread(tmp_path, served)
        text = re.sub("generation:\n.*\n", "", start.domain_yaml)
        asked_for = parse_domain(text, "bread.yaml")
        start = replace(start, domain_yaml=recorded(text, asked_for, start.generator)[0])
        async with serving(tmp_path, "one", readable_folders=(tmp_path,)) as one:
            own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
            await found(one, facts=(own, start))
            leading = one._begin_term(1)
            await collect(leading)
            await step(leading)
            writers = shown(leading)["writers"]
            assert [each["template"] for each in writers] == list(USUAL)
            done = leading.term.cycle(CYCLE).completed_in(1, Phase.GENERATE).values()
            assert {str(fact.summary["template"]) for fact in done} == {*USUAL}
            assert sum(fact.counts["samples"] for fact in done) >= 3
    asked = [body["messages"][0]["content"] for body in served.asked]
    assert all("Sourdough bread rises" in said for said in asked), "each has its passage"
    assert any("one question that the text above answers" in said for said in asked)


def asked(**said: Any) -> StartCycle:
    return StartCycle(domain_name="d", domain_yaml="", **said)


def test_a_generator_of_the_domain_file_that_nobody_looked_for_is_told() -> None:
    text = DOMAIN.format(path="/srv").replace(
        "generation:", "generation:\n  generator: http://box/v1#tiny"
    )
    domain = parse_domain(text, "bread.yaml")
    with pytest.raises(UsageError, match="wasn't looked for"):
        _generator(domain, asked())
    assert _generator(domain, asked(generator={})) == {}
    server = {"name": "tiny", "url": "http://box/v1", "model": "tiny"}
    assert _generator(domain, asked(generator=server)) == server


def test_a_judge_of_the_domain_file_that_nobody_looked_for_is_told() -> None:
    text = DOMAIN.format(path="/srv") + "gate: {judge: http://box/v1#tiny}\n"
    domain = parse_domain(text, "bread.yaml")
    with pytest.raises(UsageError, match="the judge http://box/v1#tiny wasn't looked for"):
        _judge(domain, asked())
    assert _judge(domain, asked(judge={})) == {}
    server = {"name": "tiny", "url": "http://box/v1", "model": "tiny", "node": "n"}
    assert _judge(domain, asked(judge=server)) == server


@pytest.mark.full
async def test_the_next_round_is_written_while_this_one_trains(tmp_path: Path) -> None:
    with answering(lambda _, n: answer(f"What is loaf {n}?\n{FAQ}", tokens=100)) as served:
        async with a_term(tmp_path, served) as leading:
            await collect(leading)
            driver = CycleDriver(leading, CYCLE)
            items = ahead(driver._view(), driver._domain)
            assert [item.id for item in items] == ["r2/generate/0", "r2/generate/2"]
            async with generating_ahead(
                leading.term,
                leading.board,
                leading.placement,
                driver._runner,
                driver._view(),
                items,
            ):
                completed = leading.term.cycle(CYCLE).completed
                await until(lambda: {(2, item.id) for item in items} <= set(completed))
            assert ahead(driver._view(), driver._domain) == ()
            assert row(leading)["state"] == "waiting"  # of this round nothing was said


@pytest.mark.full
async def test_what_fails_ahead_is_left_to_the_round_itself(
    tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    with answering(lambda *_: trouble(401, "no")) as served:
        async with a_term(tmp_path, served) as leading:
            await collect(leading)
            driver = CycleDriver(leading, CYCLE)
            items = ahead(driver._view(), driver._domain)
            async with generating_ahead(
                leading.term,
                leading.board,
                leading.placement,
                driver._runner,
                driver._view(),
                items,
            ):
                await until(lambda: "ahead_failed" in caplog.text)
            assert not [item for number, item in leading.term.cycle(CYCLE).completed if number == 2]
