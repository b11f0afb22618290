"""The options about training, which training runs and cycles share.

Owns the options that both have. Doesn't apply them: the daemon does.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import click

Command = Callable[..., Any]

OF_CYCLES = (
    "seq_len", "batch_size", "learning_rate", "precision", "gradient_checkpointing", "attention",
    "optimizer", "max_steps", "loss_on", "fixed_micro_batch", "lora", "quantize", "shard", "memory",
)  # fmt: skip
"""Parameter names of the options about the training of a cycle's rounds."""


OFF = "off"
"""The value of --lora that trains all weights, whatever is usual here."""

USUAL_ADAPTER = "rank=16"
"""The value of --lora without any."""


def adapter_option(command: Command) -> Command:
    """Add the option that trains an adapter."""
    return click.option(
        "--lora",
        is_flag=False,
        flag_value=USUAL_ADAPTER,
        metavar="[rank=16,alpha=32,dropout=0,layers=all,targets=all,dora|off]",
        help="Train an adapter beside the model's weights, which stay as they are; off: none, "
        "whatever jupiter.yaml or a domain says.",
    )(command)


def quantize_option(command: Command) -> Command:
    """Add the option that says what an adapter's base is kept in."""
    return click.option(
        "--quantize",
        type=click.Choice(("4bit", "8bit", "none")),
        help="What --lora keeps the model's own matrices in; none: as they are multiplied.",
    )(command)


def computing_options(command: Command) -> Command:
    """Add the options about the nodes and the computation of a training."""
    for option in reversed(_COMPUTING):
        command = option(command)
    return command


def cycle_options(command: Command) -> Command:
    """Add the options about a cycle's training."""
    for option in reversed(_LENGTHS):
        command = option(command)
    return computing_options(adapter_option(quantize_option(command)))


def training_arguments(given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the command's fields about a cycle's training, without options that weren't given."""
    said = {name: given[name] for name in OF_CYCLES if given.get(name) is not None}
    if "lora" in said:
        said["lora"] = said["lora"] or USUAL_ADAPTER
    nodes = {} if given.get("nodes") is None else {"nodes": given["nodes"]}
    return {**({"training": said} if said else {}), **nodes}


def _joined(_: click.Context, __: click.Parameter, said: Sequence[str]) -> str | None:
    """Return an option that may be given often as one text."""
    return " ".join(said) or None


_COMPUTING = (
    click.option("--nodes", metavar="all|N|NAME,...", help="Who trains; all by default."),
    click.option("--precision", type=click.Choice(("auto", "fp32", "fp16", "bf16"))),
    click.option(
        "--gang-encryption",
        is_flag=False,
        flag_value="on",
        type=click.Choice(("on", "off")),
        metavar="[on|off]",
        help="Encrypt what ranks send each other, at a cost; no NCCL then. Off.",
    ),
    click.option(
        "--gang-backend",
        type=click.Choice(("auto", "gloo")),
        help="What ranks on torch talk over; auto: NCCL where all can.",
    ),
    click.option("--gradient-checkpointing", type=click.Choice(("auto", "on", "off"))),
    click.option(
        "--shard",
        type=click.Choice(("auto", "off", "1", "2", "3")),
        help="Cut the model over the machines by ZeRO's stage; auto: no more than takes to fit.",
    ),
    click.option(
        "--memory",
        multiple=True,
        callback=_joined,
        metavar="NODE=GB",
        help="Use so much of a machine's memory at the most; may be given for several.",
    ),
    click.option("--attention", type=click.Choice(("auto", "sdpa", "flash"))),
    click.option("--optimizer", type=click.Choice(("adamw", "muon"))),
    click.option(
        "--micro-batch",
        "fixed_micro_batch",
        type=click.IntRange(1),
        help="Sequences at a time on each device, without trying; what fills it by default.",
    ),
    click.option(
        "--lr",
        "learning_rate",
        type=float,
        help="Peak; the size's own by default, or what tuning given weights takes: 2e-5.",
    ),
)
_LENGTHS = (
    click.option(
        "--max-steps",
        type=click.IntRange(1),
        help="End each round's training after so many optimizer steps at the latest.",
    ),
    click.option(
        "--batch-size",
        type=click.IntRange(1),
        help="Sequences a device holds at a time; the size's own. A GPU takes what fills it.",
    ),
    click.option(
        "--seq-len",
        type=click.IntRange(16),
        help="Tokens of a sequence; the size's own by default, or the domain's.",
    ),
    click.option(
        "--loss-on",
        type=click.Choice(("all", "answers")),
        help="Of questions and answers, where --init is a chat model; answers.",
    ),
)
