"""The folder that belongs to one daemon."""

import os
import stat
import subprocess
import sys
from collections.abc import Generator
from pathlib import Path

import pytest

from jupiterd import __version__
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.errors import ExitCode, NewerStateError, StateDirError
from jupiterd.store.layout import LAYOUT

HOLD = """
import sys
from pathlib import Path
from jupiterd.daemon.runtime.state_dir import StateDir
held = StateDir.open(Path(sys.argv[1]))
print("held", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def holder(tmp_path: Path) -> Generator[subprocess.Popen[str]]:
    """Another process that holds the folder until the test is over."""
    command = [sys.executable, "-c", HOLD, str(tmp_path / "state")]
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "held\n"
        yield process


def test_a_new_folder_is_for_its_owner_alone(tmp_path: Path) -> None:
    state = StateDir.open(tmp_path / "a" / "state")
    assert (state.root / "VERSION").read_text() == f"{LAYOUT} (jupiterd {__version__})\n"
    for folder in (state.root, state.store, state.spool, state.runs, state.logs):
        assert stat.S_IMODE(folder.stat().st_mode) == 0o700
    state.close()


def test_a_folder_of_the_user_keeps_its_mode_and_what_is_put_there_is_private(
    tmp_path: Path,
) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(0o755)
    state = StateDir.open(tmp_path / "state")
    assert stat.S_IMODE(state.root.stat().st_mode) == 0o755
    for path in (state.store, state.spool, state.scratch, state.runs, state.logs):
        assert stat.S_IMODE(path.stat().st_mode) == 0o700
    state.close()


def test_a_folder_with_other_things_is_refused_and_left_as_it_is(tmp_path: Path) -> None:
    (tmp_path / "thesis.tex").write_text("chapter 1")
    (tmp_path / "VERSION").write_text("2\n")  # such as many projects have
    tmp_path.chmod(0o755)
    before = _contents(tmp_path)
    with pytest.raises(StateDirError, match=r"holds other things \(thesis.tex\)") as error:
        StateDir.open(tmp_path)
    assert f"--state-dir {tmp_path}/jupiter" in error.value.hint
    assert _contents(tmp_path) == before


def test_what_people_and_systems_put_there_first_is_no_other_thing(tmp_path: Path) -> None:
    (tmp_path / "cluster.yaml").write_text("")
    (tmp_path / "lost+found").mkdir()
    StateDir.open(tmp_path).close()
    (tmp_path / "key.pem").write_text("")
    (tmp_path / "notes.txt").write_text("put there later")
    StateDir.open(tmp_path).close()


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_folder_that_others_may_write_into_is_refused(tmp_path: Path, mode: int) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state").chmod(mode)
    with pytest.raises(StateDirError, match="others on this machine may write") as error:
        StateDir.open(tmp_path / "state")
    assert error.value.hint.startswith(f"chmod 700 {tmp_path}/state")
    assert list((tmp_path / "state").iterdir()) == []


def test_a_folder_that_somebody_else_has_prepared_is_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").mkdir(mode=0o700)
    monkeypatch.setattr(os, "geteuid", lambda: os.getuid() + 1)  # we are another user than it
    with pytest.raises(StateDirError, match=r"state belongs to \w+, and jupiterd runs as"):
        StateDir.open(tmp_path / "state")
    assert list((tmp_path / "state").iterdir()) == []


@pytest.mark.parametrize(
    ("mode", "owner", "reason"),
    [(0o777, 0, "everybody on this machine may write"), (0o755, 65534, "belongs to nobody")],
)
def test_a_folder_whose_parents_others_could_change_is_refused(
    tmp_path: Path, mode: int, owner: int, reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    if os.geteuid() != 0:
        pytest.skip("only root can give a folder away")
    root = tmp_path / "parent" / "between" / "state"
    StateDir.open(root).close()
    os.chown(tmp_path / "parent", owner, -1)
    (tmp_path / "parent").chmod(mode)
    for new in (root.with_name("new"), root.with_name("made")):
        if new.name == "made":
            new.mkdir(mode=0o700)
        with pytest.raises(StateDirError, match=reason) as caught:
            StateDir.open(new)
        assert f" {tmp_path / 'parent'}" in caught.value.hint
    assert not root.with_name("new").exists()
    StateDir.open(root).close()
    assert [record.message for record in caplog.records] == ["state_folder_unsafe"]


def test_a_folder_below_one_that_all_may_write_into_and_none_may_empty_is_fine(
    tmp_path: Path,
) -> None:
    (tmp_path / "tmp").mkdir()
    (tmp_path / "tmp").chmod(0o1777)
    StateDir.open(tmp_path / "tmp" / "state").close()


def test_a_lock_that_leads_elsewhere_is_not_followed(tmp_path: Path) -> None:
    (tmp_path / "diary").write_text("dear diary")
    (tmp_path / "state").mkdir(mode=0o700)
    (tmp_path / "state" / "lock").symlink_to(tmp_path / "diary")
    with pytest.raises(StateDirError, match="can't be written"):
        StateDir.open(tmp_path / "state")
    assert (tmp_path / "diary").read_text() == "dear diary"


def test_a_link_of_the_users_own_to_another_disk_is_followed(tmp_path: Path) -> None:
    (tmp_path / "disk").mkdir(mode=0o700)
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    state = StateDir.open(tmp_path / "state")
    assert state.root == tmp_path / "disk"
    state.close()


def test_a_link_that_leads_to_itself_is_no_state_folder(tmp_path: Path) -> None:
    (tmp_path / "state").symlink_to(tmp_path / "state")
    with pytest.raises(StateDirError) as refused:
        StateDir.open(tmp_path / "state")
    assert str(tmp_path / "state") in refused.value.message


def test_a_link_of_somebody_without_a_name_is_refused_by_its_number(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "state").symlink_to(tmp_path / "disk")
    own, nobody = os.geteuid(), 987_654
    lstat = Path.lstat

    def of_nobody(path: Path) -> os.stat_result:
        found = lstat(path)
        return os.stat_result((*found[:4], nobody, *found[5:])) if path.name == "state" else found

    monkeypatch.setattr(Path, "lstat", of_nobody)
    assert own != nobody
    with pytest.raises(StateDirError, match=f"is a link that user {nobody} has made"):
        StateDir.open(tmp_path / "state")


def test_a_held_folder_names_the_process_that_holds_it(
    tmp_path: Path, holder: subprocess.Popen[str]
) -> None:
    with pytest.raises(StateDirError, match=f"running jupiterd .process {holder.pid}.") as error:
        StateDir.open(tmp_path / "state")
    assert "\n" not in error.value.message
    assert "--state-dir" in error.value.hint


def test_the_lock_goes_with_the_process(tmp_path: Path, holder: subprocess.Popen[str]) -> None:
    holder.kill()
    holder.wait()
    state = StateDir.open(tmp_path / "state")
    assert (state.root / "lock").read_text() == str(os.getpid())
    state.close()


def test_a_folder_that_can_not_be_made_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")
    with pytest.raises(StateDirError, match="can't be written: Not a directory") as error:
        StateDir.open(tmp_path / "file" / "state")
    assert "\n" not in error.value.message


def test_a_file_in_its_place_is_told_as_one(tmp_path: Path) -> None:
    (tmp_path / "state").write_text("in the way")
    with pytest.raises(StateDirError, match="state can't be written: it is a file"):
        StateDir.open(tmp_path / "state")


@pytest.mark.skipif(os.getuid() == 0, reason="nothing is closed to root")
def test_a_folder_without_leave_to_write_is_told_in_one_line(tmp_path: Path) -> None:
    (tmp_path / "closed").mkdir(mode=0o500)
    with pytest.raises(StateDirError, match="can't be written: Permission denied"):
        StateDir.open(tmp_path / "closed" / "state")


def test_a_folder_of_a_newer_program_is_refused_and_left_alone(tmp_path: Path) -> None:
    StateDir.open(tmp_path / "state").close()
    (tmp_path / "state" / "VERSION").write_text("99 (jupiterd 3.1.4)\n")
    (tmp_path / "state").chmod(0o750)
    before = _contents(tmp_path / "state")
    with pytest.raises(NewerStateError) as error:
        StateDir.open(tmp_path / "state")
    assert "layout 99, written by jupiterd 3.1.4" in error.value.message
    assert "start jupiterd 3.1.4 or a later one" in error.value.hint
    assert "\n" not in error.value.message
    assert error.value.exit_code is ExitCode.REFUSED
    assert _contents(tmp_path / "state") == before


def test_a_refused_folder_can_be_opened_once_the_reason_is_gone(tmp_path: Path) -> None:
    StateDir.open(tmp_path / "state").close()
    version = tmp_path / "state" / "VERSION"
    before = version.read_text()
    version.write_text("99\n")
    with pytest.raises(NewerStateError, match="written by a newer jupiterd"):
        StateDir.open(tmp_path / "state")
    version.write_text(before)
    StateDir.open(tmp_path / "state").close()


def _contents(root: Path) -> list[tuple[str, int, float, bytes]]:
    return [
        (str(path), path.stat().st_mode, path.stat().st_mtime, path.read_bytes())
        if path.is_file()
        else (str(path), path.stat().st_mode, path.stat().st_mtime, b"")
        for path in sorted([root, *root.rglob("*")])
    ]


def test_what_a_killed_daemon_left_half_done_is_thrown_away(tmp_path: Path) -> None:
    state = StateDir.open(tmp_path / "state")
    (state.spool / "left").mkdir()
    (state.spool / "left" / "file").write_text("half")
    (state.store / "kept").write_text("whole")
    state.empty_spool()
    assert list(state.spool.iterdir()) == []
    assert (state.store / "kept").exists()
    state.close()


def test_compiled_graphs_are_kept_until_they_are_too_many(tmp_path: Path) -> None:
    state = StateDir.open(tmp_path / "state")
    graph = state.graphs / "fxgraph" / "one"
    graph.parent.mkdir()
    graph.write_bytes(bytes(100))
    (state.graphs / "gone").symlink_to("nowhere")  # as a file that a worker removes meanwhile
    state.empty_large_graphs(most_bytes=100)
    assert graph.exists()
    state.empty_large_graphs(most_bytes=99)
    assert list(state.graphs.iterdir()) == []
    state.close()
