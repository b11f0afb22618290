import socket

import pytest

from jupiterd.client.channel import ControlChannel
from jupiterd.client.socket_path import SocketPath
from jupiterd.errors import ConflictError, DaemonUnreachableError, JupiterError, from_wire
from tests.support.client.control_server import ScriptedControl, serving


@pytest.fixture
def control() -> ScriptedControl:
    control = ScriptedControl()
    control.documents["status"] = {"schema": "jupiter/v1", "node": {"id": "a1", "name": "alpha"}}
    return control


async def test_a_document_of_the_daemon_arrives_as_it_was_sent(control, short_dir):
    async with serving(control, short_dir / "control.sock"), ControlChannel(short_dir) as channel:
        assert await channel.status("status") == control.documents["status"]


async def test_a_command_carries_its_arguments(control, short_dir):
    async with serving(control, short_dir / "control.sock"), ControlChannel(short_dir) as channel:
        await channel.execute("cycle.start", {"rounds": 2, "size": "1m"})
    assert control.executed == [("cycle.start", {"rounds": 2, "size": "1m"})]


@pytest.mark.parametrize("name", ["x" * 150, "Application Support", "100%25 #1?"])
async def test_any_state_folder_can_be_connected_to(control, short_dir, name):
    state_dir = short_dir / name
    state_dir.mkdir()
    with SocketPath(short_dir) as near:
        await _serve_and_ask(control, near.short, state_dir)


async def _serve_and_ask(control, near, state_dir):
    async with serving(control, near):
        # A daemon binds by a relative path; moving its socket gives the same result here.
        near.rename(state_dir / "control.sock")
        async with ControlChannel(state_dir) as channel:
            assert (await channel.status("status"))["node"]["name"] == "alpha"


def test_a_link_to_a_long_path_is_gone_afterwards(short_dir):
    state_dir = short_dir / ("x" * 150)
    with SocketPath(state_dir) as path:
        assert len(bytes(path.short)) < 100
        folder = path.short.parent.parent
        assert folder.is_dir()
    assert not folder.exists()


async def test_an_error_of_the_daemon_comes_back_as_the_same_error(control, short_dir):
    control.failure = ConflictError("a cycle is running", "jupiterctl cycle stop")
    async with serving(control, short_dir / "control.sock"), ControlChannel(short_dir) as channel:
        with pytest.raises(ConflictError) as caught:
            await channel.status("status")
    assert (caught.value.message, caught.value.hint) == (
        "a cycle is running",
        "jupiterctl cycle stop",
    )


async def test_a_bug_in_the_daemon_is_not_taken_for_an_absent_daemon(control, short_dir):
    async with serving(control, short_dir / "control.sock"), ControlChannel(short_dir) as channel:
        with pytest.raises(JupiterError) as caught:
            await channel.status("weather")  # the scripted service raises KeyError
    assert type(caught.value) is JupiterError
    assert "weather" in caught.value.message
    assert "logs" in caught.value.hint


def test_an_error_of_a_newer_daemon_becomes_a_plain_one():
    assert type(from_wire("of-tomorrow", "something new", "")) is JupiterError


async def _failure_at(state_dir) -> DaemonUnreachableError:
    async with ControlChannel(state_dir) as channel:
        with pytest.raises(DaemonUnreachableError) as caught:
            await channel.status("status")
    assert str(state_dir / "control.sock") in caught.value.message
    assert caught.value.hint == f"start it with: jupiterd --state-dir {state_dir}"
    return caught.value


async def test_a_missing_folder_is_named(short_dir):
    failure = await _failure_at(short_dir / "nowhere")
    assert "the folder doesn't exist" in failure.message


async def test_a_folder_without_a_daemon_is_told_from_a_missing_folder(short_dir):
    failure = await _failure_at(short_dir)
    assert "the folder is there, and no socket in it; no process of it runs" in failure.message


async def test_a_socket_that_was_left_behind_is_recognised(short_dir):
    with socket.socket(socket.AF_UNIX) as left:
        left.bind(str(short_dir / "control.sock"))
    failure = await _failure_at(short_dir)
    assert "left behind" in failure.message


async def test_a_file_in_the_place_of_the_socket_is_recognised(short_dir):
    (short_dir / "control.sock").write_text("no socket")
    failure = await _failure_at(short_dir)
    assert "that file is no socket" in failure.message
