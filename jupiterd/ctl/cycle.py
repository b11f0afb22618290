"""`jupiterctl cycle ...`: self-improvement of a model in one domain."""

from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import click

from jupiterd.cluster.engines import WANTED
from jupiterd.ctl.commands import Group
from jupiterd.ctl.console import Console
from jupiterd.ctl.cycle_following import follow_to_the_end
from jupiterd.ctl.cycle_list import list_
from jupiterd.ctl.cycle_report import report
from jupiterd.ctl.cycle_steering import (
    begun_lines,
    dismiss,
    extend,
    pause,
    resume,
    rollback,
    stop,
)
from jupiterd.ctl.durations import DURATION
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.island_lines import island_lines
from jupiterd.ctl.island_options import OF_ISLANDS, island_options
from jupiterd.ctl.options.training_options import cycle_options, training_arguments
from jupiterd.ctl.pause_lines import pause_line
from jupiterd.ctl.phase_lines import heavy_drop_lines, phase_lines
from jupiterd.ctl.prediction_lines import prediction_lines
from jupiterd.ctl.progress_lines import (
    ENDED_STATES,
    cycle_summary,
    failure_lines,
    final_lines,
    verdict_lines,
)
from jupiterd.ctl.training_views import name_of, training_lines, view_lines, view_options, views_of
from jupiterd.ctl.wait_options import UNTIL_ITS_END, check_wait, wait_options
from jupiterd.ctl.writer_lines import writer_lines
from jupiterd.cycle.generator import is_server
from jupiterd.document_schema import SCHEMA
from jupiterd.formats import plain, printable


def generator_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a generator."""
    for option in (
        click.option(
            "--api-key-env", metavar="NAME", help="The variable of jupiterd with a server's key."
        ),
        click.option(
            "--generator",
            metavar="FOLDER|ORG/NAME|URL#MODEL",
            help="A model that others made writes the synthetic text; our own student unless told.",
        ),
    ):
        function = option(function)
    return function


COPYING_S = 900.0
"""How long a model's weights may take into the daemon's store, and a generator to answer once."""


@click.group(cls=Group)
def command() -> None:
    """Self-improvement: a model of one domain that trains, judges itself and goes round again."""


@command.command()
@click.option(
    "--domain",
    default="",
    metavar="NAME|FILE",
    help="What to become an expert in; the only domain of this folder unless told.",
)
@click.option("--rounds", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--size", default="1m", show_default=True, help="Size of the model.")
@click.option(
    "--seed", type=click.IntRange(0, 2**32 - 1), help="Decides every draw; 1 unless given."
)
@click.option(
    "--engine",
    type=click.Choice(WANTED),
    help="What to train on; auto unless told, or written in cluster.yaml: MLX where all trainers "
    "are Macs, torch elsewhere.",
)
@click.option(
    "--init",
    metavar="DIR|ORG/NAME",
    default="",
    help="A Hugging Face model that round 1 begins with, in place of --size: weeks of training "
    "become days. Nothing: random weights.",
)
@generator_options
@cycle_options
@island_options
@click.option(
    "--auto/--interactive",
    "auto",
    default=True,
    help="Run through, or wait after each phase until you have answered; auto unless told.",
)
@wait_options(UNTIL_ITS_END)
@dry_run
@click.pass_obj
def start(
    invocation: Invocation, *, auto: bool, wait: bool, timeout: float | None, **given: Any
) -> None:
    """Start a cycle; returns once it is recorded, or with --wait once it has ended.

    Who trains a round, one gang or islands, is decided when its training begins, of the machines
    that are there then.

    \b
    Examples:
      jupiterctl cycle start --domain python --rounds 2 --size 1m --wait
      jupiterctl cycle start --domain ./cooking.yaml --wait --timeout 30m
      jupiterctl cycle start --domain chemistry --generator http://localhost:11434/v1#qwen3:4b
      jupiterctl cycle start --domain chemistry --generator HuggingFaceTB/SmolLM2-1.7B-Instruct
      jupiterctl cycle start --domain chemistry --init HuggingFaceTB/SmolLM2-360M
      jupiterctl cycle start --domain python --islands 'mlx:mini torch:box1,box2' --sync-every 100
    """  # noqa: D301 - click's mark for lines that keep their ends
    check_wait(wait=wait, timeout=timeout)
    arguments = start_arguments(**given) | ({} if auto else {"interactive": True})
    from jupiterd.client.channel import EXECUTE_TIMEOUT_S
    from jupiterd.ctl.calls import order

    console = Console.of(invocation)
    _tell_of_missing_sources(console, arguments)
    slow = arguments.keys() & {"generator", "generator_folder", "judge", "judge_folder", "init"}
    timeout_s = COPYING_S if slow else EXECUTE_TIMEOUT_S
    started = order(invocation.state_dir, "cycle.start", arguments, timeout_s)
    if not (wait or (console.can_ask and not auto)):
        console.show(started, lambda: begun_lines(started, "started"))
        return
    for line in begun_lines(started, "started")[:-1] if console.is_table else ():
        console.line(line)
    follow_to_the_end(invocation, str(started["cycle"]), timeout)


@command.command()
@click.option(
    "--domain",
    default="",
    metavar="NAME|FILE",
    help="What to become an expert in; the only domain of this folder unless told.",
)
@click.option("--rounds", type=click.IntRange(1, 1000), default=1, show_default=True)
@click.option("--size", default="1m", show_default=True, help="Size of the model.")
@click.option("--seed", type=click.IntRange(0, 2**32 - 1), hidden=True)
@click.option("--engine", type=click.Choice(WANTED), help="As of cycle start.")
@click.option("--init", metavar="DIR|ORG/NAME", default="", help="As of cycle start.")
@cycle_options
@island_options
@click.pass_obj
def plan(invocation: Invocation, **given: Any) -> None:
    """Show what a cycle would collect, train and take; start nothing.

    \b
    Examples:
      jupiterctl cycle plan --domain python --size 100m
      jupiterctl cycle plan --domain ./cooking.yaml --rounds 5 -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    arguments = start_arguments(**given, generator="", judge="", is_plan=True)
    from jupiterd.ctl.calls import order
    from jupiterd.ctl.domain_cost import cost_lines, domain_cost
    from jupiterd.cycle.domain import parse_domain

    domain = parse_domain(arguments["domain_yaml"], "domain.yaml")
    _tell_of_missing_sources(Console.of(invocation), arguments)
    told = order(invocation.state_dir, "cycle.plan", arguments)
    begins_with = str(arguments.get("begins_with") or domain.init)
    init = {"begins_with": begins_with, "is_here": "init" in arguments, "size": given["size"]}
    planned = {**told, "plan": {**domain_cost(domain), "init": init}}
    Console.of(invocation).show(planned, lambda: cost_lines(planned))


@command.command()
@click.argument("cycle", metavar="[CYCLE]", required=False)
@view_options
@click.pass_obj
def status(invocation: Invocation, cycle: str | None, **wanted: bool) -> None:
    """Show the running cycle, or the last one, or any other.

    CYCLE is a domain, an id or the beginning of one: jupiterctl cycle list shows all.

    \b
    Examples:
      jupiterctl cycle status
      jupiterctl cycle status 3f2a91bc
      jupiterctl cycle status --curve --checkpoints
      jupiterctl cycle status -o json | jq .cycle.val_bpb
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    document = ask(invocation.state_dir, f"cycle/{cycle}" if cycle else "cycle")
    found = document.get("cycle")
    views = views_of(invocation.state_dir, found, wanted)
    Console.of(invocation).show(
        {**document, **views}, lambda: [*status_lines(found), *view_lines(views)]
    )


@command.command()
@click.argument("cycle", metavar="[CYCLE]", required=False)
@click.argument("number", metavar="[ROUND]", type=click.IntRange(1), required=False)
@click.pass_obj
def explain(invocation: Invocation, cycle: str | None, number: int | None) -> None:
    """Say why a round's verdict was what it was, and what would have been needed.

    CYCLE is a domain, an id or the beginning of one, ROUND one of its rounds; a ROUND alone is one
    of the newest cycle that has verdicts. Without either the last verdict is explained.
    jupiterctl gate run computes it again.

    \b
    Examples:
      jupiterctl cycle explain
      jupiterctl cycle explain 2 -o json | jq .verdict.questions
      jupiterctl cycle explain 3f2a91bc 1
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.verdict_folder import recorded_verdict
    from jupiterd.cycle.gate.explanation import explain as explained

    noun = "/".join(str(part) for part in ("verdict", cycle, number) if part is not None)
    found = ask_over_grpc(invocation.state_dir, noun)["verdict"]
    document = recorded_verdict(Path(found["folder"]))
    Console.of(invocation).show(
        {**document, "schema": SCHEMA},
        lambda: [printable(line) for line in explained(document)],
    )


@command.command()
@click.option("--timeout", type=DURATION, metavar="S", help="Give up after this.")
@click.pass_obj
def watch(invocation: Invocation, timeout: float | None) -> None:
    """Follow the running cycle until it ends.

    \b
    Examples:
      jupiterctl cycle watch
      jupiterctl cycle watch -o jsonl
    """  # noqa: D301 - click's mark for lines that keep their ends
    follow_to_the_end(invocation, None, timeout)


for steering in (dismiss, extend, list_, pause, report, resume, rollback, stop):
    command.add_command(steering)


def start_arguments(  # noqa: PLR0913, PLR0917 - an option each
    domain: str,
    rounds: int,
    size: str,
    engine: str | None,
    seed: int | None,
    generator: str | None = None,
    api_key_env: str | None = None,
    init: str = "",
    judge: str | None = None,
    *,
    is_plan: bool = False,
    **said: Any,
) -> dict[str, Any]:
    """Return what the daemon is told.

    Raises:
        NotFoundError: there is no such domain, no such generator, or no such model.
        UsageError: no domain is named, and there isn't one alone.
        InvalidDomainError: the domain file has mistakes.
        JupiterError: the generator can't be had, or can't be one.
    """
    from jupiterd.ctl.domain_files import only_domain, read_domain_file
    from jupiterd.ctl.domain_name import checked_domain
    from jupiterd.ctl.generator_source import generator_arguments, judge_arguments
    from jupiterd.ctl.init_source import init_arguments, planned_init
    from jupiterd.cycle.generation.usual_templates import check_is_used

    init_of = planned_init if is_plan else init_arguments
    file = read_domain_file(domain or only_domain())
    found = checked_domain(file)
    writing = found.generation
    named = writing.generator if generator is None else generator
    check_is_used(found, {"name": named} if named else {})
    key_name = (
        (writing.api_key_env if is_server(named) else "") if api_key_env is None else api_key_env
    )
    name = found.domain
    arguments = {
        "domain_name": name,
        "domain_yaml": file.text,
        "rounds": rounds,
        "size": size,
        **generator_arguments(named, key_name),
        **({"generator": {}} if writing.generator and not named else {}),
    }
    if found.gate.judge:
        wanted = found.gate.judge if judge is None else judge
        arguments |= judge_arguments(wanted, found.gate.judge_api_key_env)
    arguments |= init_of(init or found.init)
    if init and init != found.init:
        arguments["begins_with"] = init
    arguments |= training_arguments(said)
    settings = {name: said[name] for name in OF_ISLANDS if said.get(name) is not None}
    chosen = {"engine": engine, "seed": seed, "settings": settings or None}
    return arguments | {name: value for name, value in chosen.items() if value is not None}


def _tell_of_missing_sources(console: Console, arguments: Mapping[str, Any]) -> None:
    """Name the folders that aren't here: the cycle would end at once, unless another collects."""
    from jupiterd.ctl.source_reach import not_on_this_disk
    from jupiterd.cycle.domain import parse_domain

    domain = parse_domain(arguments["domain_yaml"], "domain.yaml")
    for line in not_on_this_disk(domain.data_sources):
        console.notice(plain(line))


def status_lines(cycle: Mapping[str, Any] | None) -> list[str]:
    """Return a cycle as people read it."""
    if not cycle:
        return ["no cycle has been started"]
    lines = [f"cycle {cycle_summary(cycle)}", *failure_lines(cycle)]
    lines += filter(None, [pause_line(cycle)])
    lines += [*island_lines(cycle), *prediction_lines(cycle), *training_lines(cycle)]
    does = "generated" if cycle.get("state") in ENDED_STATES else "generates"
    lines += [_generator_line(row, does) for row in cycle.get("generators", [])]
    lines += writer_lines(cycle)
    lost = cycle.get("lost_sources", [])
    lines += [f"round {each['round']} collect   {plain(each['told'])}" for each in lost]
    if gone := cycle.get("lost_generator"):
        lines.append(f"round {gone['round']} generate  {plain(gone['told'])}")
    lines += [*phase_lines(cycle), *heavy_drop_lines(cycle)]
    for verdict in cycle.get("verdicts", []):
        lines += verdict_lines(verdict)
    return lines + (final_lines(cycle) if cycle.get("state") in ENDED_STATES else [])


def _generator_line(row: Mapping[str, Any], does: str) -> str:
    rates = f"{row['tokens_per_s']:,.0f} tokens/s, {row['accepted_per_min']:,.0f} samples/min"
    return f"  {name_of(row)} {does}: {rates}"
