"""What a rank prints is what people of the field know how to read."""

from dataclasses import replace

from jupiterd.workers.train.report.run_lines import (
    Course,
    Numerics,
    RankLabel,
    end_line,
    epoch_line,
    start_lines,
    step_line,
)

PLACE = RankLabel(0, 5, "node0", "cuda:0")
TAG = "[Rank 0/5 | Node node0 | Device cuda:0]"
FP16 = Numerics("fp16", autocast=True, scaler=True, documents_apart=True)
COURSE = Course(
    model="gpt2-medium",
    d_model=1024,
    layers=24,
    heads=16,
    seq_len=1024,
    micro_batch=1,
    batch=160,
    steps=1000,
    steps_per_epoch=200,
)


def test_rank_0_says_what_is_trained_on_what() -> None:
    assert start_lines(PLACE, "torch/nccl", ["RTX 4090"], FP16, COURSE) == [
        f"{TAG} Engine torch/nccl | World size 5 | GPUs RTX 4090",
        f"{TAG} Precision fp16 | Autocast=ON | GradScaler=ON | Documents apart",
        f"{TAG} Model gpt2-medium: d_model=1024, layers=24, heads=16, seq_len=1024",
        f"{TAG} Batch per device 1 | Accumulation 32 | Effective batch 160",
        f"{TAG} Total steps 1000 | Steps per epoch 200.0 | Epochs 5",
    ]


def test_a_batch_that_is_no_multiple_of_the_micro_batch_is_counted_upward() -> None:
    course = replace(COURSE, micro_batch=32, batch=38)
    lines = start_lines(replace(PLACE, world_size=1), "torch", ["RTX 4090"], FP16, course)
    assert lines[3].endswith("Batch per device 32 | Accumulation 2 | Effective batch 38")


def test_other_ranks_say_only_where_they_are() -> None:
    place = replace(PLACE, rank=3, device="cpu")
    fp32 = Numerics("fp32", autocast=False, scaler=False, documents_apart=False)
    lines = start_lines(place, "torch/gloo", [], fp32, COURSE)
    assert len(lines) == 2
    assert lines[0].endswith("GPUs none")
    assert lines[1].endswith("Precision fp32 | Autocast=OFF | GradScaler=OFF")


def test_a_step_says_its_pass_its_loss_its_rate_and_whether_ranks_agree() -> None:
    assert step_line(PLACE, COURSE, 200, 2.13449, 12345.6, "OK") == (
        f"{TAG} Epoch 1 | Step 200 | Loss 2.1345 | tok/s 12,346 | Sync=OK"
    )
    assert " Epoch 2 | Step 201 |" in step_line(PLACE, COURSE, 201, 2.0, 1.0, "OK")


def test_a_pass_says_both_losses_and_how_long_it_took() -> None:
    assert epoch_line(COURSE, 1, 2.5, 2.75, 318.44) == (
        "Epoch 1/5 | Train loss 2.5000 | Val loss 2.7500 | 318.4s"
    )
    assert "Val loss N/A" in epoch_line(COURSE, 1, 2.5, None, 1.0)


def test_the_end_is_said_by_every_rank() -> None:
    assert end_line(PLACE) == f"{TAG} Training finished. Gradients in sync."
