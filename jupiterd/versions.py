"""Which versions of Jupiter work together.

Owns the rule. Pure; doesn't know which machine runs which, or what follows.

    alike        0.1.0 and 0.1.7: the same minor version. What workers, gangs and leaders tell each
                 other, and what they compute, changes with the minor version and never within one:
                 so a mended fault can be rolled out without stopping anything.
    neighbours   0.1.7 and 0.2.0: one cluster. Ledgers, heartbeats and copies cross one minor
                 version; work doesn't.
    apart        0.1.7 and 0.3.0, 0.9.0 and 1.0.0: nobody has tried that.

A version that wasn't told, or isn't one, is held against nobody.
"""

import re
from enum import StrEnum
from typing import Final

INSTALL_QUANTIZED: Final = "pip install 'jupiterd[quantized]'"
"""Brings bitsandbytes, by which torch quantizes."""

UPGRADE: Final = "run installers/install.sh there again (or pip install --upgrade jupiterd)"
"""How a machine gets the newest version; its daemon is started again afterwards."""

_FORM: Final = re.compile(r"(\d{1,9})\.(\d{1,9})(?!\d)")


class Kinship(StrEnum):
    """How close two versions are."""

    ALIKE = "alike"
    NEIGHBOURS = "neighbours"
    APART = "apart"


def series(version: str) -> tuple[int, int] | None:
    """Return (major, minor); None where it isn't a version."""
    found = _FORM.match(version)
    return None if found is None else (int(found[1]), int(found[2]))


def kinship(one: str, other: str) -> Kinship:
    """Say how close two versions are."""
    here, there = series(one), series(other)
    if here is None or there is None or here == there:
        return Kinship.ALIKE
    is_next = here[0] == there[0] and abs(here[1] - there[1]) == 1
    return Kinship.NEIGHBOURS if is_next else Kinship.APART


def first_of_series(version: str) -> str:
    """Return what stands for all that are alike: `0.1.0` for `0.1.7`."""
    found = series(version)
    return version if found is None else f"{found[0]}.{found[1]}.0"


def is_older(one: str, other: str) -> bool:
    """Say whether one version comes before another, by its minor version."""
    return (series(one) or (0, 0)) < (series(other) or (0, 0))
