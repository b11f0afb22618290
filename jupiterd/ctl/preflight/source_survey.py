"""A look of some seconds at a domain's sources, from this machine, by a process of its own.

Owns that process and its time. The readers and rules that it loads are a cycle's own, and none of
them is loaded here. Doesn't know what is made of the answer.
"""

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from typing import Any

from jupiterd.cycle.data.survey import SourceSurvey, Survey
from jupiterd.cycle.domain import Domain

WITHIN_S = 10.0
"""What a look may take, all together."""
RESERVE_S = 2.0
"""Of it, for starting the process and for adding up."""
GIVEN_UP_AFTER_S = 20.0
"""A process that says nothing by then, on however busy a machine, is ended."""

PROGRAM = ("-P", "-m", "jupiterd.workers.data.survey")
"""-P: a module's name of this folder isn't taken for ours."""

NOT_COUNTED = "not counted"
"""How it is told that a source is there, and nothing is known of it."""
TOOK_TOO_LONG = f"{NOT_COUNTED}: looking at it took too long"
FAILED = f"{NOT_COUNTED}: the look at it failed"


def survey_of(domain: Domain, *, goes_far: bool = False, tells_language: bool = False) -> Survey:
    """Return what the domain's sources seem to hold.

    Args:
        domain: whose sources and rules count.
        goes_far: sources on other machines are asked, too.
        tells_language: the text decides the language, whatever the domain says.
    """
    request = {
        "sources": [source.model_dump(mode="json") for source in domain.data_sources],
        "rules": {
            "language": "" if tells_language else domain.language,
            "license_policy": domain.license_policy.model_dump(mode="json"),
            "rules_off": sorted(map(str, domain.filters.off)),
            "min_document_bytes": domain.evaluation.min_document_bytes,
            "max_cluster_documents": domain.evaluation.max_cluster_documents,
        },
        "within_s": WITHIN_S - RESERVE_S,
        "goes_far": goes_far,
    }
    with tempfile.TemporaryDirectory(prefix="jupiter-look-", ignore_cleanup_errors=True) as scratch:
        answer = _answer(request, scratch)
    if isinstance(answer, str):
        return Survey(tuple(_not_counted(domain, answer)))
    return Survey.from_plain(answer)


def _answer(request: dict[str, Any], scratch: str) -> dict[str, Any] | str:
    """Return what the process says, or why it has nothing to say.

    scratch: where its own temporary files lie; it can't remove them where it is ended
    """
    try:
        done = subprocess.run(
            [sys.executable, *PROGRAM],
            input=json.dumps(request),
            capture_output=True,
            text=True,
            timeout=GIVEN_UP_AFTER_S,
            check=False,
            env={**os.environ, "TMPDIR": scratch},
        )
    except subprocess.TimeoutExpired:
        return TOOK_TOO_LONG
    return json.loads(done.stdout) if done.returncode == 0 else FAILED


def _not_counted(domain: Domain, why_not: str) -> Sequence[SourceSurvey]:
    return [
        SourceSurvey(source.name, source.kind, why_not=why_not) for source in domain.data_sources
    ]
