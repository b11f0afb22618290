"""`--log-dir`: a symbolic link to the folder with this machine's curves of a run.

Owns the link. Doesn't know what is in the folder: the daemon's workers write there, and only below
the state folder, because they accept no paths from outside.
"""

from pathlib import Path

from jupiterd.errors import Bug, ConflictError, UsageError
from jupiterd.ids import is_hex, short
from jupiterd.locations import CURVES


class CurvesLink:
    """A link to the curves of a run, which may not have started yet."""

    def __init__(self, wanted: str, state_dir: Path) -> None:
        """Check that the link can be made.

        Raises:
            ConflictError: something else is at its path.
            UsageError: its parent folder can't be used.
        """
        self._link = Path(wanted).expanduser().absolute()
        self._curves = state_dir / CURVES
        if self._is_there() and self._leads_to().parent != self._curves:
            raise self._conflict()
        try:
            self._link.parent.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise self._impossible(error) from error

    def lead_to(self, run: str) -> str:
        """Make the link to the curves of a run, and their folder if it doesn't exist.

        Each island that trains here has a folder in it: island-1, and so on.

        Returns:
            A line for people.

        Raises:
            ConflictError: the link leads to another run's curves.
            UsageError: the link can't be made.
        """
        if not is_hex(run):
            raise Bug(f"the daemon names a run that can't be one: {run!r}")
        target = self._curves / short(run)
        try:
            target.mkdir(mode=0o700, parents=True, exist_ok=True)
            if not self._is_there():
                self._link.symlink_to(target, target_is_directory=True)
        except OSError as error:
            raise self._impossible(error) from error
        if self._leads_to() != target:
            raise self._conflict()
        return f"curves: {self._link}"

    def _is_there(self) -> bool:
        return self._link.is_symlink() or self._link.exists()

    def _leads_to(self) -> Path:
        return self._link.readlink() if self._link.is_symlink() else self._link

    def _conflict(self) -> ConflictError:
        return ConflictError(
            f"--log-dir: there is something else at {self._link}",
            f"name a path where nothing is; curves of every run are in {self._curves}",
        )

    def _impossible(self, error: OSError) -> UsageError:
        return UsageError(
            f"--log-dir: can't make {self._link}: {error.strerror}",
            f"name another path; curves of every run are in {self._curves}",
        )
