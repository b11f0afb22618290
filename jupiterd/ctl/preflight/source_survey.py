"""A short survey of a domain's sources from this machine, in a separate process.

Owns that process and its time limit. The process loads a cycle's readers and rules; this module
loads none of them. Doesn't know how the answer is used.
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
"""Seconds for a whole survey."""
RESERVE_S = 2.0
"""Seconds of WITHIN_S that are reserved for starting the process and for summing up."""
SILENCE_TIMEOUT_S = 40.0
"""Seconds after which the process is killed, long enough for a busy machine."""

REPORT_EVERY_S = 0.2
"""Seconds between two reports of the progress."""

_END_BYTES = 200

OnLine = Callable[[str], None]
"""Gets the last line that the process has written to standard error; empty: none yet."""


def silent(_line: str) -> None:
    """Ignore the line."""


PROGRAM = ("-P", "-m", "jupiterd.workers.data.survey.survey_sources")
"""-P keeps modules in the current folder from replacing ours."""

NOT_COUNTED = "not counted"
"""Shown for a source that exists but wasn't counted."""
TOOK_TOO_LONG = f"{NOT_COUNTED}: looking at it took too long"
FAILED = f"{NOT_COUNTED}: the look at it failed"


def survey_of(
    domain: Domain,
    on_line: OnLine = silent,
    *,
    goes_far: bool = False,
    finds_language: bool = False,
) -> Survey:
    """Return the survey of a domain's sources; without an answer, sources say why not.

    Args:
        domain: the domain with its sources and rules.
        on_line: gets the progress, a few times a second.
        goes_far: whether sources on other machines are requested, too.
        finds_language: whether the language is detected instead of taken from the domain.
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
    """Return the answer of a process that reads text, or a text that says why there is none.

    Args:
        program: Python's arguments.
        request: the input of the process, sent as JSON.
        scratch: a folder for temporary files; the caller removes it, as the process may be killed.
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
        finally:  # also after Ctrl-C
            if looking.poll() is None:
                looking.kill()
                looking.wait()
    if looking.returncode:
        return FAILED
    return json.loads(answer.read_text(encoding="utf-8"))


def _last_line(path: Path) -> str:
    """Return the last complete line of a file, such as `120 480 read`; empty: none."""
    with path.open("rb") as file:
        file.seek(max(0, path.stat().st_size - _END_BYTES))
        *lines, _ = file.read().decode("utf-8", "replace").split("\n")
    return lines[-1] if lines else ""


def _not_counted(domain: Domain, why_not: str) -> Sequence[SourceSurvey]:
    return [
        SourceSurvey(source.name, source.kind, why_not=why_not) for source in domain.data_sources
    ]
