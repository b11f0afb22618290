"""`jupiterctl train ...`: one training run, without the cycle."""

from collections.abc import Mapping
from typing import Any

import click

from jupiterd.cluster.planning.engines import AUTO, WANTED
from jupiterd.cluster.values.run_names import is_round_name
from jupiterd.ctl.commands import Group
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.options.durations import DURATION
from jupiterd.ctl.options.island_options import island_options
from jupiterd.ctl.options.training_options import (
    OFF,
    USUAL_ADAPTER,
    adapter_option,
    computing_options,
    quantize_option,
)
from jupiterd.ctl.options.wait_options import (
    ACCEPT_WORSE,
    UNTIL_AT_REST,
    UNTIL_ITS_END,
    check_wait,
    wait_options,
)
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.island_lines import island_lines
from jupiterd.ctl.output.layout_lines import layout_lines
from jupiterd.ctl.output.prediction_lines import prediction_lines
from jupiterd.ctl.output.progress_lines import (
    ENDED_STATES,
    cycle_summary,
    failure_lines,
    final_lines,
)
from jupiterd.ctl.sources.adapter_source import tuning_arguments
from jupiterd.ctl.sources.data_source import source_arguments
from jupiterd.ctl.sources.text_passes import passes_lines
from jupiterd.ctl.waiting.training_views import training_lines, view_lines, view_options, views_of
from jupiterd.ctl.waiting.wait_until_idle import stopped_line, wait_until_at_rest
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import UsageError
from jupiterd.formats import counted
from jupiterd.ids import short
from jupiterd.path_text import path_of

NOUN = "train"
COPYING_S = 900.0
"""Seconds to copy the weights of a folder into the daemon's store."""

ENGINE_HELP = f"What to train on; {AUTO} unless given here or in cluster.yaml."

HOW = "--nodes names machines, --engine what they use"

OF_READING = ("loss_on", "field")
"""Options that say how text is read, before it becomes a data set."""

NO_LORA = "leave out --lora, or begin with the base alone"

LATEST = ""
"""The value of --resume without a name."""


@click.group(cls=Group)
def command() -> None:
    """One training run of a model on a data set, without the cycle."""


@command.command()
@click.option("--data", metavar="NAME|FOLDER", help="A prepared data set, or text.")
@click.option("--model", metavar="SIZE|FOLDER|ID", help="Such as 1m or gpt2-medium, or a model.")
@click.option("--engine", type=click.Choice(WANTED), help=ENGINE_HELP)
@click.option("--max-steps", type=click.IntRange(1), help="End after so many optimizer steps.")
@click.option(
    "--epochs", type=click.IntRange(1), help="Passes over the data; as many as it is worth."
)
@click.option("--seq-len", type=click.IntRange(16), help="Tokens of a sequence; 1024 by default.")
@click.option(
    "--batch-size",
    type=click.IntRange(1),
    help="Sequences a device holds at a time; 1. A GPU takes what fills it.",
)
@click.option(
    "--gradient-accumulation-steps", type=click.IntRange(1), help="Micro-batches of a step; 32."
)
@computing_options
@click.option(
    "--document-masks",
    type=click.Choice(("on", "off")),
    help="Let no token see another document of its sequence; off by default.",
)
@click.option(
    "--loss-on",
    type=click.Choice(("all", "answers")),
    help="Of text that holds messages, or prompt and completion; answers.",
)
@click.option("--field", metavar="NAME", help="What holds the text in a table; text.")
@click.option("--weight-decay", type=float, help="The size's own by default.")
@adapter_option
@quantize_option
@click.option("--adapter", metavar="FOLDER", help="Go on with an adapter of peft or mlx-lm.")
@island_options
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), help="Decides every draw; 1.")
@click.option(
    "--log-dir", metavar="DIR", help="Where this machine's curves of the run are to be seen."
)
@click.option(
    "--resume",
    is_flag=False,
    flag_value=LATEST,
    metavar="[RUN]",
    help="Go on with a run that was stopped or failed, with the options that it was started with.",
)
@wait_options(UNTIL_ITS_END)
@ACCEPT_WORSE
@dry_run
@click.pass_obj
def start(
    invocation: Invocation,
    *,
    resume: str | None,
    wait: bool,
    timeout: float | None,
    log_dir: str | None,
    accept_worse: bool,
    **given: Any,
) -> None:
    """Train a model; returns once it is recorded, or with --wait once it has ended.

    Text is made into a data set on the way, which `jupiterctl data list` shows. The effective batch
    is batch size x accumulation x ranks, as many as would train at the start. A model may be a
    folder with the config.json of a Hugging Face causal language model, or its id on the hub, with
    @REVISION for another than main; where it holds weights (safetensors), training starts from
    them, and takes smaller batches of little text unless either factor is given. They are fetched
    here once all checks are made, and come to the other nodes from here. A folder of peft or mlx-lm
    with an adapter alone is a model, too, where the base that it names is known here.

    \b
    Examples:
      jupiterctl train start --data ./texts --model 1m --max-steps 500 --wait
      jupiterctl train start --data wikipedia-es --model 100m --epochs 2 --nodes 3
      jupiterctl train start --data ./texts --model ./my-gpt2 --seq-len 512
      jupiterctl train start --data ./texts --model Qwen/Qwen3-0.6B --seq-len 512
      jupiterctl train start --resume
    """  # noqa: D301 - click's mark for lines that keep their ends
    check_wait(wait=wait, timeout=timeout)
    chosen = {name: value for name, value in given.items() if value is not None}
    from jupiterd.client.channel import EXECUTE_TIMEOUT_S
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.preflight.held_out_look import held_out_lines, nothing_held_out_lines
    from jupiterd.ctl.sources.data_source import both_lines
    from jupiterd.ctl.train.curves_link import CurvesLink
    from jupiterd.protocol.commands.train_commands import ResumeTraining, StartTraining

    console = Console.of(invocation)
    link = None if log_dir is None else CurvesLink(log_dir, invocation.state_dir)
    if resume is not None:
        _refuse_changes(chosen)
        done = order(invocation.state_dir, ResumeTraining(train=resume))
        lines = [f"training {short(str(done['train']))} goes on"]
    else:
        fetches = Fetches()
        requested = start_arguments(invocation, chosen, fetches)
        timeout_s = COPYING_S if "weights_folder" in requested else EXECUTE_TIMEOUT_S

        taken = both_lines(invocation, chosen["data"])

        def ahead(predicted: Mapping[str, Any]) -> list[str]:
            return [
                *taken,
                *(begun_lines(predicted)[1:] if predicted else []),
                *passes_lines(predicted, requested),
                *held_out_lines(requested.get("source", {})),
                *_refused_now_lines(predicted),
            ]

        tried = invocation.is_dry_run  # a dry run shows all held-out lines
        warned = [] if tried else nothing_held_out_lines(requested.get("source", {}))
        command = StartTraining(**requested)
        done = order(invocation.state_dir, command, timeout_s, ahead, fetches)
        lines = [*begun_lines(done), *taken, *passes_lines(done, requested), *warned]
    if link is not None:
        lines.append(link.lead_to(str(done["train"])))
    if not wait:
        console.show(done, lambda: [*lines, "follow it with: jupiterctl train watch"])
        return
    for line in lines if console.is_table else ():
        console.line(line)
    _follow_to_the_end(invocation, str(done["train"]), timeout, accepts_worse=accept_worse)


@command.command()
@click.argument("run", metavar="[RUN]", required=False)
@view_options
@click.pass_obj
def status(invocation: Invocation, run: str | None, **wanted: bool) -> None:
    """Show the running training, or the last one, or any other.

    RUN is its name, an id or the beginning of one.

    \b
    Examples:
      jupiterctl train status
      jupiterctl train status 3f2a91bc
      jupiterctl train status --curve --outer-rounds
      jupiterctl train status -o json | jq .train.loss
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.train.last_checkpoint import checkpoints_of

    document = ask(invocation.state_dir, f"{NOUN}/{run}" if run else NOUN)
    train = document.get(NOUN)
    views = views_of(invocation.state_dir, train, wanted)
    Console.of(invocation).show(
        {**document, **views},
        lambda: [
            *status_lines(train, checkpoints_of(invocation.state_dir, train, views)),
            *view_lines(views),
        ],
    )


@command.command()
@click.option("--timeout", type=DURATION, metavar="S", help="Give up after this.")
@ACCEPT_WORSE
@click.pass_obj
def watch(invocation: Invocation, timeout: float | None, *, accept_worse: bool) -> None:
    """Follow the running training until it ends.

    \b
    Examples:
      jupiterctl train watch
      jupiterctl train watch -o jsonl
    """  # noqa: D301 - click's mark for lines that keep their ends
    _follow_to_the_end(invocation, None, timeout, accepts_worse=accept_worse)


@command.command()
@click.argument("run", metavar="[RUN]", required=False)
@wait_options(UNTIL_AT_REST)
@dry_run
@click.pass_obj
def stop(invocation: Invocation, run: str | None, *, wait: bool, timeout: float | None) -> None:
    """Stop a training; what it has made stays, and `train start --resume` goes on with it.

    It returns once that is recorded; machines save their last step and end a moment later.

    \b
    Examples:
      jupiterctl train stop
      jupiterctl train stop 3f2a91bc --yes --wait --timeout 2m
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.train_commands import StopTraining

    check_wait(wait=wait, timeout=timeout)
    console = Console.of(invocation)
    console.confirm(f"stop {f'training {run}' if run else 'the running training'}?", invocation)
    stopped = order(invocation.state_dir, StopTraining(train=run or ""))
    if wait:
        wait_until_at_rest(invocation.state_dir, NOUN, str(stopped["train"]), timeout)
    again = goes_on_line(stopped.get("train") or run or "")
    console.show(stopped, lambda: [stopped_line(is_at_rest=wait), again])


def start_arguments(
    invocation: Invocation, given: Mapping[str, Any], fetches: Fetches
) -> dict[str, Any]:
    """Return the fields of the command."""
    settings = dict(given)
    data, name = settings.pop("data", None), settings.pop("model", None)
    if data is None or name is None:
        missing = "--data" if data is None else "--model"
        raise UsageError(f"missing option {missing}", "jupiterctl train start --help")
    named = {name: settings.pop(name) for name in ("engine", "nodes") if name in settings}
    lora, quantize = settings.pop("lora", None), settings.pop("quantize", None)
    read = {name: settings.pop(name) for name in OF_READING if name in settings}
    if read and not _is_path(data):
        option, value = next((f"--{name.replace('_', '-')}", read[name]) for name in read)
        raise UsageError(
            f"{option} is said where text is read, and {data} is a data set that was made already",
            f"jupiterctl data prepare {option} {value} makes another",
        )
    model = tuning_arguments(name, settings.pop("adapter", None), fetches, invocation.state_dir)
    found = model.pop("lora", None)
    if found is not None and lora is not None:
        raise UsageError("--lora says what a new adapter is, and this one is there", NO_LORA)
    settings |= _adapter_of(lora if found is None else found, quantize)
    where = source_arguments(invocation, data, read) if _is_path(data) else {"data": data}
    return {**where, **named, **model, "settings": settings}


def _adapter_of(lora: str | None, quantize: str | None) -> dict[str, str]:
    """Return the adapter's one text, with what its base is kept in."""
    if lora in (None, OFF) and quantize not in (None, "none"):
        raise UsageError(
            "only a model that stays as it is can be quantized, and all weights are trained",
            f"add --lora, which trains an adapter beside it: --lora --quantize {quantize}",
        )
    if lora is None:
        return {}
    if lora == OFF:
        return {"lora": ""}
    kept = [] if quantize is None else [f"quantize={quantize}"]
    return {"lora": ",".join([lora or USUAL_ADAPTER, *kept])}


def begun_lines(done: Mapping[str, Any]) -> list[str]:
    """Return the lines about a run that was started."""
    started = f"training {short(str(done['train']))} started: {done['model']} on {done['name']}"
    sheet = map(str, done.get("sheet") or _batch_lines(done))
    return [started, *sheet, *layout_lines(done, HOW)]


def _batch_lines(done: Mapping[str, Any]) -> list[str]:
    """Return the lines about a run of a leader that sends no `sheet`, which is an older version."""
    ranks = counted(done["ranks"], "rank")
    factors = f"{done['batch_size']} x {done['gradient_accumulation_steps']}"
    length = f"{done['seq_len']:,}"
    sequences = counted(done["batch_sequences"], "sequence")
    return [
        f"parameters: {done['parameters']:,}",
        f"batch: {factors} x {ranks} = {sequences} of {length} tokens",
    ]


def status_lines(
    train: Mapping[str, Any] | None, checkpoints: Mapping[str, Any] | None = None
) -> list[str]:
    """Return the lines about a training's status; None: no training was started.

    checkpoints: those of one that was stopped or failed
    """
    from jupiterd.ctl.train.last_checkpoint import AT_REST, last_step_line

    if not train:
        return ["no training run has been started; what a cycle trains: jupiterctl cycle status"]
    ended = train.get("state") in ENDED_STATES
    lines = [f"training {cycle_summary(train)}", *failure_lines(train)]
    lines += [*island_lines(train), *prediction_lines(train), *training_lines(train)]
    is_at_rest = train.get("state") in AT_REST
    again = [last_step_line(train, checkpoints), goes_on_line(train["id"])] if is_at_rest else []
    return [*lines, *again, *(final_lines(train) if ended else [])]


def goes_on_line(run: object) -> str:
    """Return a line with the command that resumes a run that was stopped or failed."""
    return f"go on with it: jupiterctl train start --resume {short(str(run))}"


def _is_path(data: str) -> bool:
    """Return whether `data` names text; NAME/1 is the data of a cycle's round."""
    return path_of(data).exists() or ("/" in data and not is_round_name(data))


def _refuse_changes(given: Mapping[str, Any]) -> None:
    if given:
        name = next(iter(given)).replace("_", "-").replace("learning-rate", "lr")
        raise UsageError(
            f"--resume goes on with a run as it was started, so --{name} can't be given",
            "leave it out, or start a new run without --resume",
        )


def _follow_to_the_end(
    invocation: Invocation, run_id: str | None, timeout_s: float | None, *, accepts_worse: bool
) -> None:
    from jupiterd.ctl.waiting.follow import conclude, follow

    console = Console.of(invocation)
    train = follow(invocation.state_dir, run_id, console, timeout_s, NOUN)
    if console.output == "json":
        console.show({"schema": SCHEMA, NOUN: train}, list)
    conclude(train, console, accepts_worse=accepts_worse)


def _refused_now_lines(predicted: Mapping[str, Any]) -> list[str]:
    """Return a line about what hinders a dry run's command just now; nothing hinders: none."""
    from jupiterd.protocol.commands.train_commands import REFUSED_NOW

    refused = predicted.get(REFUSED_NOW)
    return [f"just now it would be refused: {refused['message']}"] if refused else []
