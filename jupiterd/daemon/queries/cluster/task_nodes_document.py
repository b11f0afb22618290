"""The document of `model eval --tasks`: which other members are asked, and why the rest aren't.

Owns its keys. Which they are: `serving.tasks.task_nodes`.
"""

from typing import Any

from jupiterd.cluster.serving.served_model import ServedModel
from jupiterd.daemon.serving.serving_fleet import ServingFleet
from jupiterd.daemon.serving.tasks.task_nodes import why_not_asked
from jupiterd.daemon.view.local_view import LocalView
from jupiterd.document_schema import SCHEMA
from jupiterd.errors import NotFoundError
from jupiterd.ids import ArtifactId, NodeId
from jupiterd.store.manifest import is_artifact_id


async def task_nodes_document(fleet: ServingFleet, view: LocalView, wanted: str) -> dict[str, Any]:
    """Return all other members, as far as asking them for a model's answers goes.

    Raises:
        NotFoundError: that is no model's id.
    """
    if not is_artifact_id(wanted):
        raise NotFoundError("there is no model with that id")
    model = ServedModel("", ArtifactId(wanted))
    await fleet.find_holders(ArtifactId(wanted))
    rows = [
        {"node": node.node, "name": node.name, "has_model": node.holds,
         "why_not": why_not_asked(node, can_evaluate=_can_evaluate(view, node.node))}
        for node in fleet.nodes(model, {}) if not node.is_own
    ]  # fmt: skip
    return {"schema": SCHEMA, "nodes": rows}


def _can_evaluate(view: LocalView, node: NodeId) -> bool:
    hardware = view.hardware_of(node)
    return hardware is not None and hardware.can_evaluate
