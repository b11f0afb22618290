"""`jupiterctl cluster branches|switch`: the branches of the cycles' checkpoints.

Owns their table and their names. Doesn't know which one is canonical: the daemon decides.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import click

from jupiterd.cluster.values.branch_names import branch_name, find_branch
from jupiterd.ctl.commands import GlobalOptionsCommand
from jupiterd.ctl.invocation import Invocation, dry_run
from jupiterd.ctl.output.console import Console
from jupiterd.errors import NotFoundError, UsageError
from jupiterd.formats import plain, table
from jupiterd.ids import CycleId, short

HEADERS = ("BRANCH", "DOMAIN", "ROUNDS", "STEP", "TOKENS", "STATUS", "CHECKPOINT", "WRITTEN BY")
EMPTY = "no cycle has recorded a checkpoint yet, so there are no branches"

Row = Mapping[str, Any]


@click.command(cls=GlobalOptionsCommand)
@click.pass_obj
def branches(invocation: Invocation) -> None:
    """List every branch of checkpoints and rounds, and say which one is canonical.

    Branches part when machines train apart. A merge deletes none: a cycle goes on with the heaviest
    one, which has the most rounds, unless people switch to another.

    \b
    Examples:
      jupiterctl cluster branches
      jupiterctl cluster branches -o json | jq -r '.branches[] | select(.canonical).name'
    """  # noqa: D301 - click's mark for lines that keep their ends
    from jupiterd.ctl.calls import ask

    document = ask(invocation.state_dir, "branches")
    Console.of(invocation).show_list(document, "branches", lambda: branch_lines(document))


@click.command(cls=GlobalOptionsCommand)
@click.argument("branch", required=False)
@click.option(
    "--auto", metavar="CYCLE", help="Let this cycle go on with its heaviest branch again."
)
@dry_run
@click.pass_obj
def switch(invocation: Invocation, branch: str | None, auto: str | None) -> None:
    """Let a cycle go on with BRANCH; the others stay as they are.

    BRANCH is a name that `jupiterctl cluster branches` shows, or its beginning. The cycle mustn't
    be running, and isn't started by this: `jupiterctl cycle resume` goes on with it.

    \b
    Examples:
      jupiterctl cluster switch 3f2a91bc-8c5f35a3
      jupiterctl cluster switch --auto 3f2a91bc --yes
    """  # noqa: D301 - click's mark for lines that keep their ends
    if (branch is None) == (auto is None):
        raise UsageError(
            "name a branch, or a cycle with --auto", "jupiterctl cluster branches shows both"
        )
    from jupiterd.ctl.calls import ask
    from jupiterd.ctl.orders import order
    from jupiterd.protocol.commands.cycle_commands import SwitchBranch

    document = ask(invocation.state_dir, "branches")
    target = _pinned_cycle(document, auto) if auto is not None else _branch(document, str(branch))
    console = Console.of(invocation)
    console.confirm(_question(document, *target), invocation)
    done = order(invocation.state_dir, SwitchBranch(cycle=target[0], leaf=target[1]))
    console.show(done, lambda: [_switched(done)])


def branch_lines(document: Mapping[str, Any]) -> Sequence[str]:
    """Return the table of branches, then a line for each pinned branch that this node lacks."""
    rows = document["branches"]
    lines = table(HEADERS, [_cells(row) for row in rows]) if rows else [EMPTY]
    waiting = [pin for pin in document["pins"] if not pin["known"]]
    return lines + [
        f"{pin['branch']} is pinned and isn't known on this node yet: the heaviest one is canonical"
        for pin in waiting
    ]


def _cells(row: Row) -> tuple[object, ...]:
    written = row["written_by"]
    return (
        row["name"],
        row["domain"],
        row["rounds"],
        f"{row['round']}/{row['step']}",
        f"{row['tokens']:,}",
        _standing(row),
        "here" if row["held_here"] else "not here",
        f"{written['name'] or short(written['node'])}, term {row['term']}",
    )


def _standing(row: Row) -> str:
    marks = {"canonical": "canonical", "pinned": "pinned", "parked": "suspended"}
    return ", ".join(words for key, words in marks.items() if row[key]) or "-"


def _branch(document: Mapping[str, Any], wanted: str) -> tuple[CycleId, str]:
    known = [(CycleId(row["cycle"]), str(row["leaf"])) for row in document["branches"]]
    return find_branch(known, wanted)


def _pinned_cycle(document: Mapping[str, Any], wanted: str) -> tuple[CycleId, str]:
    """Return the only cycle with a pinned branch whose id begins so, and an empty leaf."""
    pinned = [str(pin["cycle"]) for pin in document["pins"]]
    found = [cycle for cycle in pinned if wanted and cycle.startswith(wanted)]
    if len(found) != 1:
        shown = ", ".join(short(cycle) for cycle in pinned) or "none"
        raise NotFoundError(
            f"no one cycle with a pinned branch begins with {wanted}", f"pinned: {shown}"
        )
    return CycleId(found[0]), ""


def _question(document: Mapping[str, Any], cycle: CycleId, leaf: str) -> str:
    if not leaf:
        return f"Let cycle {short(cycle)} go on with its heaviest branch again?"
    row = next(row for row in document["branches"] if (row["cycle"], row["leaf"]) == (cycle, leaf))
    return (
        f"Let cycle {short(cycle)} ({plain(row['domain'])}) go on with branch "
        f"{branch_name(cycle, leaf)}, which has {_counted(row['rounds'], 'round')} and "
        f"{row['tokens']:,} tokens?"
    )


def _switched(done: Mapping[str, Any]) -> str:
    how = "is pinned to branch" if done["pinned"] else "goes on with its heaviest branch again:"
    return (
        f"cycle {short(done['cycle'])} {how} {done['branch']}, "
        f"with {_counted(done['rounds'], 'round')}"
    )


def _counted(number: int, noun: str) -> str:
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"
