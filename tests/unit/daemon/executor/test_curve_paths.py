"""Where a rank's curves go."""

from pathlib import Path
from typing import Any

import pytest

from jupiterd.daemon.executor.curve_paths import curves_folder
from jupiterd.daemon.runtime.work_events import WorkOrder
from jupiterd.errors import RefusedError

RUN, ISLAND = "3f2a91bc00112233", "77aa91bc00112233"
CURVES = Path("/state/logs/curves")


def order(of: str = RUN[:8], **island: Any) -> WorkOrder:
    params = {"island": island} if island else {}
    return WorkOrder(f"{of}/r1/train/3/0", 1, "train", params, {}, 3)


def test_the_curves_of_a_run_go_into_a_folder_of_its_own():
    assert curves_folder(CURVES, order()) == CURVES / "3f2a91bc"


def test_those_of_islands_go_into_folders_in_that_of_the_run_that_people_know():
    told = order(ISLAND[:8], run=RUN, island=ISLAND, number=2)
    assert curves_folder(CURVES, told) == CURVES / "3f2a91bc" / "island-2"


@pytest.mark.parametrize("name", ["..", "", "abc", "3F2A91BC", "../../x", "a" * 7, "3f2a91bc\n"])
def test_nothing_but_an_id_names_a_folder(name: str):
    with pytest.raises(RefusedError):
        curves_folder(CURVES, order(name))
    with pytest.raises(RefusedError):
        curves_folder(CURVES, order(run=name, island=ISLAND, number=1))
