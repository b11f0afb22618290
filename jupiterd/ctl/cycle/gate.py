"""`jupiterctl gate ...`: computes verdicts on models again from their files."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import click

from jupiterd.ctl.commands import Group
from jupiterd.ctl.invocation import Invocation
from jupiterd.ctl.output.console import Console
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import UnhealthyError, UsageError
from jupiterd.formats import plain

FETCHING_S = 600.0
"""Seconds to wait for scores from other nodes."""


@click.group(cls=Group)
def command() -> None:
    """Verdicts on models: whether a candidate may replace the generator."""


@command.command()
@click.option("--candidate", metavar="MODEL|ROUND", help="Who was judged; the last one.")
@click.option("--incumbent", metavar="MODEL|ROUND", help="Whom it was compared with.")
@click.option(
    "--from",
    "folder",
    metavar="FOLDER",
    type=click.Path(path_type=Path),
    help="Decide on the files of this folder, without a daemon.",
)
@click.pass_obj
def run(
    invocation: Invocation, candidate: str | None, incumbent: str | None, folder: Path | None
) -> None:
    """Compute a verdict again from the scores, and say whether it is the one that was recorded.

    MODEL is a model's id or its beginning, ROUND the number of a round of the newest cycle. Nothing
    is scored again and nothing changes: it is the same arithmetic on the same files, which must
    come to the same verdict.json, to the last byte. Exits with 8 where it doesn't.

    \b
    Examples:
      jupiterctl gate run
      jupiterctl gate run --candidate 3 --incumbent 1
      jupiterctl gate run --from ./verdict -o json
    """  # noqa: D301 - click's mark for lines that keep their ends
    if folder is not None and (candidate or incumbent):
        raise UsageError(
            "--from names the verdict; --candidate and --incumbent don't go with it",
            "jupiterctl gate run --help",
        )
    from jupiterd.ctl.cycle.verdict_folder import decide_again

    if folder is not None:
        place, material = folder, [folder]
    else:
        place, material = _folders_of(invocation, candidate or "", incumbent or "")
    done = decide_again(place, material)
    document = _document(done.again, done.recorded, is_same=done.is_same)
    Console.of(invocation).show({"schema": SCHEMA, "gate": document}, lambda: _lines(document))
    if not done.is_same:
        raise UnhealthyError(
            f"the verdict computed again is another than the recorded one: "
            f"{document['verdict']} instead of {document['recorded']}",
            f"compare -o json with {place / 'verdict.json'}: files or program have changed since",
        )


def _folders_of(invocation: Invocation, candidate: str, incumbent: str) -> tuple[Path, list[Path]]:
    """Return the folder of a verdict and the folders of its scores, as the daemon names them."""
    from jupiterd.ctl.calls import ask_over_grpc

    wanted = f"{candidate}:{incumbent}" if incumbent else candidate
    noun = f"verdict/{wanted}" if wanted else "verdict"
    found = ask_over_grpc(invocation.state_dir, noun, FETCHING_S)["verdict"]
    return Path(found["folder"]), [Path(each) for each in found["material"]]


def _document(
    again: Mapping[str, Any], recorded: Mapping[str, Any], *, is_same: bool
) -> dict[str, Any]:
    given, verdict = again["given"], again["verdict"]
    return {
        "round": given.get("round"),
        "candidate": given.get("candidate"),
        "incumbent": given.get("incumbent"),
        "generator": given.get("generator"),
        "verdict": verdict["decision"],
        "recorded": recorded["verdict"]["decision"],
        "is_same": is_same,
        "reason": verdict["reason"],
        "numbers": verdict,
    }


def _lines(document: Mapping[str, Any]) -> list[str]:
    from jupiterd.cycle.rounds.explanation import question_lines
    from jupiterd.ids import short

    same = "the same as recorded, to the last byte"
    other = f"NOT the same as recorded, which was {plain(document['recorded'])}"
    said = f"round {plain(document['round'])}: {plain(document['verdict'])}"
    return [
        f"{said}, {same if document['is_same'] else other}",
        f"candidate: {short(str(document['candidate'] or ''))}",
        f"incumbent: {_named(document['incumbent'], document['numbers'])}",
        f"generator: {_named(document['generator'], document['numbers'])}",
        *map(plain, question_lines(document["numbers"], document)),
    ]


def _named(model: object, numbers: Mapping[str, Any]) -> str:
    from jupiterd.cycle.gate.baseline import Baseline
    from jupiterd.ids import short

    baseline = numbers.get("baseline") or Baseline.BYTES
    return short(str(model)) if model else f"none yet, so the {plain(baseline)}"
