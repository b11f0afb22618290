"""What a daemon shows: its status, its health and its documents."""

from typing import Any

from jupiterd.daemon.app.node import Node
from jupiterd.daemon.queries.cluster.health_document import health_lines
from jupiterd.daemon.queries.cluster.status_document import status_document


def status_of(node: Node) -> dict[str, Any]:
    return status_document(node.observers.sources)


def health_of(node: Node) -> list[dict[str, Any]]:
    return health_lines(node.observers.sources)


async def shown(node: Node, noun: str) -> dict[str, Any]:
    return await node.observers.documents.of(noun)
