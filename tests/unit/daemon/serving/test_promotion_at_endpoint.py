"""Promotions and a rollback in the ledger, while clients of an endpoint read eight answers."""

import asyncio
import json
from collections.abc import AsyncGenerator
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest

from jupiterd.cluster.facts.facts import ClusterFounded
from jupiterd.cluster.facts.steering import StudentSteered
from jupiterd.cluster.serving.promotion_follow import Following
from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.serving import promotion_follower
from jupiterd.daemon.serving.endpoint_plan import EndpointPlan
from jupiterd.daemon.serving.promotion_follower import model_of
from jupiterd.ids import ArtifactId
from tests.support.cluster.building import CYCLE
from tests.support.daemon.shown import status_of
from tests.support.daemon.two_nodes import TIMEOUT_S, admission_of, serving, until
from tests.support.serving.written_engines import WrittenEngines
from tests.support.serving.written_nodes import give_engines
from tests.unit.daemon.catalog.test_model_catalog import BEGUN, FIRST, SECOND, made, said

ROLLED_BACK = StudentSteered(CYCLE, 2, SECOND, is_promoted=False, edit=1)
BACK_TO_THE_FIRST = StudentSteered(CYCLE, 2, FIRST, is_promoted=True, edit=1)


@dataclass
class Served:
    node: Node
    engines: WrittenEngines
    client: httpx.AsyncClient

    async def answer(self, tokens: int) -> tuple[set[str], int]:
        """Return which models wrote an answer that came whole, and how many tokens it has."""
        messages = [{"role": "user", "content": "hello"}]
        body = {"model": "promoted", "messages": messages, "max_tokens": tokens, "stream": True}
        async with self.client.stream("POST", "/chat/completions", json=body) as response:
            assert response.status_code == 200, await response.aread()
            lines = [line async for line in response.aiter_lines() if line]
        assert lines.pop() == "data: [DONE]"
        said = [json.loads(line.removeprefix("data: ")) for line in lines]
        assert not any("error" in each for each in said), said
        contents = [each["choices"][0]["delta"]["content"] for each in said]
        return {content.split()[2] for content in contents}, len(contents)

    @property
    def standing(self) -> Following:
        follower = self.node.serving.followers.of()
        assert follower is not None
        return follower.standing

    async def serves(self, artifact: ArtifactId) -> None:
        await until(lambda: self.standing.serving == artifact)


@pytest.fixture
async def served(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Served]:
    monkeypatch.setattr(promotion_follower, "LOOK_S", 0.01)
    async with serving(tmp_path, "one") as node:
        facts = [ClusterFounded("home"), admission_of(node), BEGUN, made(FIRST)]
        await node.replica.append(1, [*facts, *said(FIRST, "PROMOTE")])
        engines = give_engines(node, WrittenEngines(token_s=0.02, load_s=0.1))
        async with (
            node.endpoints.opened(EndpointPlan(port=0)) as endpoint,
            httpx.AsyncClient(base_url=endpoint.url, timeout=TIMEOUT_S) as client,
        ):
            yield Served(node, engines, client)


async def test_eight_clients_read_on_while_the_name_goes_to_the_next_model_and_back(
    served: Served,
) -> None:
    await served.serves(FIRST)
    before = [asyncio.ensure_future(served.answer(60)) for _ in range(8)]
    await until(lambda: len(served.engines.running) == 8)
    await served.node.replica.append(2, [made(SECOND, FIRST, 2), *said(SECOND, "PROMOTE", 2)])
    await served.serves(SECOND)
    assert not any(each.done() for each in before)
    assert await served.answer(3) == ({SECOND}, 3)
    (row,) = status_of(served.node)["nodes"]
    names = {(each["model"], each["is"], each["answers"]) for each in row["serving"]}
    assert names == {("promoted", "python/1", 8), ("promoted", "python/2", 0)}
    await served.node.replica.append(3, [ROLLED_BACK, BACK_TO_THE_FIRST])
    await served.serves(FIRST)
    assert await served.answer(3) == ({FIRST}, 3)
    assert await asyncio.gather(*before) == [({FIRST}, 60)] * 8
    await until(lambda: served.engines.ready() == [model_of(FIRST)])
    assert set(served.engines.ended) == {"whole"}


async def test_a_model_that_was_rolled_back_answers_no_new_request_and_ends_its_old_ones(
    served: Served,
) -> None:
    await served.node.replica.append(2, [made(SECOND, FIRST, 2), *said(SECOND, "PROMOTE", 2)])
    await served.serves(SECOND)
    running = asyncio.ensure_future(served.answer(40))
    await until(lambda: len(served.engines.running) == 1)
    await served.node.replica.append(3, [ROLLED_BACK])
    await until(lambda: served.standing.serving is None)
    refused = await served.client.post("/completions", json={"model": "promoted", "prompt": "x"})
    assert (refused.status_code, refused.json()["error"]["code"]) == (404, "model_not_found")
    assert await running == ({SECOND}, 40)
    await until(lambda: not served.engines.held)


async def test_another_endpoint_s_models_are_kept_loaded_until_it_ends(served: Served) -> None:
    await served.serves(FIRST)
    by_name = ServedModel("python/1", FIRST)
    async with served.node.endpoints.opened(EndpointPlan(("python/1", "nobody"), port=0)):
        await until(lambda: set(served.engines.ready()) == {model_of(FIRST), by_name})
    await until(lambda: served.engines.ready() == [model_of(FIRST)])


async def test_who_serves_a_name_no_more_gives_its_model_up(served: Served) -> None:
    await served.serves(FIRST)
    served.node.serving.followers.serve(())
    await until(lambda: not served.engines.held)
