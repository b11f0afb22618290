"""What the running daemon itself complains of, each with its fix.

Owns turning its health entries into findings. Pure. Doesn't know why it says so.
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
    """Return that it runs, and a finding for each thing that it complains of.

    no_answer: returns why it doesn't answer, where it doesn't
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
