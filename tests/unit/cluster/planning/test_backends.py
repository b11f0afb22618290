"""NCCL where all can, else gloo, and always why."""

from dataclasses import replace

import pytest

from jupiterd.cluster.planning.backends import GLOO, NCCL, choose_backend
from jupiterd.cluster.planning.engines import MLX, TORCH, choose_engine
from jupiterd.cluster.training.asked_backend import nccl_refusal
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.ids import NodeId

A, B = NodeId("a"), NodeId("b")
CPU = Hardware("Linux", "x86_64", "a CPU", 8, 16 << 30, (), (TORCH, MLX), devices=("cpu",))
GPU = replace(CPU, devices=("cuda:0",))
TWO_GPUS = replace(CPU, devices=("cuda:0", "cuda:1"))
OLD = replace(CPU, devices=())
WINDOWS = replace(GPU, system="Windows")
FORCED = nccl_refusal({"gang_backend": "gloo"})
MIXED = replace(CPU, devices=("cuda:0", "cpu"))


@pytest.mark.parametrize(
    ("machines", "failure", "backend", "why"),
    [
        ((GPU, TWO_GPUS), "", NCCL, "NCCL, since every rank has a CUDA device"),
        ((GPU, CPU), "", GLOO, "gloo, since 1 of 2 don't train on CUDA devices"),
        ((GPU, OLD), "", GLOO, "gloo, since 1 of 2 don't train on CUDA devices"),
        ((GPU, MIXED), "", GLOO, "gloo, since 1 of 2 don't train on CUDA devices"),
        ((GPU, WINDOWS), "", GLOO, "gloo, since 1 of 2 don't train on CUDA devices"),
        ((CPU, CPU), "", GLOO, "gloo, since nobody trains on a CUDA device"),
        ((GPU, GPU), "NCCL failed in attempt 3", GLOO, "gloo, since NCCL failed in attempt 3"),
        ((GPU, GPU), FORCED, GLOO, "gloo, since it was asked for (--gang-backend gloo)"),
    ],
)
def test_the_ranks_talk_over_what_all_of_them_have(
    machines: tuple[Hardware, ...], failure: str, backend: str, why: str
) -> None:
    assert choose_backend(dict(zip((A, B), machines, strict=True)), failure) == (backend, why)


def test_a_machine_has_a_rank_for_each_of_its_devices_on_torch_and_one_on_mlx() -> None:
    machines = {A: TWO_GPUS, B: GPU}
    torch = choose_engine(TORCH, machines)
    assert (torch.gang, torch.label) == ((A, A, B), "torch/nccl")
    assert torch.reason == "as asked; NCCL, since every rank has a CUDA device"
    assert choose_engine(MLX, machines).gang == (A, B)


def test_ranks_beyond_the_batch_are_left_out_before_the_backend_is_chosen() -> None:
    choice = choose_engine(TORCH, {A: TWO_GPUS, B: CPU}, most_ranks=2)
    assert (choice.gang, choice.label) == ((A, A), "torch/nccl")
    alone = choose_engine(TORCH, {A: TWO_GPUS}, most_ranks=1)
    assert (alone.label, alone.reason) == ("torch", "as asked")


def test_after_nccl_has_failed_the_label_and_the_reason_say_gloo() -> None:
    choice = choose_engine(TORCH, {A: GPU, B: GPU}, nccl_failure="NCCL failed in attempt 1")
    assert choice.label == "torch/gloo"
    assert choice.reason.endswith("gloo, since NCCL failed in attempt 1")
