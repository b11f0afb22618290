"""An adapter beside a base that is cut over ranks learns as beside a whole one."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest

from jupiterd.cycle.training.adapters.adapter import parse_adapter
from jupiterd.cycle.training.partition.partition import WEIGHTS, Partition
from jupiterd.errors import UsageError
from jupiterd.workers.train.torch.process_group import ProcessGroup
from tests.support.workers.cut.cut_models import (
    Case,
    Outcome,
    engine_of,
    micro_batches,
    summed,
    trained,
    trained_on,
)
from tests.support.workers.cut.torch_ranks import on_ranks

pytestmark = [pytest.mark.net, pytest.mark.timeout(300)]

STEPS = 20
PASSES = 4
LOSS_TOLERANCE = 1e-4
STATE_TOLERANCE = 1e-5
UNEVEN = (24, 12, 16)


def beside(lora: str, parts: Sequence[int] = (), **options: Any) -> dict[str, Any]:
    """Return a case's fields: an adapter, and parts of its base."""
    return {
        "options": {"adapter": parse_adapter(lora).to_plain(), **options},
        "partition": Partition(WEIGHTS, tuple(parts)) if parts else None,
        "steps": STEPS,
    }


def check_same(found: Sequence[Outcome], wanted: Outcome, tolerance: float) -> None:
    """Compare ranks with one machine that holds all of the base."""
    assert np.allclose(summed(found), wanted.losses, rtol=0, atol=tolerance)
    assert wanted.losses[-1] < wanted.losses[0]
    assert np.isclose(sum(each.nats for each in found), wanted.nats, rtol=1e-4)
    for each in found:
        assert list(each.weights) == list(wanted.weights)
        assert each.norms == found[0].norms
        for name, values in each.weights.items():
            assert np.array_equal(values, found[0].weights[name]), name


@pytest.mark.parametrize(
    ("architecture", "is_tied", "lora", "more"),
    [
        ("ours", True, "rank=4", {}),
        ("ours", False, "rank=4", {"gradient_checkpointing": "on"}),
        ("llama", True, "rank=4,layers=1", {}),
        ("llama", False, "rank=4,dora,dropout=0.2", {}),
        ("gpt2", True, "rank=4,targets=attention", {}),
    ],
)
def test_its_losses_are_those_of_one_machine(
    architecture: str, is_tied: bool, lora: str, more: Mapping[str, Any]
):
    (wanted,) = on_ranks(1, trained, Case(architecture, is_tied, **beside(lora, **more)))
    case = Case(architecture, is_tied, **beside(lora, UNEVEN, **more))
    check_same(on_ranks(len(UNEVEN), trained, case), wanted, LOSS_TOLERANCE)


@pytest.mark.parametrize("architecture", ["ours", "llama"])
def test_a_base_in_bf16_is_that_of_a_gang_that_holds_all_of_it(architecture: str):
    parts = (3, 1)
    wanted = on_ranks(2, trained, Case(architecture, **beside("rank=4", precision="bf16")))
    found = on_ranks(2, trained, Case(architecture, **beside("rank=4", parts, precision="bf16")))
    assert np.allclose(summed(found), summed(wanted), rtol=0, atol=LOSS_TOLERANCE)


def test_the_adapter_goes_on_beside_other_parts():
    (wanted,) = on_ranks(1, trained, Case(**beside("rank=4")))
    (further,) = on_ranks(1, trained_on, Case(**beside("rank=4")), wanted, STEPS)
    first = on_ranks(2, trained, Case(**beside("rank=4", (3, 1))))[0]
    for parts in (UNEVEN, (1, 0)):
        case = Case(**beside("rank=4", parts))
        second = on_ranks(len(parts), trained_on, case, first, STEPS)
        for name, values in further.weights.items():
            assert np.allclose(second[0].weights[name], values, atol=STATE_TOLERANCE), name


def held(group: ProcessGroup, case: Case) -> tuple[int, int, int]:
    """Return how much of the base a rank holds between steps, and the bytes sent in one."""
    engine = engine_of(case, group)
    engine.begin(has_same_weights=True)
    engine.step(micro_batches(0, group, 2), 1e-3)
    units = engine._base._held
    assert all(unit.whole.untyped_storage().nbytes() == 0 for unit in units)
    numbers = sum(unit.own.numel() for unit in units)
    return numbers, sum(unit.own.nbytes for unit in units), engine._exchange.sent_bytes


def test_between_steps_each_rank_holds_its_part_in_its_precision():
    case = Case(**beside("rank=4", (3, 1), precision="bf16"))
    (many, its_bytes, _), (few, _, sent) = on_ranks(2, held, case)
    assert many == pytest.approx(3 * few, rel=0.02)
    assert its_bytes == 2 * many
    assert sent <= 2 * few * 2 * PASSES  # forwards and backwards, two bytes a number


@pytest.mark.parametrize(
    ("lora", "stage", "words"),
    [
        ("rank=4", 1, "stage 3"),
        ("rank=4", 2, "stage 3"),
        ("rank=4,quantize=4bit", 3, "be quantized"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(lora: str, stage: int, words: str):
    fields = beside(lora, (1, 1)) | {"partition": Partition(stage, (1, 1))}
    with pytest.raises(UsageError, match=words) as refused:
        engine_of(Case(**fields), ProcessGroup(0, 2))
    assert refused.value.hint
