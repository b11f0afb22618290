"""`jupiterctl data samples`: shows the samples that a phase has kept and dropped.

Owns the command. Doesn't find samples, or make the lines.
"""

from collections.abc import Mapping
from typing import Any

import click

from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.errors import UsageError

PHASES = ("collect", "generate", "filter")
"""The phases that keep or drop text; as strings, because their class takes long to import."""

READING_S = 60.0


@click.command(cls=GlobalOptionsCommand)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@click.option(
    "--round", "number", type=click.IntRange(1), help="Which round; with --phase or --dropped."
)
@click.option("--phase", type=click.Choice(PHASES), help="Which phase.")
@click.option("--dropped", is_flag=True, help="All that a round left out, by reason.")
@click.option("--reason", metavar="R", help="With --dropped: for this reason alone.")
@click.option("--whole", is_flag=True, help="Whole texts, not their beginnings alone.")
@click.pass_obj
def samples(  # noqa: PLR0913 - an option each
    invocation: Invocation,
    *,
    cycle: str | None,
    number: int | None,
    phase: str | None,
    dropped: bool,
    reason: str | None,
    whole: bool,
) -> None:
    """Show samples that a phase has kept and dropped, with the reasons.

    CYCLE is a domain, an id or the beginning of one; without it the newest is meant. Without
    --round and --phase a few samples of the newest phase that has some are shown, with them up to
    forty of each kind. `jupiterctl data why` shows where one comes from.

    --dropped shows what a round left out: files that weren't read, answers of generators that
    couldn't be used, texts that the filters dropped, each with what was measured and the limit that
    it missed; three of each reason, or with --reason all that were kept to look at.

    \b
    Examples:
      jupiterctl data samples
      jupiterctl data samples --round 2 --phase filter
      jupiterctl data samples --round 1 --phase generate --whole
      jupiterctl data samples --dropped --reason few-letters
      jupiterctl data samples -o json | jq '.review.dropped'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.output.review_lines import review_lines

    if reason is not None and not dropped:
        raise UsageError("--reason goes with --dropped", "jupiterctl data samples --help")
    if dropped:
        drops = ask_over_grpc(invocation.state_dir, drop_noun(cycle, number), READING_S)
        _show_dropped(invocation, drops, reason, phase, is_whole=whole)
        return
    if (number is None) != (phase is None):
        raise UsageError("--round and --phase go together", "jupiterctl data samples --help")
    noun = f"review/{cycle or ''}" + (f"/{number}/{phase}" if phase else "")
    document = ask_over_grpc(invocation.state_dir, noun, READING_S)
    Console.of(invocation).show(
        document, lambda: review_lines(document["review"], is_whole=whole), is_quoted=True
    )


def drop_noun(cycle: str | None, number: int | None) -> str:
    """Return the document's noun: `drops/CYCLE/ROUND`; both may be missing."""
    return f"drops/{cycle or ''}" + (f"/{number}" if number is not None else "")


def _show_dropped(
    invocation: Invocation,
    document: Mapping[str, Any],
    reason: str | None,
    phase: str | None,
    *,
    is_whole: bool,
) -> None:
    from jupiterd.ctl.data.dropped_samples import drop_lines, with_samples

    found = with_samples(document["drops"], reason, phase)
    Console.of(invocation).show(
        {**document, "drops": found},
        lambda: drop_lines(found, is_of_one_reason=reason is not None, is_whole=is_whole),
        is_quoted=True,
    )
