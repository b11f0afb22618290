"""The health entries of the running daemon, as findings.

Pure. Owns the conversion. Doesn't know the causes.
"""

from collections.abc import Callable
from typing import Final

from jupiterd.cluster.text.health_words import age
from jupiterd.cluster.values.severity import Severity
from jupiterd.doctor.examined_machine import ExaminedMachine
from jupiterd.doctor.finding import Finding, Status, ok, warn
from jupiterd.errors import JupiterError

CHECK: Final = "daemon"

_STATUSES: Final = {
    Severity.ERROR: Status.FAIL,
    Severity.WARNING: Status.WARN,
    Severity.INFO: Status.OK,
}


def judge(machine: ExaminedMachine, no_answer: Callable[[], JupiterError]) -> list[Finding]:
    """Return a finding that the daemon runs, and one for each of its health entries.

    no_answer: returns the error for a daemon that doesn't answer
    """
    if machine.status is None:
        error = no_answer()
        return [warn(CHECK, error.message, error.hint)]
    warnings = [
        Finding(
            f"health/{entry['code']}",
            _STATUSES.get(entry.get("severity", ""), Status.WARN),
            str(entry.get("title", "")) + (f" ({held})" if (held := age(entry)) else ""),
            str(entry.get("hint", "")),
        )
        for entry in machine.status.get("health", [])
    ]
    return [ok(CHECK, f"jupiterd runs with {machine.state_dir}"), *warnings]
