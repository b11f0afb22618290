"""What this process may use: the machine, what it is bound to, and its control groups' limits."""

import os
from collections.abc import Mapping
from pathlib import Path

import psutil
import pytest

from jupiterd import control_group, memory_limits, processor_limits
from jupiterd.hardware.host import probe_host
from jupiterd.hardware.machine_load import processor_and_memory

GB = 10**9
TWO = "41 31 0:38 {root} {at} rw,relatime - cgroup2 cgroup2 rw,nsdelegate"
ONE = "35 31 0:32 {root} {at}/{name} rw shared:9 - cgroup cgroup rw,{name}"


class Kernel:
    """What it tells of control groups, in files of its own form."""

    def __init__(self, folder: Path, patch: pytest.MonkeyPatch) -> None:
        self.folder = folder
        patch.setattr(control_group, "_OWN_GROUPS", folder / "own")
        patch.setattr(control_group, "_MOUNTS", folder / "mounts")

    def says(self, own: str, *mounts: str) -> None:
        """Tell in which groups this process is, and where they are to be seen."""
        at = self.folder / "cgroup"
        (self.folder / "own").write_text(own + "\n")
        (self.folder / "mounts").write_text(
            "\n".join(each.format(at=at, **PLAIN) for each in mounts)
        )

    def has(self, files: Mapping[str, object]) -> None:
        for name, text in files.items():
            file = self.folder / "cgroup" / name
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(f"{text}\n")


PLAIN = {"root": "/", "name": "memory"}


@pytest.fixture
def kernel(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Kernel:
    return Kernel(tmp_path, monkeypatch)


def test_without_a_limit_the_machine_itself_counts(kernel: Kernel) -> None:
    kernel.says("0::/jupiterd.service", TWO)
    kernel.has({"jupiterd.service/memory.max": "max", "jupiterd.service/cpu.max": "max 100000"})
    assert memory_limits.memory_bytes() == psutil.virtual_memory().total
    assert processor_limits.usable_cores() == len(os.sched_getaffinity(0))


def test_a_container_of_version_2_sees_its_own_group_at_the_root(kernel: Kernel) -> None:
    kernel.says("0::/", TWO)
    kernel.has({"memory.max": GB, "memory.current": GB // 4, "cpu.max": "50000 100000"})
    assert memory_limits.memory_bytes() == GB
    assert memory_limits.free_memory_bytes() == GB - GB // 4
    assert processor_limits.usable_cores() == 1


def test_the_smallest_limit_on_the_way_up_counts(kernel: Kernel) -> None:
    kernel.says("0::/user.slice/app.slice/jupiterd.service", TWO)
    kernel.has(
        {
            "user.slice/memory.max": GB,
            "user.slice/memory.current": GB - 1000,
            "user.slice/app.slice/memory.max": "max",
            "user.slice/app.slice/jupiterd.service/memory.max": 2 * GB,
            "user.slice/app.slice/jupiterd.service/memory.current": 500,
            "other.slice/memory.max": 5,
        }
    )
    assert control_group.memory_limit_bytes() == GB
    assert control_group.free_memory_bytes() == 1000


def test_who_is_slowed_down_above_a_limit_keeps_below_it(kernel: Kernel) -> None:
    kernel.says("0::/jupiterd.service", TWO)
    kernel.has({"jupiterd.service/memory.max": 3 * GB, "jupiterd.service/memory.high": 2 * GB})
    assert control_group.memory_limit_bytes() == 2 * GB


def test_version_1_has_a_hierarchy_for_each_controller(kernel: Kernel) -> None:
    kernel.says("4:memory:/box/inner\n1:cpu,cpuacct:/quota", ONE, ONE.replace("{name}", "cpu"))
    kernel.has(
        {
            "memory/box/memory.limit_in_bytes": 1250 << 20,
            "memory/box/memory.usage_in_bytes": 1000 << 20,
            "memory/box/inner/memory.limit_in_bytes": 9223372036854771712,
            "cpu/quota/cpu.cfs_quota_us": 150_000,
            "cpu/quota/cpu.cfs_period_us": 100_000,
            "cpu/cpu.cfs_quota_us": -1,
            "cpu/cpu.cfs_period_us": 100_000,
        }
    )
    assert memory_limits.memory_bytes() == 1250 << 20
    assert control_group.free_memory_bytes() == 250 << 20
    assert control_group.processors() == 1.5


def test_a_container_of_version_1_has_a_path_that_only_its_host_sees(kernel: Kernel) -> None:
    kernel.says("4:memory:/docker/4f2a", ONE.replace("{root}", "/docker/4f2a"))
    kernel.has({"memory/memory.limit_in_bytes": GB})
    assert control_group.memory_limit_bytes() == GB


def test_one_whose_host_s_path_leads_nowhere_sees_its_limit_too(kernel: Kernel) -> None:
    kernel.says("0::/../../system.slice/docker-4f2a.scope", TWO.replace("{root}", "/../.."))
    kernel.has({"memory.max": GB})
    assert control_group.memory_limit_bytes() == GB


def test_files_that_the_system_only_keeps_leave_room(kernel: Kernel) -> None:
    kernel.says("0::/", TWO)
    kernel.has({"memory.max": GB, "memory.current": GB})
    kernel.has({"memory.stat": "anon 5\nfile 9\ninactive_file 3000\nactive_file 1000"})
    assert control_group.free_memory_bytes() == 4000


def test_a_mount_s_name_may_hold_blanks(kernel: Kernel, tmp_path: Path) -> None:
    kernel.says("0::/", TWO.replace("{at}", str(tmp_path / "c\\040g")))
    folder = tmp_path / "c g"
    folder.mkdir()
    (folder / "memory.max").write_text("7000\n")
    assert control_group.memory_limit_bytes() == 7000


def test_cores_that_it_is_not_bound_to_do_not_count(
    kernel: Kernel, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A cpuset shows in what a process may run on."""
    monkeypatch.setattr(os, "sched_getaffinity", _two_cores)
    kernel.says("0::/", TWO)
    kernel.has({"cpu.max": "400000 100000"})
    assert processor_limits.usable_cores() == 2


def test_what_this_machine_tells_of_itself_is_what_it_may_use(kernel: Kernel) -> None:
    kernel.says("0::/", TWO)
    kernel.has({"memory.max": GB, "memory.current": GB // 2, "cpu.max": "100000 100000"})
    host, load = probe_host(), processor_and_memory()
    assert (host.ram_bytes, host.cores) == (GB, 1)
    assert (load["ram_bytes"], load["ram_percent"]) == (GB, 50.0)


def test_nonsense_is_no_limit(kernel: Kernel) -> None:
    kernel.says("nonsense\n0:\n:::\n0::/x", "35 31\n - cgroup\n" + TWO)
    kernel.has({"memory.max": "-4", "cpu.max": "1000 0"})
    assert control_group.memory_limit_bytes() is None
    assert control_group.processors() is None


def _two_cores(_pid: int) -> set[int]:
    return {3, 5}
