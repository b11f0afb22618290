"""What a drawing is made from: the view, the moment, and how the user wants to see it.

Owns the options of the dashboard. Doesn't know where they come from.
"""

from dataclasses import dataclass
from pathlib import Path

from jupiter_tui.model.clock import Moment
from jupiter_tui.model.view import ViewModel


@dataclass(frozen=True)
class Options:
    """What the command line says."""

    state_dir: Path
    """Of the daemon to watch."""
    named_dir: Path | None = None
    """The same, where the command line names it: commands that are shown name it, too."""
    is_readonly: bool = False
    is_ascii: bool = False
    refresh_hz: float = 2.0
    """How often the screen is brought up to date."""
    record: Path | None = None
    """The file to which received messages are written; None: none."""
    replay: Path | None = None
    """The recording to show in place of a daemon; None: watch the daemon."""
    speed: float = 1.0
    """How many times faster than recorded it is played."""


@dataclass(frozen=True)
class Scene:
    """One picture to be drawn."""

    view: ViewModel
    moment: Moment
    options: Options
    is_paused: bool = False

    @property
    def is_faded(self) -> bool:
        """Say whether the data may be out of date, since the link isn't live."""
        return self.view.is_old
