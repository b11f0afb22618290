"""What a machine answers before a launch."""

import sys
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from blake3 import blake3

from jupiterd.cluster.values.hardware import Gpu, Hardware
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.scripts.question import LaunchQuestion
from jupiterd.daemon.scripts.readiness import Readiness
from jupiterd.errors import DeviceBusyError, MalformedError, NotFoundError, RefusedError
from jupiterd.ids import NodeId
from jupiterd.protocol.commands.script_commands import PrepareLaunch
from jupiterd.rpc.script_pb2 import PrepareScriptRequest

GPUS = tuple(Gpu("H", f"GPU-{letter}", 1 << 30, "cuda") for letter in "ab")


def a_machine(*gpus: Gpu, **settings: Any) -> Readiness:
    settled = replace(Settings(name="two"), **settings)
    return Readiness(settled, Hardware("Linux", "x86_64", "", 1, 1, gpus))


def request(folder: Path, **more: Any) -> PrepareScriptRequest:
    return PrepareScriptRequest(
        **{"program": "sh", "folder": str(folder), "host": "127.0.0.1", **more}
    )


async def test_the_python_that_runs_jupiter_is_named_with_its_version(tmp_path: Path) -> None:
    reply = await a_machine(threads=3).prepared(request(tmp_path, own_python=True))
    assert (reply.program, reply.threads) == (sys.executable, 3)
    assert reply.python_version == sys.version.split()[0]


async def test_a_python_that_is_not_there_is_refused_with_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(NotFoundError, match="no /no/venv/bin/python on two") as refused:
        await a_machine().prepared(request(tmp_path, program="/no/venv/bin/python"))
    assert "--python jupiter" in refused.value.hint


async def test_a_folder_that_the_daemon_s_user_may_not_enter_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(path: Path) -> bool:
        raise PermissionError(13, "Permission denied", str(path))

    monkeypatch.setattr(Path, "is_file", refuse)  # root may enter any
    with pytest.raises(NotFoundError, match=r"train.py on two can't be read by \w+") as refused:
        await a_machine().prepared(request(tmp_path, script=str(tmp_path / "train.py")))
    assert "--ship" in refused.value.hint


async def test_the_hash_of_each_file_is_told(tmp_path: Path) -> None:
    (tmp_path / "model.py").write_text("x = 1")
    reply = await a_machine().prepared(request(tmp_path, files=["model.py", "gone.py"]))
    assert list(reply.file_hashes) == [blake3(b"x = 1").digest(), b""]


@pytest.mark.parametrize("bad", ["/etc/passwd", "../x", "a/../../x", "a\0b"])
async def test_files_outside_the_folder_are_not_compared(tmp_path: Path, bad: str) -> None:
    with pytest.raises(MalformedError):
        await a_machine().prepared(request(tmp_path, files=[bad]))


async def test_the_owner_s_devices_hold_for_scripts(tmp_path: Path) -> None:
    machine = a_machine(*GPUS, devices=("1",))
    reply = await machine.prepared(request(tmp_path, engine="torch"), {"PATH": "/bin"})
    assert (reply.processes, reply.visible_devices, list(reply.gpus)) == (1, "1", ["GPU-b"])
    with pytest.raises(RefusedError, match="two: its owner doesn't offer cuda device 0"):
        await machine.prepared(request(tmp_path, devices="0"), {"PATH": "/bin"})


async def test_a_gpu_on_which_a_gang_trains_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    async def holder(uuid: str) -> str:
        return "a gang of two (process 7)" if uuid == "GPU-b" else ""

    monkeypatch.setattr("jupiterd.daemon.scripts.readiness.holder_of", holder)
    alone = await a_machine(*GPUS).prepared(request(tmp_path, per_node=1), {"PATH": "/bin"})
    assert list(alone.gpus) == ["GPU-a"]
    with pytest.raises(DeviceBusyError, match=r"a GPU of two is held by a gang of two \(process 7"):
        await a_machine(*GPUS).prepared(request(tmp_path, per_node=2), {"PATH": "/bin"})
    on_cpu = request(tmp_path, per_node=2, devices="cpu")
    assert (await a_machine(*GPUS).prepared(on_cpu, {"PATH": "/bin"})).hides_devices


def test_each_machine_is_asked_for_what_is_said_of_it() -> None:
    one, two = NodeId("1" * 32), NodeId("2" * 32)
    asked = LaunchQuestion.of(PrepareLaunch.read({
        "nodes": "one,two",
        "per_node": "two=3",
        "devices": ["two=cpu"],
        "folder_map": ["/home/a=/srv/a"],
        "engine": "torch",
        "program": "/home/a/venv/bin/python",
        "folder": "/home/a/code",
        "script": "/home/a/code/train.py",
        "files": ["train.py"],
        "environment": {"HF_HOME": "/models"},
    }))  # fmt: skip
    requests = asked.requests([one, two], {one: "one", two: "two"}, one)
    first, second = requests[one], requests[two]
    assert (first.folder, first.per_node, first.devices) == ("/home/a/code", 0, "")
    assert (second.folder, second.per_node, second.devices) == ("/srv/a/code", 3, "cpu")
    assert second.program == "/srv/a/venv/bin/python"
    assert second.script == "/srv/a/code/train.py"
    assert list(first.files) == list(second.files) == ["train.py"]


def test_a_machine_of_an_older_version_is_asked_for_its_python_by_name() -> None:
    own = NodeId("1" * 32)
    asked = LaunchQuestion.of(
        PrepareLaunch(nodes="all", engine="torch", program="", folder="/x", script="")
    )
    request = asked.requests([own], {own: "one"}, own)[own]
    assert (request.program, request.own_python) == ("python", True)
