"""The outer step, against torch's own and against plain averaging."""

import numpy as np
import pytest
import torch

from jupiterd.workers.islands.compression import Whole
from jupiterd.workers.islands.flat import FlatLayout
from jupiterd.workers.islands.outer_step import OuterSettings, OuterState

SIZE = 1000
NESTEROV, AVERAGE = OuterSettings(0.7, 0.9), OuterSettings(1.0, 0.0)


def drawn(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).normal(size=SIZE).astype(np.float32)


@pytest.mark.parametrize("settings", [NESTEROV, OuterSettings(0.5, 0.8)])
def test_it_is_the_step_of_sgd_with_nesterovs_momentum(settings):
    state = OuterState.at(drawn(0))
    theirs = torch.from_numpy(drawn(0)).requires_grad_()
    sgd = torch.optim.SGD([theirs], lr=settings.rate, momentum=settings.momentum, nesterov=True)
    for round_number in range(1, 6):
        pseudo_gradient = drawn(round_number)
        theirs.grad = torch.from_numpy(pseudo_gradient)
        sgd.step()
        state = state.after([Whole(pseudo_gradient)], [1], settings)
    assert np.allclose(state.weights, theirs.detach().numpy(), rtol=1e-5, atol=1e-6)


def test_plain_averaging_ends_at_the_mean_of_the_islands_weights():
    state, ends = OuterState.at(drawn(0)), [drawn(1), drawn(2)]
    state = state.after((Whole(state.weights - end) for end in ends), [1, 3], AVERAGE)
    assert np.allclose(state.weights, ends[0] / 4 + 3 * ends[1] / 4, atol=1e-6)


def test_an_island_weighs_as_much_as_it_has_trained():
    state = OuterState.at(np.zeros(3, np.float32))
    pseudo_gradients = [Whole(np.full(3, value, np.float32)) for value in (1.0, 5.0)]
    assert state.after(pseudo_gradients, [300, 100], AVERAGE).weights.tolist() == [-2.0, -2.0, -2.0]


def test_without_a_way_nothing_changes():
    state = OuterState(drawn(0), drawn(1))
    assert state.after([], [], NESTEROV) is state


def test_weights_become_one_vector_and_are_the_same_again():
    tensors = {"b": drawn(1).reshape(10, 100), "a": drawn(2)[:7], "c": drawn(3)[:1].reshape(())}
    layout = FlatLayout.of(tensors)
    found = layout.tensors(layout.flat(tensors))
    assert layout.size == 1008
    assert list(found) == ["a", "b", "c"]
    assert all(np.array_equal(found[name], tensors[name]) for name in tensors)
