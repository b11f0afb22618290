"""The commands of a daemon that leads a term which no loop of its own has begun."""

from dataclasses import replace
from functools import partial

from jupiterd.daemon.app.command_wiring import leader_access_of
from jupiterd.daemon.app.node import Node
from jupiterd.daemon.app.verb_wiring import table_of
from jupiterd.daemon.commands.commands import Commands
from jupiterd.daemon.leader.term_services import TermServices


def alone_with(node: Node, services: TermServices) -> Commands:
    """Return a node's commands, carried out in this term without any look at the election."""
    lead = replace(leader_access_of(node), services=lambda: services, check_awake=lambda: None)
    return Commands(partial(table_of, node), node.replica, lead)
