"""The progress of a download from the hub, shown at the terminal and reported to the daemon.

Owns the intervals and the texts. Doesn't download anything.
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
REPORT_EACH_S: Final = 2.0
NOTICE_EACH_S: Final = 60.0
"""Seconds between two lines if the output isn't a terminal."""

REPORT_TIMEOUT_S: Final = 2.0
"""Seconds. A daemon that doesn't answer must not delay the download."""

NO_REPORTS_S: Final = 30.0
"""Seconds until the next report after one that failed."""

BROUGHT, CUT_OFF = "brought", "cut-off"
"""The two results of a download: all files are here; it was interrupted."""

Now = Callable[[], float]


@dataclass
class FetchProgress:
    """Shows and reports the progress of models, which are downloaded one after another."""

    console: Console
    state_dir: Path
    now: Now = time.monotonic
    _next_s: dict[str, float] = field(default_factory=dict[str, float])

    @contextmanager
    def of(self, fetched: HubModel) -> Generator["ModelProgress"]:
        """Yield the progress of a model; when the block ends, report whether it succeeded."""
        model = ModelProgress.of_model(self, fetched)
        name, left = plain(model.name), size(fetched.missing_bytes)
        self.console.notice(f"fetching {left} of {name} from the hub")
        ended = CUT_OFF
        try:
            yield model
            ended = BROUGHT
        finally:
            self.console.settle()
            self.report(model, ended)
        took = duration(self.now() - model.began_s)
        self.console.notice(f"{name} is here: {size(model.total)}, fetched in {took}")

    def show(self, model: "ModelProgress") -> None:
        """Show the progress and report it, each at its own interval."""
        if self._is_time("shown", SHOWN_EACH_S):
            self.console.passing_notice(model.line())
        if self._is_time("said", NOTICE_EACH_S) and not self.console.can_pass:
            self.console.notice(model.line())
        if self._is_time("reported", REPORT_EACH_S):
            self.report(model)

    def _is_time(self, what: str, each_s: float) -> bool:
        now_s = self.now()
        if now_s < self._next_s.setdefault(what, now_s + (each_s if what == "said" else 0)):
            return False
        self._next_s[what] = now_s + each_s
        return True

    def report(self, model: "ModelProgress", ended: str = "") -> None:
        """Send the progress to the daemon, whose status and events show it; ignore errors."""
        try:
            ordered(self.state_dir, model.to_command(ended), REPORT_TIMEOUT_S)
        except JupiterError:
            self._next_s["reported"] = self.now() + NO_REPORTS_S


@dataclass
class ModelProgress:
    """The progress of one model."""

    progress: FetchProgress
    name: str
    total: int
    """The size of all its files, in bytes."""
    before: int
    """Bytes that were here at the start."""
    began_s: float
    _here: dict[str, int]
    """File name -> bytes of it that are here."""

    @classmethod
    def of_model(cls, progress: FetchProgress, model: HubModel) -> "ModelProgress":
        """Return the progress at the start, with the files that are here already."""
        missing = {file.name for file in model.missing}
        here = {file.name: file.size for file in model.wanted if file.name not in missing}
        total = sum(file.size for file in model.wanted)
        before = total - model.missing_bytes
        return cls(progress, str(model.listing.name), total, before, progress.now(), here)

    def of(self, file: HubFile) -> Callable[[int], None]:
        """Return a function that takes the number of bytes of a file that are here."""
        return partial(self._note_bytes, file)

    def _note_bytes(self, file: HubFile, count: int) -> None:
        self._here[file.name] = count
        self.progress.show(self)

    @property
    def done(self) -> int:
        """Return how many bytes are here, of complete and of partial files."""
        return min(sum(self._here.values()), self.total)

    @property
    def bytes_per_s(self) -> float:
        """Return the mean speed since the start, in bytes per second; 0 before the first bytes."""
        passed_s = self.progress.now() - self.began_s
        return max(0, self.done - self.before) / passed_s if passed_s > 0 else 0.0

    def line(self) -> str:
        """Return a line for people: bytes done, speed and time left."""
        text = f"fetching {plain(self.name)}: {size(self.done)} of {size(self.total)}"
        if (speed := self.bytes_per_s) <= 0:
            return text
        return f"{text}, {size(speed)}/s, {duration((self.total - self.done) / speed)} left"

    def to_command(self, ended: str) -> NoteFetch:
        """Return the command that reports the progress to the daemon."""
        speed = round(self.bytes_per_s)
        return NoteFetch(
            name=self.name, done=self.done, total=self.total, bytes_per_s=speed, ended=ended
        )
