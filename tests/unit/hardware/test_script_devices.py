import pytest

from jupiterd.cluster.values.hardware import Gpu
from jupiterd.errors import RefusedError, UsageError
from jupiterd.hardware.script_devices import script_devices

GPUS = tuple(Gpu("H", f"GPU-{letter}", 1 << 30, "cuda") for letter in "abcd")
METAL = Gpu("M4", "metal-1", 1 << 30, "metal")


def told(wanted: str = "", offered: tuple[str, ...] = (), visible: str | None = None):
    environment = {} if visible is None else {"CUDA_VISIBLE_DEVICES": visible}
    return script_devices(wanted, GPUS, "torch", offered, environment)


def test_unless_told_otherwise_all_are_visible_and_each_process_uses_one():
    found = told()
    assert (found.visible, len(found.usable)) == (None, 4)
    assert found.used_by(2) == ("GPU-a", "GPU-b")


def test_all_that_are_named_are_used():
    found = told("3,1")
    assert (found.visible, found.used_by(1)) == ("3,1", ("GPU-d", "GPU-b"))


def test_the_owner_s_devices_are_all_that_a_script_gets():
    found = told(offered=("1", "2", "2"))
    assert (found.visible, found.used_by(1)) == ("1,2", ("GPU-b",))
    assert told("2", offered=("1", "2")).visible == "2"
    assert told(offered=("cpu",)).visible == ""
    with pytest.raises(RefusedError, match="doesn't offer cuda device 0, but: 1, 2"):
        told("0", offered=("1", "2"))


def test_those_that_the_environment_hides_stay_hidden():
    found = told("1", visible="GPU-c,0")
    assert (found.visible, found.used_by(1)) == ("0", ("GPU-a",))
    with pytest.raises(UsageError, match="no cuda device 2: there are 2"):
        told("2", visible="2,3")


def test_on_the_cpu_no_gpu_is_seen_or_held():
    found = told("cpu")
    assert (found.visible, found.usable, found.used_by(4)) == ("", (), ())


def test_mlx_computes_on_the_gpu_of_a_mac():
    assert script_devices("", (METAL,), "mlx").used_by(2) == ("metal-1",)
    assert script_devices("cpu", (METAL,), "mlx").used_by(2) == ()
    assert script_devices("", (), "mlx").used_by(1) == ()
