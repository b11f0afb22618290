"""`jupiterctl cycle start|plan`: starts a cycle, or shows the predictions for one.

Owns the commands and their options. Both show the same checks before anything starts (`preflight`).
Doesn't know what a cycle does.
"""

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

import click

from jupiterd.cluster.planning.engines import WANTED
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.cycle.cycle_arguments import start_arguments
from jupiterd.ctl.cycle.cycle_steering import begun_lines
from jupiterd.ctl.cycle.follow_cycle import follow_to_the_end
from jupiterd.ctl.hub.fetches import Fetches
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.options.island_options import island_options
from jupiterd.ctl.options.training_options import cycle_options
from jupiterd.ctl.options.wait_options import ACCEPT_WORSE, UNTIL_ITS_END, check_wait, wait_options
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.sources.base_model_source import SCRATCH
from jupiterd.formats import plain
from jupiterd.ids import short

COPYING_S = 900.0
"""Seconds to copy a model's weights into the daemon's store, and for a generator's first answer."""


def generator_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that name a generator."""
    for option in (
        click.option(
            "--api-key-env",
            metavar="NAME",
            help="The variable with a server's key; see api_keys in jupiter.yaml.",
        ),
        click.option(
            "--generator",
            metavar="FOLDER|ORG/NAME|URL#MODEL",
            help="A model that others made writes the synthetic text; else our own student, or the "
            "chat model of --init.",
        ),
    ):
        function = option(function)
    return function


def request_options(function: Callable[..., None]) -> Callable[..., None]:
    """Add the options that `start` and `plan` share."""
    for option in reversed(_REQUEST_OPTIONS):
        function = option(function)
    return function


_REQUEST_OPTIONS = (
    click.option(
        "--domain",
        default="",
        metavar="NAME|FILE",
        help="The domain to train for; the only one of this folder by default.",
    ),
    click.option("--rounds", type=click.IntRange(1, 1000), default=1, show_default=True),
    click.option("--size", default="1m", show_default=True, help="Size of the model."),
    click.option(
        "--seed", type=click.IntRange(0, 2**32 - 1), help="Decides every draw; 1 unless given."
    ),
    click.option(
        "--engine",
        type=click.Choice(WANTED),
        help="What to train on; auto unless given here or in cluster.yaml: MLX where all "
        "trainers are Macs, torch elsewhere.",
    ),
    click.option(
        "--init",
        metavar="DIR|ORG/NAME",
        default="",
        help="A Hugging Face model that round 1 begins with, in place of --size: weeks of training "
        "become days. Nothing: random weights.",
    ),
    click.option(
        "--adapter",
        metavar="FOLDER",
        help="Round 1 goes on with an adapter of peft or mlx-lm to that model.",
    ),
    generator_options,
    cycle_options,
    island_options,
    click.option(
        "--without-verdict",
        is_flag=True,
        help="Train though there is too little text for a verdict.",
    ),
)


@click.command(cls=GlobalOptionsCommand)
@request_options
@click.option(
    "--auto/--interactive",
    "auto",
    default=True,
    help="Run through, or wait after each phase until you have answered; auto by default.",
)
@wait_options(UNTIL_ITS_END)
@ACCEPT_WORSE
@dry_run
@click.pass_obj
def start(
    invocation: Invocation,
    *,
    auto: bool,
    wait: bool,
    timeout: float | None,
    accept_worse: bool,
    **given: Any,
) -> None:
    """Start a cycle; returns once it is recorded, or with --wait once it has ended.

    The sources are looked at first, for ten seconds at the most, and nothing starts where there is
    too little text for a verdict. Who trains a round, one gang or islands, is decided when its
    training begins, of the machines that are there then.

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
    fetches = Fetches()
    arguments = start_arguments(**given, fetches=fetches, state_dir=invocation.state_dir)
    arguments |= {} if auto else {"interactive": True}
    from jupiterd.client.channel import EXECUTE_TIMEOUT_S
    from jupiterd.client.reachability import check_listens
    from jupiterd.ctl.calls import ordered
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.preflight.cycle_preflight import Preflight, domain_of
    from jupiterd.ctl.preflight.looking_lines import Looking
    from jupiterd.ctl.preflight.planned_writer import planned_writer
    from jupiterd.protocol.commands.cycle_commands import PlanCycle, StartCycle

    check_listens(invocation.state_dir)
    console = Console.of(invocation)
    begins_with = str(arguments.get("begins_with", ""))
    with Looking(console) as looking:
        preflight = Preflight.of(domain_of(arguments), looking, begins_with)
    _warn_of_missing_sources(console, arguments)
    preflight.check(needs_verdict=not given["without_verdict"])
    slow = arguments.keys() & {"generator", "generator_folder", "judge", "judge_folder", "init"}
    timeout_s = COPYING_S if slow else EXECUTE_TIMEOUT_S
    writer = planned_writer(preflight.domain, given["generator"] or "", arguments.get("init") or {})
    requested = arguments | preflight.arguments() | writer.arguments()
    planned: list[str] = []
    if invocation.is_dry_run:  # also makes the leader's checks, with the same exit status
        prediction = ordered(invocation.state_dir, PlanCycle(**requested, is_start=True), timeout_s)
        planned = preflight.plan_lines(prediction, _title(arguments), arguments, writer)
    started = order(
        invocation.state_dir, StartCycle(**requested), timeout_s, lambda _: planned, fetches
    )
    title = f"cycle {short(str(started['cycle']))} started: {_title(arguments)}"
    lines = partial(preflight.plan_lines, started, title, arguments, writer)
    follow = begun_lines(started, "started")[-1]
    if not (wait or (console.can_ask and not auto)):
        console.show(started, lambda: [*lines(), follow])
        return
    for line in lines() if console.is_table else ():
        console.line(line)
    follow_to_the_end(invocation, str(started["cycle"]), timeout, accepts_worse=accept_worse)


@click.command(cls=GlobalOptionsCommand)
@request_options
@click.option("--verbose", is_flag=True, help="Show each source and layout, and where memory goes.")
@click.pass_obj
def plan(invocation: Invocation, *, verbose: bool, **given: Any) -> None:
    """Show what a cycle would read, train and take, and whether it can be judged; start nothing.

    \b
    Examples:
      jupiterctl cycle plan --domain python --size 100m
      jupiterctl cycle plan --domain ./cooking.yaml --rounds 5 -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    fetches = Fetches()
    arguments = start_arguments(
        **given, fetches=fetches, state_dir=invocation.state_dir, is_plan=True
    )
    from jupiterd.client.reachability import check_listens
    from jupiterd.ctl.orders import order
    from jupiterd.ctl.preflight.cycle_preflight import Preflight, domain_of
    from jupiterd.ctl.preflight.domain_cost import cost_lines, domain_cost
    from jupiterd.ctl.preflight.looking_lines import Looking
    from jupiterd.ctl.preflight.planned_writer import planned_writer
    from jupiterd.protocol.commands.cycle_commands import PlanCycle

    check_listens(invocation.state_dir)
    console, domain = Console.of(invocation), domain_of(arguments)
    begins_with = str(arguments.get("begins_with", ""))
    with Looking(console) as looking:
        preflight = Preflight.of(domain, looking, begins_with)
    _warn_of_missing_sources(console, arguments)
    writer = planned_writer(domain, given["generator"] or "", arguments.get("init") or {})
    requested = arguments | preflight.arguments() | writer.arguments()
    prediction = order(invocation.state_dir, PlanCycle(**requested))
    init = {
        "begins_with": begins_with or domain.init,
        "is_here": "init" in arguments,
        "size": given["size"],
        "to_fetch_bytes": fetches.missing_bytes,
    }
    planned = {
        **prediction,
        "plan": {**domain_cost(domain, writer), "init": init},
        "text": preflight.to_plain(),
    }
    title = f"{_title(arguments)}; nothing is started"

    def lines() -> list[str]:
        short_lines = preflight.plan_lines(prediction, title, arguments, writer)
        return [*short_lines, *(cost_lines(planned)[1:] if verbose else [MORE])]

    console.show(planned, lines)


MORE = "the rest: jupiterctl cycle plan --verbose"


def _title(arguments: Mapping[str, Any]) -> str:
    """Return a title with the domain, the rounds, and the size or the first model."""
    count = int(arguments["rounds"])
    rounds = "one round" if count == 1 else f"{count} rounds"
    size = f"size {arguments['size']}"
    first = str(arguments.get("begins_with") or size)
    if first not in (size, SCRATCH) and "init" not in arguments:
        first += f" (out of reach: what follows is of a model of {size})"
    return f"{plain(arguments['domain_name'])}, {rounds}, {plain(first)}"


def _warn_of_missing_sources(console: Console, arguments: Mapping[str, Any]) -> None:
    """Print the sources that aren't on this disk: only another machine can collect them."""
    from jupiterd.ctl.sources.source_reachability import not_on_this_disk
    from jupiterd.cycle.domain.domain import parse_domain

    domain = parse_domain(arguments["domain_yaml"], "domain.yaml")
    for line in not_on_this_disk(domain.data_sources):
        console.notice(plain(line))
