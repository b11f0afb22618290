"""What members tell of their accelerators."""

import pytest

from jupiterd.cluster.values.gpu_load import MAX_GPUS, GpuLoad, aligned, read_rows

BUSY = GpuLoad(89.0, 13 << 30, 71.0, 312.5)


def test_a_reading_comes_back_as_it_was_told():
    assert read_rows([BUSY.to_row(), GpuLoad().to_row()]) == (BUSY, GpuLoad())


@pytest.mark.parametrize(
    "row", [5, [], [1, 2, 3], ["much", None, None, None], [-1, float("nan"), True, float("inf")]]
)
def test_what_cannot_be_a_figure_is_unknown(row):
    assert read_rows([row]) == (GpuLoad(),)


@pytest.mark.parametrize("told", [None, 5, {}, "gpus"])
def test_who_tells_no_list_tells_nothing(told):
    assert read_rows(told) == ()


def test_nobody_has_more_accelerators_than_are_read():
    assert len(read_rows([BUSY.to_row()] * 1000)) == MAX_GPUS


def test_every_accelerator_has_a_reading_and_no_reading_is_too_many():
    assert aligned((BUSY,), 2) == (BUSY, GpuLoad())
    assert aligned((BUSY, BUSY), 1) == (BUSY,)
