"""What every error that a user can meet has: one line, a hint, a code and statuses.

Owns that form. Doesn't know any error by name (`errors`).
"""

from typing import ClassVar

from jupiterd.exit_codes import ExitCode


class JupiterError(Exception):
    """One line for the user and a hint of what to do; subclasses give the code and statuses."""

    code: ClassVar[str] = "failed"
    exit_code: ClassVar[ExitCode] = ExitCode.FAILED
    grpc_status: ClassVar[str] = "UNKNOWN"
    default_hint: ClassVar[str] = "run the command again with --debug and read the daemon's log"
    may_mend: ClassVar[bool] = False
    """Waiting can help: a machine, a disk or a leader may come back."""
    is_permanent: ClassVar[bool] = False
    """Trying again can't help: the input or the installation is at fault."""
    is_of_one_machine: ClassVar[bool] = False
    """People must know on which machine it happened."""

    def __init__(self, message: str, hint: str = "") -> None:
        super().__init__(message)
        self.message = message
        self.hint = hint or self.default_hint
