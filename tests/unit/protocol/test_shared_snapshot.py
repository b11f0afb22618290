"""A snapshot in memory: whole and of the run that is asked for, or none."""

from collections.abc import Callable
from dataclasses import replace

import pytest

from jupiterd.errors import MalformedError
from jupiterd.protocol.shared_snapshot import (
    HEADER_BYTES,
    Description,
    data_offset,
    found_snapshot,
    seal,
    wipe,
)
from jupiterd.protocol.training_values import TrainingProgress

RUN = "run-1 shape"
DATA = bytes(range(256)) * 40
WEIGHTS, MOMENTS = "model.safetensors", "training_state/optimizer.safetensors"
DESCRIPTION = Description(
    RUN,
    TrainingProgress(7, 700, 42, 2.5, {"step": 5.0}),
    {"config.json": "{}\n"},
    {WEIGHTS: (0, 4000), MOMENTS: (4096, 6000)},
    "best/best-00000005.safetensors",
)
OFFSET = data_offset(len(DESCRIPTION.encoded()))


def written(sequence: int = 3, description: Description = DESCRIPTION) -> memoryview:
    encoded = description.encoded()
    offset = data_offset(len(encoded))
    memory = memoryview(bytearray(offset + len(DATA)))
    memory[offset:] = DATA
    seal(memory, sequence, encoded, offset, len(DATA))
    return memory


def test_a_snapshot_comes_back_as_it_was_written() -> None:
    found = found_snapshot(written(), RUN)
    assert found is not None
    assert (found.sequence, found.description) == (3, DESCRIPTION)
    assert bytes(found.file(WEIGHTS)) == DATA[:4000]
    assert bytes(found.file(MOMENTS)) == DATA[4096:10096]


def test_memory_that_nobody_has_written_holds_none() -> None:
    assert found_snapshot(memoryview(b""), RUN) is None
    assert found_snapshot(memoryview(bytes(HEADER_BYTES - 1)), RUN) is None
    assert found_snapshot(memoryview(bytes(100_000)), RUN) is None


def test_another_run_s_snapshot_is_none() -> None:
    """The same order with another model or plan is another run."""
    assert found_snapshot(written(), "run-2 shape") is None
    assert found_snapshot(written(), "run-1 other") is None


def cut_in_copying(memory: memoryview) -> None:
    """Be killed after the header was taken away, with half of the data copied."""
    wipe(memory)
    memory[OFFSET : OFFSET + len(DATA) // 2] = bytes(len(DATA) // 2)


def copied_without_a_wipe(memory: memoryview) -> None:
    memory[OFFSET + 5] ^= 1


def cut_after_the_description(memory: memoryview) -> None:
    """Be killed before the header was written again."""
    wipe(memory)
    other = replace(DESCRIPTION, progress=TrainingProgress(9, 900, 54, 2.4)).encoded()
    memory[HEADER_BYTES : HEADER_BYTES + len(other)] = other


def _flipped(place: int) -> Callable[[memoryview], None]:
    def flip(memory: memoryview) -> None:
        memory[place] ^= 0x10

    return flip


@pytest.mark.parametrize(
    "strike",
    [
        cut_in_copying,
        copied_without_a_wipe,
        cut_after_the_description,
        *map(_flipped, (0, 8, 16, 24, 31, 32, 39, 40, 71, HEADER_BYTES, HEADER_BYTES + 30)),
    ],
)
def test_what_is_torn_or_damaged_is_no_snapshot(strike: Callable[[memoryview], None]) -> None:
    memory = written()
    strike(memory)
    assert found_snapshot(memory, RUN) is None


def test_memory_that_was_cut_off_is_no_snapshot() -> None:
    memory = written()
    assert found_snapshot(memory[:-1], RUN) is None
    assert found_snapshot(memory[: OFFSET - 1], RUN) is None


def test_a_file_beyond_the_data_is_no_snapshot() -> None:
    beyond = replace(DESCRIPTION, tensors={WEIGHTS: (4096, len(DATA))})
    assert found_snapshot(written(description=beyond), RUN) is None


def test_a_description_of_another_form_is_an_error() -> None:
    memory = memoryview(bytearray(OFFSET + len(DATA)))
    seal(memory, 1, b'{"run": "run-1 shape"}', OFFSET, len(DATA))
    with pytest.raises(MalformedError):
        found_snapshot(memory, RUN)
