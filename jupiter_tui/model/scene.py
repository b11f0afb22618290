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
    """Where to write down what is heard."""
    replay: Path | None = None
    """What to show in place of a daemon."""
    speed: float = 1.0
    """How fast that is played."""


@dataclass(frozen=True)
class Scene:
    """One picture to be drawn."""

    view: ViewModel
    moment: Moment
    options: Options
    is_paused: bool = False

    @property
    def is_faded(self) -> bool:
        """Say whether what is shown is only the last that was heard."""
        return self.view.is_old
