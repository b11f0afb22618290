"""`jupiterctl cycle ...`: cycles, which improve a model of one domain in rounds."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.cycle.cycle_list import list_
from jupiterd.ctl.cycle.cycle_report import report
from jupiterd.ctl.cycle.cycle_start import plan, start
from jupiterd.ctl.cycle.cycle_steering import dismiss, extend, pause, resume, rollback, stop
from jupiterd.ctl.cycle.follow_cycle import follow_to_the_end
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.options.durations import DURATION
from jupiterd.ctl.options.wait_options import ACCEPT_WORSE
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.island_lines import island_lines
from jupiterd.ctl.output.pause_lines import pause_line
from jupiterd.ctl.output.phase_lines import heavy_drop_lines, phase_lines
from jupiterd.ctl.output.prediction_lines import prediction_lines
from jupiterd.ctl.output.progress_lines import (
    ENDED_STATES,
    cycle_summary,
    failure_lines,
    final_lines,
    verdict_lines,
)
from jupiterd.ctl.output.writer_lines import writer_lines
from jupiterd.ctl.waiting.training_views import (
    name_of,
    training_lines,
    view_lines,
    view_options,
    views_of,
)
from jupiterd.document_schema import SCHEMA
from jupiterd.formats import plain, printable

PROMPTS_SHOWN = 2
"""Below an explanation; the report has all of them."""


@click.group(cls=Group)
def command() -> None:
    """Self-improvement: a model of one domain that trains, judges itself and goes round again."""


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
    of the newest cycle that has verdicts. Without either the last verdict is explained. Below it
    stand two prompts of held-out text with what the compared models write, which decides nothing;
    jupiterctl cycle report shows more. jupiterctl gate run computes the verdict again.

    \b
    Examples:
      jupiterctl cycle explain
      jupiterctl cycle explain 2 -o json | jq .verdict.questions
      jupiterctl cycle explain 3f2a91bc 1
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.cycle.verdict_folder import recorded_verdict
    from jupiterd.cycle.rounds.explanation import explain as explained

    noun = "/".join(str(part) for part in ("verdict", cycle, number) if part is not None)
    found = ask_over_grpc(invocation.state_dir, noun)["verdict"]
    document = recorded_verdict(Path(found["folder"]))
    console = Console.of(invocation)
    answers = found.get("answers")
    console.show(
        {
            **document,
            "schema": SCHEMA,
            "answers": answers,
            "own_questions": found.get("own_questions"),
        },
        lambda: [
            *(printable(line) for line in found.get("explained") or explained(document)),
            *_answers_shown(answers, console.columns),
        ],
    )


def _answers_shown(answers: Mapping[str, Any] | None, columns: int) -> list[str]:
    """Return a few answers of the compared models; nothing where an older daemon has none."""
    from jupiterd.cycle.rounds.answer_lines import answer_lines

    lines = [line.text for line in answer_lines(answers, columns, PROMPTS_SHOWN)] if answers else []
    return ["", *lines] if lines else []


@command.command()
@click.option("--timeout", type=DURATION, metavar="S", help="Give up after this.")
@ACCEPT_WORSE
@click.pass_obj
def watch(invocation: Invocation, timeout: float | None, *, accept_worse: bool) -> None:
    """Follow the running cycle until it ends.

    \b
    Examples:
      jupiterctl cycle watch
      jupiterctl cycle watch -o jsonl
    """  # noqa: D301 - click's mark for lines that keep their ends
    follow_to_the_end(invocation, None, timeout, accepts_worse=accept_worse)


for verb in (start, plan, dismiss, extend, list_, pause, report, resume, rollback, stop):
    command.add_command(verb)


def status_lines(cycle: Mapping[str, Any] | None) -> list[str]:
    """Return the lines about a cycle's status; None: no cycle was started."""
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
