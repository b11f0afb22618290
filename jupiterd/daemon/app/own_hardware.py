"""What this machine tells the others of itself: what it has, and what this build does with it.

Owns putting both together. Doesn't know who is told.
"""

from collections.abc import Sequence
from dataclasses import replace

from jupiterd.cluster.planning.engines import MLX, TORCH
from jupiterd.cluster.values.hardware import Hardware
from jupiterd.daemon.serving.engines.installed_engines import can_answer
from jupiterd.daemon.serving.tasks.task_nodes import can_evaluate
from jupiterd.hardware.probe import probe


def own_hardware(devices: Sequence[str]) -> Hardware:
    """Return it; devices: those that may be used, as the settings name them."""
    return replace(
        probe(devices),
        can_answer=can_answer(),
        can_evaluate=can_evaluate(),
        trains_adapters=True,
        trains_dropout=True,
        cut_engines=(MLX, TORCH),
        cut_base_engines=(TORCH,),
    )
