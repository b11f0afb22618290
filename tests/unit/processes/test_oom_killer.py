"""Who was killed for want of memory: our group's count decides, then the log; else it's a doubt."""

from pathlib import Path

import pytest

from jupiterd import control_group
from jupiterd.processes import oom_killer
from jupiterd.processes.oom_killer import LIKELY, SURE, how_killed, kills


class Kernel:
    """What it tells, in files of its own form."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self._folder = folder
        for name, path in (
            ("_VMSTAT", "vmstat"),
            ("_LOG", "kmsg"),
            ("_OWN_PIDS", "pids"),
        ):
            patch.setattr(oom_killer, name, folder / path)
        patch.setattr(control_group, "_OWN_GROUPS", folder / "cgroup")
        patch.setattr(control_group, "_MOUNTS", folder / "mounts")
        groups = folder / "groups"
        self.says(
            "mounts",
            f"35 31 0:32 / {groups}/memory rw - cgroup cgroup rw,memory\n"
            f"41 31 0:38 / {groups} rw - cgroup2 cgroup2 rw\n",
        )

    def says(self, name: str, text: str) -> None:
        file = self._folder / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)

    def has_pids_of(self, namespace: str) -> None:
        (self._folder / "pids").symlink_to(namespace)


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


@pytest.mark.parametrize(
    ("group", "file"),
    [
        ("0::/jupiterd.service\n", "groups/jupiterd.service/memory.events"),
        ("0::/\n", "groups/memory.events"),
        ("4:memory:/box\n0::/\n", "groups/memory/box/memory.oom_control"),
    ],
    ids=["version 2", "version 2 in a container", "version 1"],
)
def test_kills_of_others_on_the_machine_are_none_of_our_group(
    kernel: Kernel, group: str, file: str
) -> None:
    kernel.says("cgroup", group)
    kernel.says("groups/memory.current", "0")
    kernel.says(file, "oom 1\noom_kill 2\n")
    kernel.says("vmstat", "oom_kill 7\n")
    before = kills()
    kernel.says("vmstat", "oom_kill 9\n")
    assert how_killed(41, before) == ""
    kernel.says(file, "oom 1\noom_kill 3\n")
    assert how_killed(41, before) == SURE


def test_without_a_group_the_kernel_s_log_names_whom_it_killed(kernel: Kernel) -> None:
    kernel.says("cgroup", "0::/\n")
    kernel.says("vmstat", "oom_kill 7\n")
    kernel.says("kmsg", "3,9,1,-;Out of memory: Killed process 41 (python) total-vm:9kB\n")
    kernel.has_pids_of("pid:[4026531836]")
    before = kills()
    assert how_killed(41, before) == "", "nobody was killed since"
    kernel.says("vmstat", "oom_kill 8\n")
    assert (how_killed(41, before), how_killed(4, before)) == (SURE, "")


def test_where_only_the_machine_is_counted_the_doubt_is_told(kernel: Kernel) -> None:
    kernel.says("vmstat", "oom_kill 7\n")
    before = kills()
    kernel.says("vmstat", "oom_kill 8\n")
    assert how_killed(41, before) == LIKELY
    kernel.says("kmsg", "3,9,1,-;Out of memory: Killed process 12 (python)\n")
    kernel.has_pids_of("pid:[4026531999]")
    assert how_killed(41, before) == LIKELY, "the log has other numbers for those of a container"


def test_a_system_that_counts_nothing_kills_nobody(kernel: Kernel) -> None:
    assert how_killed(41, kills()) == ""
