"""What a check of the doctor has found.

Owns the four verdicts and their form in documents. Pure. Doesn't know any check.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jupiterd.document_schema import SCHEMA


class Status(StrEnum):
    """How a check came out."""

    OK = "ok"
    WARN = "warn"
    """It works, with less than there could be; or it is unknown."""
    FAIL = "fail"
    """Something that Jupiter needs doesn't work."""
    NOT_HERE = "not here"
    """This machine has nothing of the kind."""


@dataclass(frozen=True)
class Finding:
    """One line for the user, and what to do about it."""

    check: str
    """Name of the check, such as `multicast`."""
    status: Status
    why: str
    """What was seen, and what it means."""
    fix: str = ""
    """A command to run or a thing to do; empty where nothing needs doing."""

    def to_plain(self) -> dict[str, str]:
        """Return it for documents."""
        return {
            "check": self.check,
            "status": str(self.status),
            "why": self.why,
            "fix": self.fix,
        }


def ok(check: str, why: str) -> Finding:
    """Return that all is well."""
    return Finding(check, Status.OK, why)


def warn(check: str, why: str, fix: str) -> Finding:
    """Return that something could be better."""
    return Finding(check, Status.WARN, why, fix)


def fail(check: str, why: str, fix: str) -> Finding:
    """Return that something doesn't work."""
    return Finding(check, Status.FAIL, why, fix)


def not_here(check: str, why: str) -> Finding:
    """Return that there is nothing to look at."""
    return Finding(check, Status.NOT_HERE, why)


def doctor_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return all findings, and how many there are of each kind."""
    statuses = [finding.status for finding in findings]
    return {
        "schema": SCHEMA,
        "healthy": Status.FAIL not in statuses,
        "counts": {str(status): statuses.count(status) for status in Status},
        "findings": [finding.to_plain() for finding in findings],
    }
