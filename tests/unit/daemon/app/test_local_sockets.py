"""Both sockets of a daemon, asked for the documents of a real node."""

import asyncio
import tempfile
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from jupiterd.client.channel import ControlChannel
from jupiterd.client.question import answer_to
from jupiterd.daemon.app.local_sockets import answering_front_ends
from jupiterd.errors import NotFoundError, UsageError
from tests.support.daemon.two_nodes import found, serving

NOUNS = ("status", "cycle", "train", "data", "branches", "audit")


@pytest.fixture
def folder(monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as name:
        monkeypatch.chdir(name)  # a daemon makes its state folder the working folder
        yield Path(name)
        monkeypatch.undo()


@asynccontextmanager
async def a_daemon(folder: Path) -> AsyncGenerator[Path]:
    async with serving(folder, "one") as node, asyncio.TaskGroup() as group:
        await found(node)
        async with answering_front_ends(node, group):
            yield node.state_dir.root


@pytest.mark.parametrize("noun", NOUNS)
async def test_both_sockets_tell_the_same_of(folder: Path, noun: str) -> None:
    async with a_daemon(folder) as state_dir, ControlChannel(state_dir) as channel:
        told = await asyncio.to_thread(answer_to, noun, state_dir)
        assert told is not None
        assert told["schema"] == "jupiter/v1"
        assert told.keys() == (await channel.status(noun)).keys()


@pytest.mark.parametrize(
    ("noun", "kind"),
    [("weather", NotFoundError), ("why/letters", UsageError), ("export/python", NotFoundError)],
)
async def test_both_sockets_refuse_alike(
    folder: Path, noun: str, kind: type[NotFoundError | UsageError]
) -> None:
    async with a_daemon(folder) as state_dir, ControlChannel(state_dir) as channel:
        with pytest.raises(kind) as short:
            await asyncio.to_thread(answer_to, noun, state_dir)
        with pytest.raises(kind) as long:
            await channel.status(noun)
    assert (short.value.message, short.value.hint) == (long.value.message, long.value.hint)


async def test_nothing_is_left_of_the_sockets(folder: Path) -> None:
    async with a_daemon(folder) as state_dir:
        pass
    assert [path for path in state_dir.iterdir() if path.is_socket()] == []
