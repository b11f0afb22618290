"""What tasks ask, answered by another member over the real wire: whole, lost, refused and left."""

import asyncio
import json
from collections.abc import AsyncGenerator
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from jupiterd.adapter_folder import base_beside
from jupiterd.client.channel import ControlChannel
from jupiterd.cluster.facts.facts import RolePinned
from jupiterd.ctl.model import remote_answers as remote
from jupiterd.ctl.model.remote_answers import RemoteAnswers, remote_answers
from jupiterd.ctl.model.spread_answers import HOME, SpreadAnswers
from jupiterd.cycle.questions.task_requests import (
    WHOLE,
    WRITTEN,
    TaskRequest,
    read_answers,
    requests_text,
)
from jupiterd.daemon.api.control_service import serve_control
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.servers import control_service_of
from jupiterd.daemon.serving.tasks import batch_service
from jupiterd.errors import (
    BusyError,
    JupiterError,
    MalformedError,
    MissingExtraError,
    NotFoundError,
    PeerUnreachableError,
)
from jupiterd.ids import ArtifactId
from jupiterd.rpc.serving_pb2 import Batch, BatchAsked, BatchOrder
from tests.support.daemon.two_nodes import TIMEOUT_S, serving, take_for_alive, unite, until
from tests.support.serving.written_models import WrittenModel, give_model
from tests.support.workers.tiny_models import write_model

ASKED = [TaskRequest(WHOLE, (str(n) * n,), {}) for n in range(1, 101)]
ANSWERS = [-float(len(each.texts[0])) for each in ASKED]


@dataclass
class Three:
    """A machine where the command is typed, and two others that have the model."""

    home: Node
    others: tuple[Node, Node]
    models: tuple[WrittenModel, WrittenModel]
    artifact: str
    channel: ControlChannel

    def remote(self, number: int, artifact: str = "", device: str = "cpu") -> Any:
        node = self.others[number].identity.node_id
        return remote_answers(self.channel, node, artifact or self.artifact, device)

    async def answers(self, **more: Any) -> tuple[list[Any], SpreadAnswers, list[str]]:
        lost: list[str] = []
        models = {"two": partial(self.remote, 0), "three": partial(self.remote, 1), **more}
        spread = SpreadAnswers(models, lambda *_: None, lost.append)
        async with asyncio.timeout(TIMEOUT_S), spread.opened():
            return await spread.answers(ASKED), spread, lost


@pytest.fixture
async def three(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncGenerator[Three]:
    async with (
        serving(tmp_path, "one") as home,
        serving(tmp_path, "two") as two,
        serving(tmp_path, "three") as last,
    ):
        await unite(home, two, last)
        folder = write_model(tmp_path / "model", "llama")
        ids = {node.artifact_cache.store.ingest(_copy(folder, node)) for node in (two, last)}
        monkeypatch.chdir(home.state_dir.root)
        server = await serve_control(control_service_of(home), home.state_dir.control_socket)
        try:
            async with ControlChannel(home.state_dir.root) as channel:
                models = give_model(two), give_model(last)
                yield Three(home, (two, last), models, ids.pop(), channel)
        finally:
            await server.stop(0)


def _copy(folder: Path, node: Node) -> Path:
    """Return a folder with the same files, which a store may take."""
    copy = node.state_dir.spool / "model"
    copy.mkdir()
    for file in folder.iterdir():
        (copy / file.name).write_bytes(file.read_bytes())
    return copy


async def refused(opened: Any, request: TaskRequest = ASKED[0]) -> JupiterError:
    async with asyncio.timeout(TIMEOUT_S), opened as model:
        with pytest.raises(JupiterError) as error:
            await model.answers(requests_text([request]))
    return error.value


async def test_all_members_answer_and_each_answer_is_at_its_place(three: Three) -> None:
    first, second = three.models
    first.waits_for, second.waits_for = second.asked, first.asked
    answers, spread, lost = await three.answers()
    assert (answers, lost) == (ANSWERS, [])
    assert spread.answered_by == {"two", "three"}
    await until(lambda: not (first.is_open or second.is_open))


async def test_a_member_that_hangs_is_done_without(three: Three) -> None:
    three.models[0].hangs_after = 0
    answers, spread, lost = await three.answers()
    assert (answers, lost, spread.answered_by) == (ANSWERS, [], {"three"})


async def test_a_member_that_dies_is_told_in_a_line_and_others_answer_its_batch(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(three.models[0], "answers", _dies)
    answers, _, lost = await three.answers()
    assert answers == ANSWERS
    assert lost == ["two is asked no more: a fault in Jupiter ended it; others answer its batch"]


async def _dies(_lines: str) -> str:
    raise RuntimeError("it died")


async def test_a_member_that_begins_to_train_is_asked_no_more(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_service, "BEAT_S", 0.02)
    three.models[0].hangs_after = three.models[1].hangs_after = 0
    waiting = asyncio.ensure_future(three.answers())
    await until(lambda: all(each.asked.is_set() for each in three.models))
    monkeypatch.setattr(three.others[0].serving.batches, "_hindrance", lambda: "it trains")
    await until(lambda: not three.models[0].is_open)
    assert three.models[1].is_open
    three.models[1].hangs_after = 1 << 30
    waiting.cancel()
    await asyncio.wait([waiting])


async def test_a_training_is_noticed_between_answers_that_come_one_after_the_other(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_service, "BEAT_S", 60.0)
    lines = requests_text(ASKED[:1])
    async with asyncio.timeout(TIMEOUT_S), three.remote(0) as first:
        await first.answers(lines)
        monkeypatch.setattr(three.others[0].serving.batches, "_hindrance", lambda: "it trains")
        with pytest.raises(BusyError, match="it trains now"):
            await _answering(first, lines)


async def _answering(model: RemoteAnswers, lines: str) -> None:
    while True:
        await model.answers(lines)


async def test_a_caller_that_asks_faster_than_it_is_answered_fills_no_memory(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_service, "BEAT_S", 0.01)
    three.models[0].hangs_after = 0
    said = 0

    async def flood() -> AsyncGenerator[BatchAsked]:
        nonlocal said
        yield BatchAsked(order=BatchOrder(artifact=three.artifact, device="cpu"))
        while True:
            said += 1
            yield BatchAsked(batch=Batch(number=said, lines=requests_text(ASKED[:1]).encode()))
            await asyncio.sleep(0)

    async with (
        asyncio.timeout(TIMEOUT_S),
        aclosing(three.others[0].serving.batches.pieces(flood())) as pieces,
    ):
        await anext(pieces)
        while not three.models[0].asked.is_set():
            await anext(pieces)
        for _ in range(10):
            await anext(pieces)
    assert said <= batch_service.MOST_WAITING + 2


async def test_leaving_ends_the_work_on_all_members_at_once(three: Three) -> None:
    three.models[0].hangs_after = three.models[1].hangs_after = 0
    waiting = asyncio.ensure_future(three.answers())
    await until(lambda: all(each.asked.is_set() for each in three.models))
    waiting.cancel()
    async with asyncio.timeout(2.0):
        await until(lambda: not any(each.is_open for each in three.models))
    await asyncio.wait([waiting])


async def test_a_member_that_is_heard_no_more_is_given_up(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(remote, "SILENT_S", 0.2)
    monkeypatch.setattr(batch_service, "BEAT_S", 60.0)
    three.models[0].hangs_after = 0
    assert isinstance(await refused(three.remote(0)), PeerUnreachableError)


async def test_a_caller_that_is_heard_no_more_is_given_up(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_service, "CALLER_SILENT_S", 0.2)
    monkeypatch.setattr(batch_service, "BEAT_S", 0.05)
    three.models[0].hangs_after = 0
    await refused(three.remote(0))
    await until(lambda: three.models[0].opened != [] and not three.models[0].is_open)


@pytest.mark.parametrize(
    ("what", "kind"),
    [("trains", BusyError), ("lacks", MissingExtraError), ("memory", BusyError)],
)
async def test_a_member_says_why_it_does_not_answer(
    three: Three, monkeypatch: pytest.MonkeyPatch, what: str, kind: type[JupiterError]
) -> None:
    batches = three.others[0].serving.batches
    of = {"trains": ("_hindrance", lambda: "it trains"), "lacks": ("_can_evaluate", False),
          "memory": ("_free_bytes", lambda: 1)}  # fmt: skip
    monkeypatch.setattr(batches, *of[what])
    assert type(await refused(three.remote(0))) is kind
    assert not three.models[0].is_open


async def test_a_drained_member_refuses_by_itself_whatever_its_caller_has_heard_of_it(
    three: Three,
) -> None:
    drained = three.others[0]
    own = drained.identity.node_id
    await drained.replica.append(9, [RolePinned(own, "idle", 1)])
    error = await refused(three.remote(0))
    assert (type(error), error.message) == (BusyError, "it is drained")
    assert not three.models[0].opened
    await drained.replica.append(9, [RolePinned(own, "trainer", 2)])
    answers, _, _ = await three.answers()
    assert answers == ANSWERS


async def test_a_member_that_is_drained_meanwhile_is_asked_no_more(
    three: Three, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_service, "BEAT_S", 0.02)
    three.models[0].hangs_after = 0
    waiting = asyncio.ensure_future(refused(three.remote(0)))
    await until(three.models[0].asked.is_set)
    drained = three.others[0]
    await drained.replica.append(9, [RolePinned(drained.identity.node_id, "idle", 1)])
    assert (await waiting).message == "it is drained now"
    await until(lambda: not three.models[0].is_open)


async def test_a_member_answers_with_an_adapter_beside_its_base(
    three: Three, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    node, adapter = three.others[0], tmp_path / "adapter"
    adapter.mkdir()
    said = json.dumps({"base_model_name_or_path": three.artifact})
    (adapter / "adapter_config.json").write_text(said)
    (adapter / "adapter_model.safetensors").write_bytes(b"small")
    artifact = node.artifact_cache.store.ingest(_copy(adapter, node))
    async with asyncio.timeout(TIMEOUT_S), three.remote(0, artifact) as model:
        await model.answers(requests_text(ASKED[:2]))
    (folder,) = three.models[0].opened
    assert base_beside(folder) == node.artifact_cache.store.path(ArtifactId(three.artifact))
    assert (folder / "config.json").is_file()
    size_bytes = node.artifact_cache.store.manifest(ArtifactId(three.artifact)).size_bytes
    monkeypatch.setattr(node.serving.batches, "_free_bytes", lambda: size_bytes)
    assert isinstance(await refused(three.remote(0, artifact)), BusyError)


async def test_a_second_caller_is_told_that_it_is_asked_already(three: Three) -> None:
    async with three.remote(0) as first:
        await first.answers(requests_text(ASKED[:2]))
        assert isinstance(await refused(three.remote(0)), BusyError)
    await until(lambda: not three.models[0].is_open)


async def test_what_might_do_more_than_ask_a_model_is_refused(three: Three) -> None:
    code = TaskRequest(WRITTEN, ("x",), {"custom_generate": "somebody/their-code"})
    assert isinstance(await refused(three.remote(0), code), MalformedError)
    assert isinstance(await refused(three.remote(1, device="/dev/sda")), MalformedError)
    assert isinstance(await refused(three.remote(1, "b" * 64)), NotFoundError)
    assert isinstance(await refused(three.remote(1, "../../etc")), NotFoundError)


async def test_bytes_that_are_no_text_are_refused(three: Three) -> None:
    order = BatchAsked(node=three.others[0].identity.node_id,
                       order=BatchOrder(artifact=three.artifact, device="cpu"))  # fmt: skip

    async def said() -> AsyncGenerator[BatchAsked]:
        yield order
        yield BatchAsked(batch=Batch(number=1, lines=b"\xff"))
        await asyncio.Event().wait()

    call = three.channel.open_batches(said())
    said_of_it = [piece async for piece in call]
    assert said_of_it[-1].over.code == "malformed"
    assert "is no text" in said_of_it[-1].over.reason


async def test_lots_are_drawn_at_home_alone(three: Three) -> None:
    drawing = [TaskRequest(WRITTEN, ("x",), {"do_sample": True})] * 3

    class Home:
        async def answers(self, lines: str) -> str:
            return '["drawn"]\n' * len(lines.splitlines())

    @asynccontextmanager
    async def opened() -> AsyncGenerator[Home]:
        yield Home()

    models = {HOME: opened, "two": partial(three.remote, 0)}
    spread = SpreadAnswers(models, lambda *_: None, lambda _: None)
    async with asyncio.timeout(TIMEOUT_S), spread.opened():
        assert await spread.answers(drawing) == ["drawn"] * 3
        assert read_answers("[-1.0]\n", ASKED[:1]) == [-1.0]
        assert await spread.answers([]) == []
    assert three.models[0].batches == 0


async def test_who_may_be_asked_is_a_document(three: Three) -> None:
    home, (two, last) = three.home, three.others
    home.heartbeats.roster_changed()
    for node in (two, last):
        node.local_view.hardware = replace(node.hardware, can_evaluate=node is two)
        beat = node.heartbeats.message(home.identity.node_id)
        beat.about.CopyFrom(node.observers.description.describe().about)
        home.heartbeats.heard(node.identity.node_id, beat)
    take_for_alive(home, two, last)
    rows = (await three.channel.status(f"task_nodes/{three.artifact}"))["nodes"]
    why = {row["name"]: (row["has_model"], row["why_not"]) for row in rows}
    assert why == {
        "two": (True, ""),
        "three": (True, "lacks jupiterd[evaluation], or runs an older Jupiter"),
    }
    with pytest.raises(NotFoundError):
        await three.channel.status("task_nodes/promoted")
