"""Follows a cycle to its end, and asks the user at a terminal when the cycle waits for an answer.

Owns the order of both. Doesn't know how a cycle is followed (`follow`), or the questions
(`phase_review`).
"""

from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.ctl.output.pause_lines import waits
from jupiterd.document_schema import SCHEMA


def follow_to_the_end(
    invocation: Invocation, cycle_id: str | None, timeout_s: float | None, *, accepts_worse: bool
) -> None:
    """Show a cycle's progress until it ends, or until the user answers `later` to a question.

    Raises:
        JupiterError: the cycle failed or was stopped, or couldn't be followed to its end.
    """
    from jupiterd.ctl.waiting.follow import conclude, follow

    console = Console.of(invocation)
    answered = 0 if console.can_ask else None
    cycle = follow(invocation.state_dir, cycle_id, console, timeout_s, answered=answered)
    while answered is not None and waits(cycle):
        from jupiterd.ctl.cycle.phase_review import ask_people

        if not ask_people(invocation.state_dir, cycle, console):
            console.notice("it waits; jupiterctl cycle watch asks again")
            return
        cycle_id, answered = str(cycle["id"]), int(cycle["paused"]["edit"])
        cycle = follow(invocation.state_dir, cycle_id, console, timeout_s, answered=answered)
    if console.output == "json":
        console.show({"schema": SCHEMA, "cycle": cycle}, list)
    conclude(cycle, console, accepts_worse=accepts_worse)
