"""An empty folder, an empty environment: install, start, look, train, remove."""

import pytest

from tests.install.first_step import walk
from tests.install.machine import Machine
from tests.install.packages import Built

pytestmark = [pytest.mark.full, pytest.mark.timeout(600), pytest.mark.slow, pytest.mark.net]


def test_from_a_machine_that_nobody_has_used_to_the_first_step_and_away_again(
    machine: Machine, built: Built
) -> None:
    index = {"PIP_FIND_LINKS": str(built.wheel.parent)}
    options = ("--python", machine.python, "--extra", "cpu")
    stages = walk(machine, lambda: machine.install(*options, is_piped=True, environment=index))
    print("\n".join(stages.lines()))
    assert list(stages.elapsed_s) == [
        "install.sh",
        "jupiterd answers",
        "the first step of a training",
        "install.sh --uninstall",
    ]
