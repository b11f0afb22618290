"""A daemon's files are its user's alone; a script that it runs writes as its user's programs do."""

import asyncio
import os
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from jupiterd.processes import umask
from jupiterd.processes.supervised_child import ChildProgram, start_supervised

WRITES = (sys.executable, "-c", "open('written', 'w')")


@pytest.fixture
def usual_umask() -> Generator[None]:
    before = os.umask(0o022)
    umask.be_private()
    yield
    os.umask(before)


@pytest.mark.usefixtures("usual_umask")
def test_a_script_gives_its_files_the_usual_rights_and_the_daemon_none_to_others(
    tmp_path: Path,
) -> None:
    async def run() -> int:
        kept = await start_supervised(ChildProgram(WRITES, os.environ, str(tmp_path)))
        try:
            return await kept.wait()
        finally:
            kept.let_go()

    assert asyncio.run(run()) == 0
    (tmp_path / "ours").write_text("")
    assert (tmp_path / "written").stat().st_mode & 0o777 == 0o644
    assert (tmp_path / "ours").stat().st_mode & 0o777 == 0o600
