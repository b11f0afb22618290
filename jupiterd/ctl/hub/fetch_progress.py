"""How far a fetch from the hub is, told at the terminal, and to the daemon for everybody else.

Owns when it is said, and the words. Doesn't know how anything is fetched.
"""

import time
from collections.abc import Callable, Generator
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Final

from jupiterd.ctl.calls import ordered
from jupiterd.ctl.hub.listing import HubFile
from jupiterd.ctl.hub.model import HubModel
from jupiterd.ctl.output.console import Console
from jupiterd.errors import JupiterError
from jupiterd.formats import duration, plain, size
from jupiterd.protocol.commands.check_commands import NoteFetch

SHOWN_EACH_S: Final = 0.5
TOLD_EACH_S: Final = 2.0
SAID_EACH_S: Final = 60.0
"""Where a line that passes can't be seen."""

TELL_TIMEOUT_S: Final = 2.0
"""A daemon that is asleep doesn't keep bytes from coming."""

SILENT_S: Final = 30.0
"""So long a daemon that doesn't answer is told nothing."""

BROUGHT, CUT_OFF = "brought", "cut-off"
"""How a fetch ends."""

Now = Callable[[], float]


@dataclass
class FetchProgress:
    """Takes what is here by now of one model after the other."""

    console: Console
    state_dir: Path
    now: Now = time.monotonic
    _next_s: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def of(self, fetched: HubModel) -> Generator["ModelProgress"]:
        """Yield what hears of a model's files, until all of them are here, or it is cut off."""
        model = ModelProgress.of_model(self, fetched)
        name, left = plain(model.name), size(fetched.missing_bytes)
        self.console.notice(f"fetching {left} of {name} from the hub")
        ended = CUT_OFF
        try:
            yield model
            ended = BROUGHT
        finally:
            self.console.settle()
            self.tell(model, ended)
        took = duration(self.now() - model.began_s)
        self.console.notice(f"{name} is here: {size(model.total)}, fetched in {took}")

    def show(self, model: "ModelProgress") -> None:
        """Show how far a model is, and tell the daemon, as often as each of them wants it."""
        if self._is_time("shown", SHOWN_EACH_S):
            self.console.passing_notice(model.line())
        if self._is_time("said", SAID_EACH_S) and not self.console.can_pass:
            self.console.notice(model.line())
        if self._is_time("told", TOLD_EACH_S):
            self.tell(model)

    def _is_time(self, what: str, each_s: float) -> bool:
        now_s = self.now()
        if now_s < self._next_s.setdefault(what, now_s + (each_s if what == "said" else 0)):
            return False
        self._next_s[what] = now_s + each_s
        return True

    def tell(self, model: "ModelProgress", ended: str = "") -> None:
        """Tell the daemon, whose status and events show it; one that is away misses nothing."""
        try:
            ordered(self.state_dir, model.to_command(ended), TELL_TIMEOUT_S)
        except JupiterError:
            self._next_s["told"] = self.now() + SILENT_S


@dataclass
class ModelProgress:
    """How far one model is."""

    progress: FetchProgress
    name: str
    total: int
    """Bytes of all its files."""
    before: int
    """Bytes that were here when it began."""
    began_s: float
    _here: dict[str, int]
    """File -> bytes that are here of it."""

    @classmethod
    def of_model(cls, progress: FetchProgress, model: HubModel) -> "ModelProgress":
        """Begin with what is here already."""
        missing = {file.name for file in model.missing}
        here = {file.name: file.size for file in model.wanted if file.name not in missing}
        total = sum(file.size for file in model.wanted)
        before = total - model.missing_bytes
        return cls(progress, str(model.listing.name), total, before, progress.now(), here)

    def of(self, file: HubFile) -> Callable[[int], None]:
        """Return what hears how many bytes of a file are here."""
        return partial(self._heard, file)

    def _heard(self, file: HubFile, count: int) -> None:
        self._here[file.name] = count
        self.progress.show(self)

    @property
    def done(self) -> int:
        """Return how many bytes are here, of those files that were begun or are done."""
        return min(sum(self._here.values()), self.total)

    @property
    def bytes_per_s(self) -> float:
        """Return how fast it has come since it began."""
        passed_s = self.progress.now() - self.began_s
        return max(0, self.done - self.before) / passed_s if passed_s > 0 else 0.0

    def line(self) -> str:
        """Return how far it is, as people read it."""
        told = f"fetching {plain(self.name)}: {size(self.done)} of {size(self.total)}"
        if (speed := self.bytes_per_s) <= 0:
            return told
        return f"{told}, {size(speed)}/s, {duration((self.total - self.done) / speed)} left"

    def to_command(self, ended: str) -> NoteFetch:
        """Return what the daemon is told."""
        speed = round(self.bytes_per_s)
        return NoteFetch(
            name=self.name, done=self.done, total=self.total, bytes_per_s=speed, ended=ended
        )
