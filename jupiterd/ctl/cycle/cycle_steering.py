"""`jupiterctl cycle stop|pause|resume|extend|rollback|dismiss`: commands that steer a cycle.

Owns these commands, for running and for ended cycles. Doesn't carry them out: the leader does.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.cycle.follow_cycle import follow_to_the_end
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.options.wait_options import (
    ACCEPT_WORSE,
    UNTIL_AT_REST,
    UNTIL_ITS_END,
    check_wait,
    wait_options,
)
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.layout_lines import layout_lines
from jupiterd.ctl.output.next_round import rolled_back_lines
from jupiterd.ctl.output.progress_lines import CYCLE
from jupiterd.ctl.waiting.wait_until_idle import WORDS, stopped_line, wait_until_at_rest
from jupiterd.errors import UsageError
from jupiterd.formats import plain
from jupiterd.ids import short


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@wait_options(UNTIL_AT_REST)
@dry_run
@click.pass_obj
def stop(invocation: Invocation, cycle: str | None, *, wait: bool, timeout: float | None) -> None:
    """Stop a cycle; what it has made stays, and `jupiterctl cycle resume` goes on with it.

    It returns once that is recorded; machines end what they do a moment later.

    \b
    Examples:
      jupiterctl cycle stop
      jupiterctl cycle stop 3f2a91bc --yes --wait --timeout 2m
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.cycle_commands import StopCycle

    check_wait(wait=wait, timeout=timeout)
    console = Console.of(invocation)
    console.confirm(f"stop {f'cycle {cycle}' if cycle else 'the running cycle'}?", invocation)
    stopped = order(invocation.state_dir, StopCycle(cycle=cycle or None))
    if wait:
        wait_until_at_rest(invocation.state_dir, CYCLE, str(stopped["cycle"]), timeout)
    again = f"go on with it: jupiterctl cycle resume {short(str(stopped['cycle']))}"
    console.show(stopped, lambda: [stopped_line(is_at_rest=wait), again])


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@dry_run
@click.pass_obj
def rollback(invocation: Invocation, cycle: str | None) -> None:
    """Take the newest student out of force as a generator; whoever wrote before comes back.

    CYCLE is a domain, an id or the beginning of one; without it the running cycle is meant, or the
    newest. It holds from the next round on, of one that has ended where it is extended. What the
    student has written is kept. A student is rolled back by itself where the model trained with its
    text is worse on development text. Where the domain has no templates, nothing is generated: the
    student is no longer the model that `promoted` means, from now on, and the one before it is.

    \b
    Examples:
      jupiterctl cycle rollback
      jupiterctl cycle rollback 3f2a91bc --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.cycle_commands import RollBackStudent

    console = Console.of(invocation)
    console.confirm("take the newest student out of force?", invocation)
    done = order(invocation.state_dir, RollBackStudent(cycle=cycle or None))
    console.show(done, lambda: rolled_back_lines(done))


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@wait_options(UNTIL_AT_REST)
@dry_run
@click.pass_obj
def pause(invocation: Invocation, cycle: str | None, *, wait: bool, timeout: float | None) -> None:
    """Pause a cycle on all machines; nothing that was made is lost.

    A training saves a checkpoint and ends; what else was being done is done again later. CYCLE is
    an id or the beginning of one; without it the running cycle is paused. The machines are free
    until `jupiterctl cycle resume`, also across restarts.

    \b
    Examples:
      jupiterctl cycle pause
      jupiterctl cycle pause 3f2a91bc --wait --timeout 2m && echo the machines are free
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.cycle_commands import PauseCycle

    check_wait(wait=wait, timeout=timeout)
    paused = order(invocation.state_dir, PauseCycle(cycle=cycle or None))
    if wait:
        wait_until_at_rest(invocation.state_dir, CYCLE, str(paused["cycle"]), timeout)
    named, how = short(str(paused["cycle"])), WORDS if wait else ""
    lines = [f"cycle {named} is paused{how}", f"go on with it: jupiterctl cycle resume {named}"]
    Console.of(invocation).show(paused, lambda: lines)


PHASES = ("collect", "generate", "filter", "pack", "train", "evaluate", "gate")
LAST = "last"


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@click.option(
    "--redo",
    is_flag=False,
    flag_value=LAST,
    type=click.Choice([*PHASES, LAST]),
    metavar="[PHASE]",
    help="Do a phase of this round again, and what is made of it; the last one unless named.",
)
@click.option(
    "--set",
    "settings",
    multiple=True,
    metavar="KEY=VALUE",
    help="Another value than the domain file's, for phases that haven't begun; may be repeated.",
)
@click.option("--auto", is_flag=True, help="Wait after no phase any more.")
@wait_options(UNTIL_ITS_END)
@ACCEPT_WORSE
@dry_run
@click.pass_obj
def resume(
    invocation: Invocation,
    cycle: str | None,
    *,
    wait: bool,
    timeout: float | None,
    accept_worse: bool,
    **options: Any,
) -> None:
    """Go on with a cycle that was paused or stopped, or failed, from what it has made.

    CYCLE is a domain, an id or the beginning of one; without it the paused cycle goes on, else the
    one that was started last. One that failed goes on from the phase that failed: nothing that is
    done is done again, so mend first what it failed of. It follows the branch that `jupiterctl
    cluster branches` calls canonical. A cycle that waits after a phase takes this as its answer.

    \b
    Examples:
      jupiterctl cycle resume
      jupiterctl cycle resume 3f2a91bc --wait --timeout 2h
      jupiterctl cycle resume --set mix_ratio.synthetic_share=0.2 --redo
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.cycle_commands import ResumeCycle

    check_wait(wait=wait, timeout=timeout)
    settings = changed_settings(options["settings"])
    command = ResumeCycle(
        cycle=cycle or None, redo=options["redo"], settings=settings or None, auto=options["auto"]
    )
    resumed = order(invocation.state_dir, command)
    console = Console.of(invocation)
    if not wait:
        console.show(resumed, lambda: begun_lines(resumed, "goes on"))
        return
    for line in begun_lines(resumed, "goes on")[:-1] if console.is_table else ():
        console.line(line)
    follow_to_the_end(invocation, str(resumed["cycle"]), timeout, accepts_worse=accept_worse)


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@click.option("--rounds", type=click.IntRange(1, 1000), default=1, show_default=True,
              help="So many more than it has.")  # fmt: skip
@wait_options(UNTIL_ITS_END)
@ACCEPT_WORSE
@dry_run
@click.pass_obj
def extend(
    invocation: Invocation,
    cycle: str | None,
    *,
    rounds: int,
    wait: bool,
    timeout: float | None,
    accept_worse: bool,
) -> None:
    """Give a cycle more rounds; one that has ended or was stopped goes on at once.

    CYCLE is a domain, an id or the beginning of one; without it the one that was started last is
    meant. It stays the same cycle: its last model, its text, its generators and what was held out
    go on, and looks at the held-out text that were spent stay spent. A paused one stays paused.

    \b
    Examples:
      jupiterctl cycle extend --rounds 2
      jupiterctl cycle extend 3f2a91bc --rounds 5 --wait --timeout 8h
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.cycle_commands import ExtendCycle

    check_wait(wait=wait, timeout=timeout)
    command = ExtendCycle(rounds=rounds, cycle=cycle or None)
    done = order(invocation.state_dir, command, predicted=predicted_lines)
    console = Console.of(invocation)
    if not wait:
        console.show(done, lambda: extended_lines(done))
        return
    for line in extended_lines(done)[:-1] if console.is_table else ():
        console.line(line)
    follow_to_the_end(invocation, str(done["cycle"]), timeout, accepts_worse=accept_worse)


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@dry_run
@click.pass_obj
def dismiss(invocation: Invocation, cycle: str | None) -> None:
    """End the alarm about a cycle, a training run or a data set that failed.

    CYCLE is its name, its id or the beginning of one; without it all such alarms end. It stays as
    it is; if it goes on and fails again, the alarm comes back.

    \b
    Examples:
      jupiterctl cycle dismiss
      jupiterctl cycle dismiss 3f2a91bc
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.alarm_commands import DismissFailure

    done = order(invocation.state_dir, DismissFailure(cycle=cycle or None))
    lines = [f"no alarm about {plain(e['name'])} ({short(e['id'])})" for e in done["dismissed"]]
    Console.of(invocation).show(done, lambda: lines)


def changed_settings(texts: Sequence[str]) -> dict[str, str]:
    """Return key -> value for texts like KEY=VALUE.

    Raises:
        UsageError: a text has another form.
    """
    pairs = [each.partition("=") for each in texts]
    if wrong := next((key for key, equals, _ in pairs if not (key and equals)), None):
        raise UsageError(f"--set {wrong}: expected KEY=VALUE", "jupiterctl cycle resume --help")
    return {key.strip(): value.strip() for key, _, value in pairs}


def extended_lines(done: Mapping[str, Any]) -> list[str]:
    """Return lines about an extended cycle; the last line names the next command."""
    named, rounds = short(str(done["cycle"])), f"has {done['rounds']} rounds"
    was = done.get("was")
    if was == "paused":
        return [
            f"cycle {named} {rounds}, and stays paused",
            f"go on with it: jupiterctl cycle resume {named}",
        ]
    before = {"stopped": "it was stopped", "finished": "it had ended"}.get(str(was))
    restarted = f"; {before}, and goes on now with round {done['from_round']}" if before else ""
    return begun_lines(done, rounds + restarted)


def predicted_lines(predicted: Mapping[str, Any]) -> list[str]:
    """Return lines about the prediction for an extended cycle; empty if there is none."""
    if not predicted:
        return []
    runs = (
        ""
        if predicted.get("was") == "paused"
        else f", and go on with round {predicted['from_round']}"
    )
    named = f"cycle {short(str(predicted['cycle']))} would have {predicted['rounds']} rounds{runs}"
    return [named, *map(plain, predicted.get("lines", ()))]


def begun_lines(done: Mapping[str, Any], how: str) -> list[str]:
    """Return lines about a cycle that starts or goes on; the last one says how to follow it."""
    cycle, sheet = str(done["cycle"]), map(str, done.get("sheet", ()))
    lines = [f"cycle {short(cycle)} {how}", *sheet, *layout_lines(done)]
    return [*lines, "follow it with: jupiterctl cycle watch"]
