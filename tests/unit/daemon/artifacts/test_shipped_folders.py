"""A folder that travels: from one daemon's disk to another's, by the real wire."""

import asyncio
import os
import shutil
import sys
import threading
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.artifacts import shipped_folders
from jupiterd.daemon.artifacts.shipped_folders import CACHED_S, UNUSED_S
from jupiterd.daemon.runtime.clock import wall_s
from jupiterd.errors import JupiterError, MalformedError, RefusedError, UsageError
from jupiterd.ids import ArtifactId
from jupiterd.processes.script_plan import RankOrder, ScriptOrder
from tests.support.daemon.two_nodes import serving, unite

ORDER = ScriptOrder(("python", "train.py"), "", (RankOrder(0, {}),), id="jupiter-1.0")


def a_folder(root: Path) -> Path:
    folder = root / "code"
    (folder / "pkg").mkdir(parents=True)
    (folder / "train.py").write_text("import pkg.model")
    (folder / "pkg" / "model.py").write_text("x = 1\n" * 1000)
    (folder / "run.sh").write_text("#!/bin/sh\necho hello\n")
    return folder


FILES = ("train.py", "pkg/model.py", "run.sh")


async def ship(node: Node, folder: Path, to: Node, files: tuple[str, ...] = FILES) -> dict:
    nodes = [to.identity.node_id]
    arguments = {"folder": str(folder), "files": files, "nodes": nodes, "run": "jupiter-1"}
    return await node.commands.execute("script.ship", arguments)


async def test_a_folder_arrives_and_only_what_changed_goes_again(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two", allow_scripts=True) as two:
        one.heartbeats.check_awake = lambda: None
        await unite(one, two)
        alive = frozenset({one.identity.node_id, two.identity.node_id})
        two.artifact_cache._alive = lambda: alive
        first = await ship(one, folder, two, (*FILES, "gone-meanwhile.swp"))
        total = sum((folder / name).stat().st_size for name in FILES)
        assert first["places"][0]["fetched_bytes"] == total

        laid_out = two.shipped.folders / "jupiter-1"
        assert (laid_out / "train.py").is_file(), "before its ranks are ordered"

        placed = await two.shipped.placed(replace(ORDER, shipped=first["artifact"]))
        assert placed.folder == str(laid_out)
        there = Path(placed.folder)
        assert there.is_relative_to(two.state_dir.root)
        assert (there / "pkg" / "model.py").read_text() == "x = 1\n" * 1000
        assert os.access(there / "run.sh", os.X_OK), "what begins with #! can be run"
        assert (there / "train.py").stat().st_mode & 0o111 == 0
        (there / "train.py").write_text("changed by the run")

        (folder / "train.py").write_text("import pkg.model as m")
        second = await ship(one, folder, two)
        assert second["places"][0]["fetched_bytes"] == len("import pkg.model as m")
        again = await ship(one, folder, two)
        assert again["places"][0]["fetched_bytes"] == 0
        next_try = await two.shipped.placed(
            replace(ORDER, id="jupiter-1.1", shipped=second["artifact"])
        )
        assert next_try.folder == placed.folder, "a run that is tried again goes on in its folder"
        other = await two.shipped.placed(replace(ORDER, id="jupiter-2", shipped=first["artifact"]))
        assert (Path(other.folder) / "train.py").read_text() == "import pkg.model"


async def test_nobody_brings_a_folder_to_a_machine_whose_owner_does_not_allow_scripts(
    tmp_path: Path,
) -> None:
    folder = a_folder(tmp_path)
    async with serving(tmp_path, "one") as one, serving(tmp_path, "two") as two:
        await unite(one, two)
        with pytest.raises(RefusedError, match="two doesn't run scripts of other machines"):
            await ship(one, folder, two)
        assert not two.artifact_cache.store.ids()


async def test_no_member_has_a_folder_of_another_machine_taken_in(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with serving(tmp_path, "one") as one:
        one.heartbeats.check_awake = lambda: None
        arguments = {"folder": str(folder), "files": FILES, "nodes": []}
        with pytest.raises(JupiterError):  # as commands come from others
            await one.commands.execute_here("script.ship", arguments)
        assert not one.artifact_cache.store.ids()


@pytest.mark.parametrize("name", ["../secret", "link", "/etc/hostname"])
async def test_files_that_lead_out_of_the_folder_are_refused(tmp_path: Path, name: str) -> None:
    folder = a_folder(tmp_path)
    (tmp_path / "secret").write_text("x")
    (folder / "link").symlink_to(tmp_path / "secret")
    async with serving(tmp_path, "one") as one:
        with pytest.raises(UsageError, match="leads out of"):
            await one.shipped.take_in(folder, [name])
        assert not [*one.state_dir.spool.iterdir()], "nothing is left half done"


async def test_a_folder_is_laid_out_once_whoever_waits_for_it_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    may_go_on, copied = threading.Event(), list[str]()

    def slow(files: Path, folder: Path, *how: Any, **more: Any) -> None:
        may_go_on.wait(5.0)
        copytree(files, folder, *how, **more)

    copytree = shutil.copytree
    async with serving(tmp_path, "one") as one:
        shipped = one.shipped
        artifact = await shipped.take_in(a_folder(tmp_path), FILES)
        monkeypatch.setattr(shipped_folders, "_copy", lambda source, _: copied.append(source))
        monkeypatch.setattr(shutil, "copytree", slow)
        order = replace(ORDER, shipped=artifact)
        lay_out, asked = shipped.laid_out, asyncio.Queue[str]()

        async def laid_out(artifact: ArtifactId, run: str) -> Path:
            asked.put_nowait(run)
            return await lay_out(artifact, run)

        monkeypatch.setattr(shipped, "laid_out", laid_out)
        first = asyncio.ensure_future(shipped.placed(order))
        await asyncio.wait_for(asked.get(), 5.0)
        first.cancel()
        second = asyncio.ensure_future(shipped.placed(order))
        await asyncio.wait_for(asked.get(), 5.0)
        may_go_on.set()
        placed = await second
    assert placed.folder == str(shipped.folders / "jupiter-1")
    assert len(copied) == len(FILES)
    assert [each.name for each in shipped.folders.iterdir()] == ["jupiter-1"]


@pytest.mark.parametrize("run", ["", "..", "a/b", ".hidden", "x" * 101])
async def test_a_run_s_name_is_no_path(tmp_path: Path, run: str) -> None:
    async with serving(tmp_path, "one") as one:
        with pytest.raises(MalformedError):
            await one.shipped.placed(replace(ORDER, id=run, shipped="a" * 64))


async def test_what_nobody_works_in_goes_after_a_while(tmp_path: Path) -> None:
    folder = a_folder(tmp_path)
    async with serving(tmp_path, "one") as one:
        artifact = await one.shipped.take_in(folder, FILES)
        orders = [replace(ORDER, id=name, shipped=artifact) for name in ("busy", "idle", "fresh")]
        busy, idle, fresh = [Path((await one.shipped.placed(each)).folder) for each in orders]
        program, pipe = "print(1, flush=True); input()", asyncio.subprocess.PIPE
        worker = await asyncio.create_subprocess_exec(
            sys.executable, "-c", program, cwd=busy / "pkg", stdin=pipe, stdout=pipe
        )
        assert worker.stdout is not None
        await worker.stdout.readline()
        old_s = wall_s() - UNUSED_S - 60
        mark = tmp_path / "one" / "shipped" / "artifacts" / artifact
        for path in (busy, idle, *busy.iterdir(), *idle.iterdir()):
            os.utime(path, (old_s, old_s))
        one.shipped.look(wall_s())
        assert (busy.exists(), idle.exists(), fresh.exists()) == (True, False, True)
        assert one.artifact_cache.store.holds(ArtifactId(artifact))
        one.shipped.look(wall_s() + CACHED_S + 60)
        assert not one.artifact_cache.store.holds(ArtifactId(artifact))
        assert not mark.exists()
        worker.kill()
        await worker.wait()
