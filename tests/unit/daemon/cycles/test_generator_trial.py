"""A generator is tried before a cycle begins with it: real workers, a real server and folder."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from jupiterd.cluster.facts.facts import RoleAssigned
from jupiterd.cycle.base.key_hosts import read_key_hosts
from jupiterd.cycle.domain.generator import Generator
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.cycles import generator_trial
from jupiterd.daemon.cycles.generator_trial import try_generator
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import CorruptArtifactError, GeneratorRefusedError
from jupiterd.workers.generate.generator_trial import PATIENCE
from tests.support.daemon.two_nodes import found, serving
from tests.support.workers.answering_server import Answering, answer, answering, trouble
from tests.support.workers.tiny_models import write_model
from tests.unit.daemon.cycles.test_generate_phase import DOMAIN

pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]


@asynccontextmanager
async def leading(folder: Path, **told: Any) -> AsyncGenerator[tuple[Node, TermServices]]:
    async with serving(folder, "one", **told) as one:
        await found(one, facts=(RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1),))
        one.leadership.leading = one._begin_term(1)
        yield one, one.leadership.leading


def server(served: Answering, **changes: str) -> dict[str, Any]:
    return Generator("tiny", url=served.url, model="tiny", **changes).to_plain()


async def test_a_server_that_answers_is_taken(tmp_path: Path) -> None:
    with answering(lambda *_: answer("Hello!")) as served:
        async with leading(tmp_path) as (_, term):
            told = await try_generator(term.placement, term.calls, {"generator": server(served)})
    assert told == {"is_tried": True}
    assert [body["messages"][0]["content"] for body in served.asked] == ["Say hello."]


async def test_a_cycle_whose_generator_has_no_such_model_never_begins(tmp_path: Path) -> None:
    with answering(lambda *_: trouble(404, "no such model")) as served:
        async with leading(tmp_path) as (node, _):
            domain = DOMAIN.format(path=tmp_path)
            arguments = {"domain_name": "bread", "domain_yaml": domain, "generator": server(served)}
            with pytest.raises(GeneratorRefusedError, match=r"one: .*HTTP 404, no such model"):
                await node.commands.execute("cycle.start", arguments)
            assert node.replica.state.cycles == {}


async def test_a_key_that_jupiterd_does_not_have_is_told_before_the_start(tmp_path: Path) -> None:
    with answering(lambda *_: answer("Hello!")) as served:
        named = server(served, api_key_env="NO_SUCH_API_KEY")
        bound = read_key_hosts({"NO_SUCH_API_KEY": served.url})
        for told, said in (({"api_keys": bound}, "has no NO"), ({}, "one: .* isn't bound to that")):
            async with leading(tmp_path / said[:3], **told) as (_, term):
                with pytest.raises(GeneratorRefusedError, match=said):
                    await try_generator(term.placement, term.calls, {"generator": named})
    assert served.asked == []


@pytest.mark.full
async def test_a_folder_is_loaded_and_writes(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", "llama")
    async with leading(tmp_path) as (_, term):
        whole = term.reach.artifact_cache.store.ingest(folder)
        named = Generator("mine", artifact=whole).to_plain()
        assert await try_generator(term.placement, term.calls, {"generator": named}) == {
            "is_tried": True
        }


async def test_a_folder_that_takes_long_to_be_brought_hinders_no_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(generator_trial, "LONGEST_S", 0.01)
    folder = write_model(tmp_path / "model", "llama")
    async with leading(tmp_path) as (_, term):
        named = Generator(
            "mine", artifact=term.reach.artifact_cache.store.ingest(folder)
        ).to_plain()
        assert await try_generator(term.placement, term.calls, {"generator": named}) == {
            "is_tried": False
        }


async def test_a_server_that_is_busy_with_others_hinders_no_cycle(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    with answering(lambda *_: trouble(429, "slow down")) as served:
        async with leading(tmp_path / "busy") as (_, term):
            assert await try_generator(
                term.placement, term.calls, {"generator": server(served)}
            ) == {"is_tried": True}
    assert len(served.asked) == PATIENCE.tries
    monkeypatch.setattr(generator_trial, "SERVER_S", 0.01)
    with answering(lambda *_: answer("Hello!")) as served:
        async with leading(tmp_path / "slow") as (_, term):
            assert await try_generator(
                term.placement, term.calls, {"generator": server(served)}
            ) == {"is_tried": False}


@pytest.mark.full
async def test_a_folder_that_cannot_be_loaded_is_told(tmp_path: Path) -> None:
    folder = write_model(tmp_path / "model", "llama")
    (folder / "tokenizer.json").write_text("{}")
    async with leading(tmp_path) as (_, term):
        broken = term.reach.artifact_cache.store.ingest(folder)
        named = Generator("mine", artifact=broken).to_plain()
        with pytest.raises(CorruptArtifactError, match="no tokenizer can be read"):
            await try_generator(term.placement, term.calls, {"generator": named})
