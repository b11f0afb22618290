"""The options that a daemon takes, on the command line and in a service that starts it.

Owns their names and help, and writing given ones down as arguments again. Doesn't know what they
mean (`settings`).
"""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import click

CommandFunction = TypeVar("CommandFunction", bound=Callable[..., Any])

FILES = frozenset({"config", "cluster"})
"""Options that name a file: a service starts in another folder, so it gets the absolute path."""

_OPTIONS = (
    click.option("--config", type=click.Path(path_type=Path), help="A jupiter.yaml with settings."),
    click.option("--name", help="This node's name in tables; default: the host name."),
    click.option("--state-dir", metavar="DIR", help="Where key, ledger and models lie."),
    click.option("--interface", multiple=True, help="Network interface to use; may be repeated."),
    click.option("--peer", multiple=True, help="HOST[:PORT] of another node; may be repeated."),
    click.option("--cluster", metavar="FILE", help="A cluster.yaml that describes the machines."),
    click.option("--scope", metavar="NAME", help="Find by multicast only daemons of this scope."),
    click.option(
        "--join", metavar="FILE|-", help="Join the cluster whose token is there: cluster token."
    ),
    click.option(
        "--closed", is_flag=True, default=None, help="Found a cluster that lets nobody in."
    ),
    click.option("--trust-lan", is_flag=True, default=None, help="As leader, let everybody in."),
    click.option("--port", type=int, help="TCP port for other nodes; 0 lets the system choose."),
    click.option(
        "--threads",
        type=click.IntRange(1, 4096),
        help="Threads of each worker process; default: its share of all cores.",
    ),
    click.option("--devices", metavar="cpu|0,1", help="Where to train; default: all GPUs, or CPU."),
    click.option(
        "--allow-scripts", is_flag=True, default=None, help="Members may run scripts here."
    ),
    click.option("--metrics", metavar="[HOST:]PORT", help="Serve metrics for Prometheus there."),
    click.option(
        "--serve-models", metavar="MODEL,...", help="Serve these on a port, as OpenAI's API has it."
    ),
    click.option("--serve-port", type=int, help="Where; default: 47480 of this machine alone."),
    click.option("--local", is_flag=True, default=None, help="Use the loopback interface only."),
    click.option("--debug", is_flag=True, help="Log more, and show tracebacks."),
    click.option("--quiet", is_flag=True, help="Log to the state folder, and here errors alone."),
)


def daemon_options(command: CommandFunction) -> CommandFunction:
    """Give a command every option of the daemon."""
    for option in reversed(_OPTIONS):
        command = option(command)
    return command


@dataclass(frozen=True)
class DaemonOptions:
    """What was given on a command line."""

    config: Path | None
    debug: bool
    quiet: bool
    settings: Mapping[str, Any]
    """Those that are settings, by their names."""

    @classmethod
    def of(cls, options: Mapping[str, Any]) -> "DaemonOptions":
        """Sort what click has read; what wasn't given is left out."""
        said = {name: value for name, value in options.items() if not _is_missing(value)}
        config, debug, quiet = (said.pop(name, None) for name in ("config", "debug", "quiet"))
        return cls(config, bool(debug), bool(quiet), said)

    def over(self, other: "DaemonOptions") -> "DaemonOptions":
        """Return both together; what is given here counts more."""
        return DaemonOptions(
            self.config or other.config,
            self.debug or other.debug,
            self.quiet or other.quiet,
            {**other.settings, **self.settings},
        )

    def arguments(self) -> tuple[str, ...]:
        """Return the words of a command line that gives the same."""
        general = {"config": self.config, "debug": self.debug, "quiet": self.quiet}
        said = {name: value for name, value in general.items() if value}
        return tuple(_words({**said, **self.settings}))


def _is_missing(value: object) -> bool:
    return value is None or value is False or value == ()


def _words(options: Mapping[str, Any]) -> Iterator[str]:
    for name, value in options.items():
        flag = f"--{name.replace('_', '-')}"
        if value is True:
            yield flag
            continue
        for each in value if isinstance(value, tuple) else (value,):
            yield flag
            yield str(Path(each).expanduser().absolute()) if name in FILES else str(each)
