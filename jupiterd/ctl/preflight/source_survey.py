"""A look of some seconds at a domain's sources, from this machine, by a process of its own.

Owns that process and its time. The readers and rules that it loads are a cycle's own, and none of
them is loaded here. Doesn't know what is made of the answer.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict
from pathlib import Path
from typing import Any

from jupiterd.cycle.domain.domain import Domain
from jupiterd.cycle.domain.survey import SourceSurvey, Survey

WITHIN_S = 10.0
"""What a look may take, all together."""
RESERVE_S = 2.0
"""Of it, for starting the process and for adding up."""
SILENCE_TIMEOUT_S = 40.0
"""A process that says nothing by then, on however busy a machine, is ended."""

REPORT_EVERY_S = 0.2
"""Seconds between two reports of the progress."""

_END_BYTES = 200

OnLine = Callable[[str], None]
"""Called with the last line that the process has written to standard error; empty: none yet."""


def silent(_line: str) -> None:
    """Ignore the line."""


PROGRAM = ("-P", "-m", "jupiterd.workers.data.survey.survey_sources")
"""-P: a module's name of this folder isn't taken for ours."""

NOT_COUNTED = "not counted"
"""Shown for a source that is there and of which nothing is known."""
TOOK_TOO_LONG = f"{NOT_COUNTED}: looking at it took too long"
FAILED = f"{NOT_COUNTED}: the look at it failed"


def survey_of(
    domain: Domain,
    on_line: OnLine = silent,
    *,
    goes_far: bool = False,
    finds_language: bool = False,
) -> Survey:
    """Return what the domain's sources seem to hold.

    Args:
        domain: whose sources and rules count.
        on_line: gets the progress, a few times a second.
        goes_far: sources on other machines are requested, too.
        finds_language: the text decides the language, whatever the domain says.
    """
    request = {
        "sources": [source.model_dump(mode="json") for source in domain.data_sources],
        "rules": {
            "language": "" if finds_language else domain.language,
            "license_policy": domain.license_policy.model_dump(mode="json"),
            "rules_off": sorted(map(str, domain.filters.off)),
            "holdout": asdict(domain.holdout_rules()),
        },
        "within_s": WITHIN_S - RESERVE_S,
        "goes_far": goes_far,
    }
    with tempfile.TemporaryDirectory(prefix="jupiter-look-", ignore_cleanup_errors=True) as scratch:
        answer = answer_of(PROGRAM, request, Path(scratch), on_line)
    if isinstance(answer, str):
        return Survey(tuple(_not_counted(domain, answer)))
    return Survey.from_plain(answer)


def answer_of(
    program: Sequence[str], request: dict[str, Any], scratch: Path, on_line: OnLine = silent
) -> dict[str, Any] | str:
    """Return the answer of a process that looks at text, or why it has none.

    Args:
        program: what Python runs.
        request: its input, as JSON.
        scratch: its folder for temporary files, which it can't remove where it is killed.
        on_line: gets the progress, a few times a second.
    """
    question, answer, messages = (scratch / name for name in ("asked", "answered", "saying"))
    question.write_text(json.dumps(request), encoding="utf-8")
    began_s = time.monotonic()
    with question.open() as stdin, answer.open("w") as stdout, messages.open("w") as stderr:
        looking = subprocess.Popen(
            [sys.executable, *program],
            stdin=stdin,
            stdout=stdout,
            stderr=stderr,
            env={**os.environ, "TMPDIR": str(scratch)},
        )
        try:
            while looking.poll() is None:
                if time.monotonic() - began_s > SILENCE_TIMEOUT_S:
                    return TOOK_TOO_LONG
                on_line(_last_line(messages))
                with suppress(subprocess.TimeoutExpired):
                    looking.wait(REPORT_EVERY_S)
        finally:  # also where somebody has pressed Ctrl-C
            if looking.poll() is None:
                looking.kill()
                looking.wait()
    if looking.returncode:
        return FAILED
    return json.loads(answer.read_text(encoding="utf-8"))


def _last_line(path: Path) -> str:
    """Return the last whole line that was written to a file, such as `120 480 read`; or nothing."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END_BYTES))
        *lines, _ = file.read().decode("utf-8", "replace").split("\n")
    return lines[-1] if lines else ""


def _not_counted(domain: Domain, why_not: str) -> Sequence[SourceSurvey]:
    return [
        SourceSurvey(source.name, source.kind, why_not=why_not) for source in domain.data_sources
    ]
