"""The loss on MLX, computed a few tokens at a time with its gradients."""

import mlx.core as mx
import numpy as np
import pytest
from mlx.nn.losses import cross_entropy

from jupiterd.workers.train.mlx.mlx_loss import summed_loss

TOKENS, WIDTH, ENTRIES = 50, 12, 33


def written_out(hidden: mx.array, weight: mx.array, targets: mx.array) -> mx.array:
    return cross_entropy((hidden @ weight.T).astype(mx.float32), targets, reduction="sum")


@pytest.mark.parametrize(("kind", "tolerance"), [(mx.float32, 1e-5), (mx.bfloat16, 2e-2)])
@pytest.mark.parametrize("at_a_time", [16, 64])
def test_loss_and_gradients_are_those_of_all_logits_at_once(
    kind: mx.Dtype, tolerance: float, at_a_time: int
) -> None:
    drawn = np.random.default_rng(7)
    hidden = mx.array(drawn.normal(size=(TOKENS, WIDTH))).astype(kind)
    weight = mx.array(drawn.normal(size=(ENTRIES, WIDTH))).astype(kind)
    targets = mx.array(drawn.integers(0, ENTRIES, TOKENS).astype(np.int32))

    def ours(hidden: mx.array, weight: mx.array) -> mx.array:
        return summed_loss(hidden, weight, targets, at_a_time) * 0.3

    def theirs(hidden: mx.array, weight: mx.array) -> mx.array:
        return written_out(hidden, weight, targets) * 0.3

    loss, found = mx.value_and_grad(ours, argnums=(0, 1))(hidden, weight)
    wanted_loss, wanted = mx.value_and_grad(theirs, argnums=(0, 1))(hidden, weight)
    assert loss.item() == pytest.approx(wanted_loss.item(), rel=1e-5)
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == kind
        spread = float(mx.abs(other.astype(mx.float32)).max())
        difference = mx.abs(one.astype(mx.float32) - other.astype(mx.float32)).max()
        assert float(difference) <= tolerance * spread
