"""Loss curves as messages between nodes.

Owns the translation, and what is believed of another node's. Doesn't know who asks whom.
"""

import math
from collections.abc import Iterable, Mapping
from typing import Final

from jupiterd.cycle.base.thinned_curve import MAX_BINS, CurvePoint, DrawnCurve
from jupiterd.rpc import peer_pb2

MAX_POINTS: Final = 2 * MAX_BINS
"""Points read of one curve that another node sends; the rest is ignored."""

Curves = Mapping[int, DrawnCurve]
"""Island -> its curve; 0: that of a run's own gang."""


def curves_reply(curves: Curves) -> peer_pb2.CurvesReply:
    """Return the message for the wire."""
    return peer_pb2.CurvesReply(
        curves=[
            peer_pb2.LossCurve(
                island=island,
                round=curve.round,
                points=map(_point, curve.points),
                validations=map(_point, curve.validations),
            )
            for island, curve in curves.items()
        ]
    )


def curves_of(reply: peer_pb2.CurvesReply) -> dict[int, DrawnCurve]:
    """Return the valid points of a node's curve: steps that grow, and finite numbers."""
    return {
        each.island: DrawnCurve(
            each.round if each.HasField("round") else None,
            tuple(_read(each.points)),
            tuple(_read(each.validations)),
        )
        for each in reply.curves
    }


def _point(point: CurvePoint) -> peer_pb2.LossPoint:
    return peer_pb2.LossPoint(
        step=point.step, loss=point.loss, tokens=point.tokens, at_s=point.at_s
    )


def _read(points: Iterable[peer_pb2.LossPoint]) -> list[CurvePoint]:
    found = [
        CurvePoint(
            each.step,
            each.loss,
            each.tokens if each.HasField("tokens") else None,
            each.at_s if each.HasField("at_s") and math.isfinite(each.at_s) else None,
        )
        for each in points
        if math.isfinite(each.loss)
    ]
    return sorted(found[:MAX_POINTS], key=lambda point: point.step)
