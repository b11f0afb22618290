"""The result of one check of the doctor.

Pure. Owns the four statuses and the form of findings in documents. Doesn't know any check.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from jupiterd.document_schema import SCHEMA


class Status(StrEnum):
    """The result of a check."""

    OK = "ok"
    WARN = "warn"
    """It works, but could work better; or its state is unknown."""
    FAIL = "fail"
    """Something that Jupiter needs doesn't work."""
    NOT_HERE = "not here"
    """The check doesn't apply to this machine."""


@dataclass(frozen=True)
class Finding:
    """One line for the user, with what to do."""

    check: str
    """Name of the check, such as `multicast`."""
    status: Status
    why: str
    """The observation, and what it means."""
    fix: str = ""
    """A command to run or another thing to do; empty: nothing."""

    def to_plain(self) -> dict[str, str]:
        """Return the fields for documents."""
        return {
            "check": self.check,
            "status": str(self.status),
            "why": self.why,
            "fix": self.fix,
        }


def ok(check: str, why: str) -> Finding:
    """Return a finding that all is well."""
    return Finding(check, Status.OK, why)


def warn(check: str, why: str, fix: str) -> Finding:
    """Return a finding that something could be better."""
    return Finding(check, Status.WARN, why, fix)


def fail(check: str, why: str, fix: str) -> Finding:
    """Return a finding that something doesn't work."""
    return Finding(check, Status.FAIL, why, fix)


def not_here(check: str, why: str) -> Finding:
    """Return a finding that the check doesn't apply."""
    return Finding(check, Status.NOT_HERE, why)


def doctor_document(findings: Sequence[Finding]) -> dict[str, Any]:
    """Return the document of all findings, with the number of each status."""
    statuses = [finding.status for finding in findings]
    return {
        "schema": SCHEMA,
        "healthy": Status.FAIL not in statuses,
        "counts": {str(status): statuses.count(status) for status in Status},
        "findings": [finding.to_plain() for finding in findings],
    }
