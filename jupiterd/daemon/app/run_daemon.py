"""One daemon's run, from its first task to its last.

Owns the group of all its tasks, and giving everything back. Doesn't know what the parts do.
"""

import asyncio
import logging
from collections.abc import Callable, Mapping
from functools import partial

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.process_resources import trim_memory_periodically
from jupiterd.daemon.app.systemd_notices import Watched, notify_service_manager
from jupiterd.daemon.observability.sinks import start_sinks
from jupiterd.daemon.queries.cluster.status_document import status_document
from jupiterd.daemon.runtime.settings import Settings
from jupiterd.daemon.runtime.state_dir import StateDir
from jupiterd.net.interfaces import missing_of

log = logging.getLogger(__name__)


class _Stopped(Exception):  # noqa: N818 - the orderly end of a daemon
    """Ends the daemon's tasks."""


async def serve(
    settings: Settings,
    sources: dict[str, str],
    state_dir: StateDir,
    take_signals: Callable[[Node], None],
) -> None:
    """Run one daemon until a signal or the service manager stops it.

    Args:
        settings: of this daemon, from options, environment and file.
        sources: setting -> where it was taken from.
        state_dir: its folder, opened and locked.
        take_signals: called once with the node, to connect signals with `stop`.
    """
    node: Node | None = None
    try:
        async with asyncio.TaskGroup() as group:
            node = Node(settings, state_dir, group)
            node.setting_sources.update(sources)
            take_signals(node)
            _warn_of_missing(settings.interface)
            _warn_of_doubtful(settings.env)
            logging.getLogger().addHandler(node.observers.own_report.log)
            group.create_task(trim_memory_periodically(), name="memory")
            observers = node.observers
            start_sinks(observers.sources, observers.alerts, observers.events, group)
            notify_service_manager(_watched(node), group)
            await node.run()
            raise _Stopped  # noqa: TRY301 - ends every task of the group
    except* _Stopped:
        log.info("stopped")
    finally:
        if node is not None:
            logging.getLogger().removeHandler(node.observers.own_report.log)
            await node.close()


def _watched(node: Node) -> Watched:
    status = partial(status_document, node.observers.sources)
    return Watched(node.state_dir.root, node.ready, node.stopping, status)


def _warn_of_missing(interfaces: tuple[str, ...]) -> None:
    """Warn of an interface that isn't there: it may be mistyped, or be plugged in later."""
    if reason := missing_of(interfaces):
        log.warning("interface_missing", extra={"reason": reason})


def _warn_of_doubtful(rank_variables: Mapping[str, str]) -> None:
    """Warn of variables for ranks that are probably mistyped: ranks would fail, or be slow."""
    if not rank_variables:
        return
    import psutil

    from jupiterd.doctor.rank_variables import doubts  # memory that most daemons need not

    for reason in doubts(rank_variables, psutil.net_if_addrs()):
        log.warning("rank_variable_doubtful", extra={"reason": reason})
