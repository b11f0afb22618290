"""NVIDIA's table of drivers, at its edges."""

import pytest

from jupiterd.hardware.cuda_drivers import newest_cuda, runs, too_old


@pytest.mark.parametrize(
    ("driver", "cuda"),
    [
        ("610.11", 13),
        ("580.65.06", 13),
        ("579.99", 12),
        ("525.60.13", 12),
        ("524.99", 11),
        ("450.80.02", 11),
        ("449.0", 0),
        ("", 0),
        ("unknown", 0),
    ],
)
def test_the_newest_cuda_of_a_driver(driver: str, cuda: int) -> None:
    assert newest_cuda(driver) == cuda


@pytest.mark.parametrize(
    ("driver", "built_for", "is_enough"),
    [
        ("580.65.06", "13.2", True),
        ("570.86.10", "13.0", False),
        ("570.86.10", "12.9", True),
        ("580.65.06", "12.6", True),
        ("520.61.05", "12.0", False),
        ("580.65.06", "14.0", True),
    ],
    ids=str,
)
def test_what_runs_what(driver: str, built_for: str, is_enough: bool) -> None:
    assert runs(driver, built_for) is is_enough


@pytest.mark.parametrize(
    ("driver", "built_for", "fix"),
    [
        ("535.183.01", "13.0", "install with `--cuda 12`, or install driver 580 or newer"),
        ("470.256.02", "13.0", "install driver 525 or newer"),
        ("470.256.02", "12.6", "install driver 525 or newer"),
        ("390.157", "12.6", "install driver 525 or newer"),
    ],
)
def test_what_a_driver_lacks_is_said_with_what_helps(driver: str, built_for: str, fix: str) -> None:
    lacks, told = too_old(driver, built_for)
    assert told == fix
    assert f"driver {driver.partition('.')[0]} " in lacks


def test_a_driver_of_before_all_of_them_is_said_to_be() -> None:
    lacks, _ = too_old("390.157", "12.6")
    assert lacks.endswith("driver 390 is too old for any CUDA that torch knows")
