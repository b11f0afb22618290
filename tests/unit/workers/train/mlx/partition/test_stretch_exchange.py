"""Stretches of any size go round a ring, and arrive whole."""

from pathlib import Path

import pytest

from tests.support.workers.mlx_runs import ranks_run_to_end

pytest.importorskip("mlx.core")
pytestmark = [pytest.mark.mlx, pytest.mark.net, pytest.mark.xdist_group("mlx")]


@pytest.mark.parametrize("ranks", [2, pytest.param(3, marks=pytest.mark.full), 4])
def test_vectors_cut_anywhere_are_gathered_and_added_up(ranks: int, tmp_path: Path):
    ranks_run_to_end(ranks, [{"exchanges": 60}], tmp_path, "ring")
