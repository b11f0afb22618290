"""Why the ranks of a run or a cycle have no NCCL, whatever their machines could do.

Owns what follows from its settings. Pure. Doesn't know which backend the machines allow
(`planning.backends`), or what failed before.
"""

from collections.abc import Mapping
from typing import Any, Final

from jupiterd.cluster.planning.backends import GLOO
from jupiterd.cluster.training.tunnel_plan import GANG_ENCRYPTION, ON

GANG_BACKEND: Final = "gang_backend"
"""What settings call the backend that people asked for; absent: none."""


def nccl_refusal(settings: Mapping[str, Any]) -> str:
    """Return why these settings leave no NCCL; empty where they leave it."""
    if settings.get(GANG_BACKEND) == GLOO:
        return "it was asked for (--gang-backend gloo)"
    return "NCCL goes through no tunnel" if settings.get(GANG_ENCRYPTION) == ON else ""
