from dataclasses import replace

import pytest

from jupiterd.cluster.planning.engines import AUTO, MLX, TORCH, EngineChoice, choose_engine
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.errors import MissingExtraError, UsageError
from jupiterd.ids import NodeId

A, B, C = (NodeId(letter) for letter in "abc")
BOTH = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, (), (TORCH, MLX))
TORCH_ALONE = replace(BOTH, engines=(TORCH,))
MLX_ALONE = replace(BOTH, engines=(MLX,))
MAC = replace(BOTH, system="Darwin", machine="arm64")
MAC_WITHOUT_MLX = replace(MAC, engines=(TORCH,))


@pytest.mark.parametrize(
    ("wanted", "machines", "engine", "gang"),
    [
        (AUTO, (BOTH, BOTH), TORCH, (A, B)),
        (AUTO, (MAC, MAC), MLX, (A, B)),
        (AUTO, (MAC, BOTH), TORCH, (A, B)),
        (AUTO, (MAC, MAC_WITHOUT_MLX), TORCH, (A, B)),
        (AUTO, (MLX_ALONE, TORCH_ALONE, BOTH), TORCH, (B, C)),
        (AUTO, (MLX_ALONE, MLX_ALONE), MLX, (A, B)),
        (MLX, (BOTH, BOTH), MLX, (A, B)),
        (MLX, (BOTH, TORCH_ALONE, BOTH), MLX, (A, C)),
        (MLX, (MAC, BOTH, MAC), MLX, (A, C)),
        (TORCH, (MAC, MAC), TORCH, (A, B)),
    ],
)
def test_the_engine_suits_the_machines_and_the_wish(
    wanted: str, machines: tuple[Hardware, ...], engine: str, gang: tuple[NodeId, ...]
) -> None:
    choice = choose_engine(wanted, dict(zip((A, B, C), machines, strict=False)))
    assert (choice.engine, choice.gang) == (engine, gang)
    assert choice.reason
    assert ("can't take part" in choice.reason) == (len(gang) < len(machines))


@pytest.mark.parametrize(("wanted", "machine"), [(MLX, TORCH_ALONE), (TORCH, MLX_ALONE)])
def test_an_engine_that_nobody_has_is_refused_with_a_way_to_get_it(
    wanted: str, machine: Hardware
) -> None:
    with pytest.raises(MissingExtraError, match=f"none of 2 trainers has {wanted}") as error:
        choose_engine(wanted, {A: machine, B: machine})
    assert "pip install" in error.value.hint


def test_an_engine_nobody_knows_is_refused() -> None:
    with pytest.raises(UsageError, match="there is no engine jax") as error:
        choose_engine("jax", {A: BOTH})
    assert error.value.hint == "engines: auto, torch, mlx"


def test_the_label_tells_what_the_ranks_talk_over() -> None:
    assert EngineChoice(MLX, (A, B), "").label == "mlx/ring"
    assert EngineChoice(TORCH, (A, B), "").label == "torch/gloo"
    assert EngineChoice(MLX, (A,), "").label == "mlx"
