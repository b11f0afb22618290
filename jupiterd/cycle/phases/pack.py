"""The item that packs a round's sequences, and what training takes of it.

Owns which tokenizer a round uses, how much of its text may be synthetic, and whether questions and
answers are packed as such. Doesn't pack.
"""

from collections.abc import Mapping
from typing import TYPE_CHECKING

from jupiterd.cycle.base.work_item import Phase, WorkItem, WorkResult
from jupiterd.cycle.phases.collect import split_id
from jupiterd.cycle.phases.filter import uniting
from jupiterd.cycle.phases.proxies import synthetic_share
from jupiterd.cycle.phases.steps import TrainRound
from jupiterd.cycle.phases.view import RoundView, item_id
from jupiterd.ids import ArtifactId

if TYPE_CHECKING:
    from jupiterd.cycle.domain.domain import Domain
    from jupiterd.cycle.training.plan import ModelShape

_FIRST_COLLECTED = item_id(1, Phase.COLLECT, 0).removesuffix("0")


def trained_in(round_number: int, completed: Mapping[str, WorkResult]) -> TrainRound:
    """Return what a round that is packed trains on.

    completed: item id -> result, over all rounds
    """
    packed = completed[item_id(round_number, Phase.PACK, 0)]
    split = completed.get(split_id(round_number))
    if split is not None:
        held_out = (split.outputs["holdout"],)
    else:
        names = sorted(name for name in completed if name.startswith(_FIRST_COLLECTED))
        collected = (completed[name].outputs for name in names)
        held_out = tuple(outputs["holdout"] for outputs in collected if "holdout" in outputs)
    return TrainRound(first_tokenizer(completed), packed.outputs["shards"], held_out)


def first_tokenizer(completed: Mapping[str, WorkResult]) -> ArtifactId:
    """Return the first round's tokenizer: it never changes, so that students stay comparable."""
    return completed[item_id(1, Phase.PACK, 0)].outputs["tokenizer"]


def pack(view: RoundView, domain: "Domain", shape: "ModelShape") -> tuple[WorkItem, ...]:
    """Return the item that packs what was kept."""
    inputs = {"kept": view.completed[uniting(view)].outputs["kept"]}
    if view.round > 1:
        inputs["tokenizer"] = first_tokenizer(view.completed)
    elif view.first_model:
        inputs["tokenizer"] = ArtifactId(view.first_model)
    share = synthetic_share(view, domain)
    params = {
        "vocab_size": shape.vocab_size,
        "seq_len": shape.seq_len,
        "synthetic_share": share.share,
        "share_reason": share.reason,
        "seed": view.seed,
        "purged": sorted(view.purged),
        **({"loss_on": view.loss_on} if view.loss_on else {}),
    }
    return (WorkItem(item_id(view.round, Phase.PACK, 0), Phase.PACK, "pack", params, inputs),)
