"""Folders and stand-ins for the programs that keep services."""

import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from click.testing import CliRunner, Result

from jupiterd.daemon.app.main import cli


@pytest.fixture
def short_folder() -> Iterator[Path]:
    """A folder whose path is short enough for a socket in it."""
    with tempfile.TemporaryDirectory(prefix="jt-", dir="/tmp") as name:
        yield Path(name)


SYSTEMCTL = """#!/bin/sh
echo "systemctl $*" >> {record}
case "$*" in
  *" show "*) cat {state} ;;
  *" start "*|*" restart "*) [ ! -e {folder}/broken ] || {{ echo "Job failed" >&2; exit 1; }} ;;
esac
"""

RUNNING = """LoadState=loaded
ActiveState=active
SubState=running
UnitFileState=enabled
MainPID=4711
ActiveEnterTimestampMonotonic=1000000
StatusText=jupiter, 3 of 3 nodes, leads, hybrid
NRestarts=2
"""


class Machine:
    """A home folder and a systemctl that records its commands."""

    def __init__(self, folder: Path, runs: Callable[..., Result]) -> None:
        self.folder = folder
        self.unit = folder / "config" / "systemd" / "user" / "jupiterd.service"
        self._record = folder / "record"
        self._state = folder / "state"
        self._runs = runs
        self._state.touch()

    def service(self, *words: str) -> Result:
        """Run `jupiterd service` with these words."""
        return self._runs("service", *words)

    def commands(self) -> list[str]:
        """Return the commands of systemctl since the last look, without questions."""
        lines = self._record.read_text().splitlines() if self._record.exists() else []
        self._record.unlink(missing_ok=True)
        return [line for line in lines if " show " not in line]

    def starts(self) -> None:
        """From now on systemctl says that the service runs."""
        self._state.write_text(RUNNING)

    def keeps_journal(self) -> None:
        """From now on there is something in the journal that this user may read."""
        (self.folder / "journal").write_text("ready\n")

    def breaks(self) -> None:
        """From now on the service doesn't start."""
        (self.folder / "broken").touch()


@pytest.fixture
def machine(short_folder: Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    """A machine on which systemd keeps the services of one user."""
    programs = short_folder / "bin"
    programs.mkdir()
    systemctl = programs / "systemctl"
    systemctl.write_text(
        SYSTEMCTL.format(
            record=short_folder / "record", state=short_folder / "state", folder=short_folder
        )
    )
    systemctl.chmod(0o755)
    for name in ("journalctl", "jupiterd"):
        (programs / name).write_text("#!/bin/sh\ncat " + str(short_folder / "journal") + "\n")
        (programs / name).chmod(0o755)
    (short_folder / "journal").touch()
    (short_folder / "run" / "systemd").mkdir(parents=True)
    (short_folder / "run" / "systemd" / "private").touch()
    for name, value in {
        "PATH": f"{programs}:/usr/bin:/bin",
        "HOME": str(short_folder),
        "XDG_CONFIG_HOME": str(short_folder / "config"),
        "XDG_RUNTIME_DIR": str(short_folder / "run"),
        "XDG_STATE_HOME": str(short_folder / "states"),
    }.items():
        monkeypatch.setenv(name, value)
    monkeypatch.delenv("JUPITER_STATE_DIR", raising=False)
    monkeypatch.setattr("sys.argv", ["jupiterd"])
    monkeypatch.setattr("sys.platform", "linux")
    return Machine(short_folder, lambda *words: CliRunner().invoke(cli, words))
