import pytest

from jupiterd.errors import NotFoundError, UsageError
from jupiterd.ids import NodeId
from jupiterd.processes.scripts.by_machine import Devices, PerNode
from jupiterd.processes.scripts.folder_map import FolderMap

ATTIC, CELLAR, SHED = NodeId("a" * 32), NodeId("c" * 32), NodeId("5" * 32)
NAMES = {ATTIC: "attic", CELLAR: "cellar", SHED: "shed"}
BOTH = [ATTIC, CELLAR]


def test_processes_are_told_for_all_for_each_or_by_name():
    assert PerNode.parse("").of(BOTH, NAMES) == {ATTIC: 0, CELLAR: 0}
    assert PerNode.parse("2").of(BOTH, NAMES) == {ATTIC: 2, CELLAR: 2}
    assert PerNode.parse("2,1").of(BOTH, NAMES) == {ATTIC: 2, CELLAR: 1}
    assert PerNode.parse("cellar=3").of(BOTH, NAMES) == {ATTIC: 0, CELLAR: 3}


@pytest.mark.parametrize("bad", ["0", "65", "x", "-1", "1.5", "2,", "a=", "a=0", "²", "9" * 400])
def test_only_numbers_of_processes_are_taken(bad: str):
    if bad == "2,":
        assert PerNode.parse(bad).numbers == (2,)
        return
    with pytest.raises(UsageError, match="from 1 to 64"):
        PerNode.parse(bad)


def test_numbers_that_fit_no_machines_are_refused_with_their_names():
    with pytest.raises(UsageError, match="3 numbers for 2 machines: attic, cellar"):
        PerNode.parse("1,2,3").of(BOTH, NAMES)
    with pytest.raises(UsageError, match="shed takes no part"):
        PerNode.parse("shed=1").of(BOTH, NAMES)
    with pytest.raises(NotFoundError):
        PerNode.parse("garage=1").of(BOTH, NAMES)


def test_devices_are_told_for_all_and_by_name():
    found = Devices.parse(("0,1", "cellar=cpu", "attic = 2"))
    assert found.of(BOTH, NAMES) == {ATTIC: "2", CELLAR: "cpu"}
    assert Devices.parse(()).of(BOTH, NAMES) == {ATTIC: "", CELLAR: ""}


@pytest.mark.parametrize("bad", ["", "gpu", "0,,1", "0,0", "a=", "-1"])
def test_only_devices_are_taken(bad: str):
    with pytest.raises(UsageError, match="names no devices"):
        Devices.parse((bad,))


def test_folders_lie_elsewhere_on_other_machines():
    found = FolderMap.parse(("/home/a=/Users/b", "/home/a/data=/data", "shed:/home/a=/srv"))
    folders = found.of([ATTIC, CELLAR, SHED], NAMES, ATTIC)
    assert folders[ATTIC].mapped("/home/a/x") == "/home/a/x"  # where it is typed
    assert folders[CELLAR].mapped("/home/a/x/y.py") == "/Users/b/x/y.py"
    assert folders[CELLAR].mapped("/home/a/data/z") == "/data/z"
    assert folders[CELLAR].mapped("/home/ab") == "/home/ab"
    assert folders[CELLAR].mapped("python") == "python"
    assert folders[SHED].mapped("/home/a") == "/srv"
    assert folders[SHED].mapped("/home/a/data") == "/srv/data"


@pytest.mark.parametrize("bad", ["/a", "a=/b", "/a=b", "x:a=/b", "="])
def test_only_whole_folders_are_taken(bad: str):
    with pytest.raises(UsageError, match="with whole paths"):
        FolderMap.parse((bad,))
