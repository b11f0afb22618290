"""`jupiterd doctor`: the examination in a process of its own, whether a daemon runs or not.

Owns asking a daemon that runs for its status, and printing. Doesn't know any check.
"""

import json
import sys

from jupiterd.client.question import answer_to
from jupiterd.cluster.text.finding_lines import finding_lines
from jupiterd.daemon.runtime.address_text import parse_address
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.doctor.examination import examine
from jupiterd.doctor.examined_machine import Row, machine_of
from jupiterd.doctor.finding import doctor_document
from jupiterd.errors import ExitCode, JupiterError

JSON_FORMS = {"json": 2, "jsonl": None}
"""Form of output -> how far JSON is indented."""


def look(settings: Settings, output: str) -> ExitCode:
    """Examine this machine and print what was found; return the exit status."""
    status = _status(settings)
    document = doctor_document(examine(machine_of(settings, status, _port(settings, status))))
    text = (
        json.dumps(document, ensure_ascii=False, indent=JSON_FORMS[output])
        if output in JSON_FORMS
        else "\n".join(finding_lines(document))
    )
    sys.stdout.write(f"{text}\n")
    return ExitCode.OK if document["healthy"] else ExitCode.UNHEALTHY


def _status(settings: Settings) -> Row | None:
    try:
        return answer_to("status", settings.state_dir)
    except JupiterError:
        return None  # the first check says that none answers


def _port(settings: Settings, status: Row | None) -> int:
    """Return where the daemon that runs listens, or one would."""
    if status is None:
        return settings.port
    own = next((row for row in status["nodes"] if row["id"] == status["node"]["id"]), {})
    address = next(iter(own.get("addresses") or ()), None)
    return parse_address(address).port if address else settings.port
