"""A model on torch that is cut over ranks trains as one machine would train it."""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import pytest

from jupiterd.cycle.training.partition.partition import STAGES, Partition
from jupiterd.errors import UsageError
from jupiterd.workers.train.torch.process_group import ProcessGroup
from tests.support.workers.cut.cut_models import (
    Arrays,
    Case,
    Outcome,
    all_trained,
    engine_of,
    micro_batches,
    summed,
    trained,
    trained_on,
)
from tests.support.workers.cut.torch_ranks import on_ranks

pytestmark = [pytest.mark.net, pytest.mark.timeout(300)]

LOSS_TOLERANCE = 1e-4
STATE_TOLERANCE = 1e-5
UNEVEN = (24, 12, 16)
RECOMPUTING = {"gradient_checkpointing": "on"}


def cut(case: Case, parts: Sequence[int], stages: Sequence[int] = STAGES) -> list[Case]:
    """Return a case with each stage."""
    return [
        Case(
            case.architecture,
            case.is_tied,
            case.options,
            Partition(stage, tuple(parts)),
            case.steps,
            case.micro_batch,
        )
        for stage in stages
    ]


def check_same_curve(case: Case, parts: Sequence[int]) -> None:
    """Train with each stage, and on one machine; compare what became of it."""
    (wanted,) = on_ranks(1, trained, case)
    cases = cut(case, parts)
    by_rank = on_ranks(len(parts), all_trained, cases)
    for number, each in enumerate(cases):
        outcomes = [found[number] for found in by_rank]
        assert np.allclose(summed(outcomes), wanted.losses, rtol=0, atol=LOSS_TOLERANCE), each
        assert np.allclose(outcomes[0].norms, wanted.norms, rtol=1e-3), each
        nats = sum(outcome.nats for outcome in outcomes)
        assert np.isclose(nats, wanted.nats, rtol=1e-5), each
        for outcome in outcomes:
            assert np.allclose(outcome.logits, wanted.logits, atol=1e-3), each
        check_alike(outcomes)


def check_alike(outcomes: Sequence[Outcome]) -> None:
    """Compare what all ranks must have alike, to the last bit."""
    first, *others = outcomes
    for other in others:
        assert other.norms == first.norms
        check_close(other.weights, first.weights, 0)
        check_close(other.moments, first.moments, 0)


def check_close(found: Arrays, wanted: Arrays, tolerance: float) -> None:
    """Compare names, their order, and numbers."""
    assert list(found) == list(wanted)
    for name, values in wanted.items():
        assert np.allclose(found[name], values, rtol=0, atol=tolerance), name


@pytest.mark.parametrize("options", [{}, RECOMPUTING], ids=["kept", "recomputed"])
def test_fifty_steps_of_uneven_parts_are_those_of_one_machine(options: dict[str, str]):
    check_same_curve(Case(is_tied=True, options=options), UNEVEN)


@pytest.mark.full
@pytest.mark.parametrize(
    ("architecture", "is_tied", "options", "parts"),
    [
        ("ours", False, {}, (1, 1)),
        ("llama", False, {}, UNEVEN),
        ("llama", True, RECOMPUTING, (1, 1)),
        ("gpt2", True, {}, (1, 1, 1, 1)),
        ("gpt2", False, RECOMPUTING, (0, 3)),
    ],
)
def test_every_model_trains_as_on_one_machine(
    architecture: str, is_tied: bool, options: dict[str, str], parts: tuple[int, ...]
):
    check_same_curve(Case(architecture, is_tied, options), parts)


@pytest.mark.parametrize("architecture", ["ours", "llama"])
def test_matrices_multiplied_in_bf16_learn_as_on_one_machine(architecture: str):
    case = Case(architecture, options={"precision": "bf16"}, steps=8)
    (wanted,) = on_ranks(1, trained, case)
    by_rank = on_ranks(2, all_trained, cut(case, (2, 1)))
    for outcomes in zip(*by_rank, strict=True):
        assert np.allclose(summed(outcomes), wanted.losses, rtol=0, atol=2e-2)


def test_the_state_is_whole_and_goes_on_with_another_stage_and_number_of_ranks():
    case = Case(is_tied=True, steps=5)
    (wanted,) = on_ranks(1, trained, case)
    (further,) = on_ranks(1, trained_on, case, wanted, 5)
    (first,) = (on_ranks(2, trained, each)[0] for each in cut(case, (1, 2), [1]))
    check_close(first.weights, wanted.weights, STATE_TOLERANCE)
    check_close(first.moments, wanted.moments, STATE_TOLERANCE)
    for stage, parts in ((3, UNEVEN), (2, (5, 1))):
        (other,) = cut(case, parts, [stage])
        second = on_ranks(len(parts), trained_on, other, first, 5)
        check_close(second[0].weights, further.weights, STATE_TOLERANCE)
        check_close(second[0].moments, further.moments, STATE_TOLERANCE)
    (alone,) = on_ranks(1, trained_on, case, first, 5)
    check_close(alone.weights, further.weights, STATE_TOLERANCE)


class InFiles(Mapping[str, np.ndarray]):
    """Tensors of which stretches alone are read."""

    def __init__(self, tensors: Arrays) -> None:
        self._tensors, self.read = tensors, 0

    def __getitem__(self, name: str) -> np.ndarray:
        raise AssertionError(f"{name} was read whole")

    def stretch(self, name: str, start: int, end: int) -> np.ndarray:
        self.read += end - start
        return self._tensors[name].reshape(-1)[start:end]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tensors)

    def __len__(self) -> int:
        return len(self._tensors)


def read_of(group: ProcessGroup, case: Case, state: Outcome) -> int:
    """Take over a state at stage 3; return how many numbers were read for that."""
    engine = engine_of(case, group)
    weights, moments = InFiles(state.weights), InFiles(state.moments)
    engine.load_weights(weights)
    engine.load_moments(moments, case.steps)
    check_close(engine.weights(), state.weights, 0)
    check_close(engine.moments(), state.moments, 0)
    return weights.read + moments.read


def test_a_rank_reads_its_own_part_of_a_checkpoint_and_no_tensor_whole():
    case = Case(steps=2)
    (state,) = on_ranks(1, trained, case)
    (third,) = cut(case, (1, 2, 1), [3])
    read = on_ranks(3, read_of, third, state)
    assert sum(read) == 3 * sum(values.size for values in state.weights.values())
    assert max(read) < 0.51 * sum(read)


@pytest.mark.parametrize("stage", STAGES)
def test_the_same_training_comes_to_the_same_bits(stage: int):
    (case,) = cut(Case(steps=4), (1, 2, 1), [stage])
    once, again = (on_ranks(3, trained, case) for _ in range(2))
    assert summed(once) == summed(again)
    check_alike([once[0], again[0]])


def norm_where_the_last_has_no_share(group: ProcessGroup, case: Case) -> float:
    """Return the norm of a gradient to which the last rank adds nothing."""
    engine = engine_of(case, group)
    batch = micro_batches(0, ProcessGroup(0, 2), case.micro_batch)
    engine.sum_gradients(batch, counts=group.rank == 0)
    return engine.take_step(1e-3)


def test_a_rank_without_a_share_adds_nothing():
    (alone,) = on_ranks(1, norm_where_the_last_has_no_share, Case())
    for case in cut(Case(), (1, 1)):
        found = on_ranks(2, norm_where_the_last_has_no_share, case)
        assert np.allclose(found, alone, rtol=1e-5), case


def tried(group: ProcessGroup, case: Case) -> tuple[float, list[float], list[float]]:
    """Try a pass on one rank alone; return its time, and losses of steps before and after."""
    engine = engine_of(case, group)
    took_s = 0.0
    if group.rank == 0:
        took_s = engine.try_pass(micro_batches(0, group, 2)[0])
        engine.end_passes()
    engine.begin(has_same_weights=False)
    return took_s, [engine.step(micro_batches(n, group, 2), 1e-3)[0] for n in range(3)], []


def test_a_pass_that_one_rank_tries_changes_nothing():
    for case in cut(Case(steps=3), (1, 1)):
        found = on_ranks(2, tried, case)
        assert found[0][0] > 0
        wanted = on_ranks(2, trained, case)
        assert [losses for _, losses, _ in found] == [list(each.losses) for each in wanted], case


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"optimizer": "muon"}, "with Muon"),
        ({"weights": "bf16"}, "weights in bf16"),
        ({"precision": "fp16"}, "in fp16"),
    ],
)
def test_what_cannot_be_cut_is_refused_in_one_line(options: dict[str, object], words: str):
    (case,) = cut(Case(options=options), (1,), [1])
    with pytest.raises(UsageError, match=words) as refused:
        engine_of(case, ProcessGroup(0, 1))
    assert refused.value.hint
