"""Which NVIDIA driver each CUDA release needs, and which CUDA a driver runs.

Owns NVIDIA's table of minor version compatibility, and the sentences that follow from it. Pure.
Doesn't know how a driver's or torch's version is found.

    CUDA Toolkit   13.x     12.x     11.x
    driver         >= 580   >= 525   >= 450

Source: NVIDIA, CUDA Compatibility, Minor Version Compatibility, table 1
(https://docs.nvidia.com/deploy/cuda-compatibility/minor-version-compatibility.html). A newer driver
runs what was built for any older CUDA.
"""

from typing import Final

OLDEST_DRIVER: Final = {13: 580, 12: 525, 11: 450}
"""Major version of CUDA -> the oldest branch of the driver that runs all of its releases."""

INSTALLED: Final = (13, 12)
"""The majors that the installer's `--cuda` takes: those that torch's builds are made for (PyTorch,
RELEASE.md, support matrix of 2.12 to 2.14: CUDA 12.6, 13.0 and 13.2)."""


def newest_cuda(driver: str) -> int:
    """Return the newest major version of CUDA that a driver runs; 0 where it is none of ours.

    driver: its version, such as `535.183.01`
    """
    branch = _number(driver)
    return max((cuda for cuda, oldest in OLDEST_DRIVER.items() if branch >= oldest), default=0)


def runs(driver: str, built_for: str) -> bool:
    """Return whether a driver runs what was built for that CUDA, such as `13.0`.

    A CUDA that is newer than the table may run: nobody knows here.
    """
    oldest = OLDEST_DRIVER.get(_number(built_for))
    return oldest is None or _number(driver) >= oldest


def too_old(driver: str, built_for: str) -> tuple[str, str]:
    """Return what a driver lacks for that CUDA, and what to do, in words."""
    wanted, branch = _number(built_for), _number(driver)
    oldest, newest = OLDEST_DRIVER.get(wanted, 0), newest_cuda(driver)
    runs_words = f"runs CUDA {newest}" if newest else "is too old for any CUDA that torch knows"
    lacks = f"CUDA {wanted} needs driver {oldest} or newer, and driver {branch} {runs_words}"
    newer = f"install driver {oldest} or newer"
    if newest in INSTALLED:
        return lacks, f"install with `--cuda {newest}`, or {newer}"
    return lacks, f"install driver {OLDEST_DRIVER[min(INSTALLED)]} or newer"


def _number(version: str) -> int:
    """Return what a version begins with; 0 where that is no number."""
    begins = version.strip().partition(".")[0]
    return int(begins) if begins.isdecimal() else 0
