"""`jupiterctl data samples`: what a phase has kept and dropped.

Owns the command. Doesn't know how samples are found, or worded.
"""

import click

from jupiterd.ctl.commands import Command
from jupiterd.ctl.console import Console
from jupiterd.ctl.invocation import Invocation
from jupiterd.errors import UsageError

PHASES = ("collect", "generate", "filter")
"""Those that let text through, or drop it; as words, for their class takes long to import."""

READING_S = 60.0


@click.command(cls=Command)
@click.argument("cycle", metavar="[CYCLE]", required=False)
@click.option("--round", "number", type=click.IntRange(1), help="Which round; with --phase.")
@click.option("--phase", type=click.Choice(PHASES), help="Which phase.")
@click.pass_obj
def samples(
    invocation: Invocation, cycle: str | None, number: int | None, phase: str | None
) -> None:
    """Show samples that a phase has kept and dropped, with the reasons.

    CYCLE is a cycle's id; without it the newest is meant. Without --round and --phase a few samples
    of the phase that ended last are shown, with them up to forty of each kind. `jupiterctl data
    why` tells where one comes from.

    \b
    Examples:
      jupiterctl data samples
      jupiterctl data samples --round 2 --phase filter
      jupiterctl data samples -o json | jq '.review.dropped'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask_over_grpc
    from jupiterd.ctl.review_lines import review_lines

    if (number is None) != (phase is None):
        raise UsageError("--round and --phase go together", "jupiterctl data samples --help")
    noun = f"review/{cycle or ''}" + (f"/{number}/{phase}" if phase else "")
    document = ask_over_grpc(invocation.state_dir, noun, READING_S)
    Console.of(invocation).show(document, lambda: review_lines(document["review"]))
