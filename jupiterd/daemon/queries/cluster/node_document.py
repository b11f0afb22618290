"""The document of one machine: what `jupiterctl node show` and the dashboard show of it.

Owns its keys; changes nothing.

    node                   its row in `status`: state, hardware, addresses, links, load, speed
    seats                  its ranks and generators in running phases, as the leader reports
    versions, processes    what it reports of itself; None where it doesn't, `note` says why
    log                    the latest lines of its daemon's log, the same
    history, recent        the last ten minutes, as this node heard of them (`node_history`)
"""

from collections.abc import Iterator, Mapping
from typing import Any

from jupiterd.cluster.values.node_names import find_node
from jupiterd.daemon.queries.cluster.status_document import node_row
from jupiterd.daemon.queries.document_sources import DocumentSources, MemberHistories, MemberReports
from jupiterd.daemon.runtime.untrusted_input import sanitized_text
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError

_OF_A_PHASE = ("cycle", "round", "phase")


async def node_document(
    sources: DocumentSources, reports: MemberReports, histories: MemberHistories, wanted: str
) -> dict[str, Any]:
    """Return the document of a member: by its id, the beginning of one, or its name.

    Raises:
        NotFoundError: there is none, or it was removed while it was asked.
        UsageError: there are several.
    """
    members = sources.replica.state.members
    names = {member: sanitized_text(fact.name) for member, fact in members.items()}
    member = find_node(names, wanted)
    report = await reports.of(member)
    if member not in sources.replica.state.members:  # meanwhile
        raise NotFoundError(f"{names[member]} is no longer a member", "jupiterctl node list")
    running = sources.view.running()
    return {
        "schema": SCHEMA,
        "node": node_row(sources, member, running),
        "seats": [seat for live in running for seat in _seats(live, member)],
        **report,
        **histories.of(member),
    }


def _seats(live: Mapping[str, Any], member: str) -> Iterator[dict[str, Any]]:
    """Yield what a node does in a running phase; the rows come from the leader."""
    phase = {name: live.get(name) for name in _OF_A_PHASE}
    for rows in (live.get("gang"), live.get("ahead")):
        for row in rows if isinstance(rows, list) else ():
            if isinstance(row, Mapping) and row.get("node") == member:
                yield phase | dict(row)
