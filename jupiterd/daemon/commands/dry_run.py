"""A command that is only tried: all its checks are made, and it ends before anything is recorded.

Owns how far it goes. Doesn't know any command: each checks first, and then records what follows.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Collection, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from jupiterd.cluster.facts.facts import CycleStateSet, Fact
from jupiterd.daemon.catalog.brought_tokenizer import brought_tokenizer, check_convertible
from jupiterd.daemon.catalog.model_import import GENERATOR, JUDGE, check_tokenizer, said_tokenizer
from jupiterd.errors import NotFoundError

if TYPE_CHECKING:
    from jupiterd.daemon.leader.leading import Leading

DRY_RUN = "dry_run"
"""The verb; its arguments are `verb` and `arguments` of the command that is tried."""

NOT_COPIED = "0" * 64
"""Stands for the artifact that a folder would become."""

Arguments = Mapping[str, Any]
Verb = Callable[["Leading", Arguments], Awaitable[dict[str, Any]]]


class _ReachedError(Exception):
    """All checks are made: these would be recorded."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        super().__init__()
        self.facts = facts


async def tried(verb: Verb, leading: "Leading", arguments: Arguments) -> str:
    """Do what a command does until it would record something; raises what it would refuse with.

    It returns the cycle or training that would be stopped or gone on with; empty: none.
    """
    shadow = copy.copy(leading)

    async def record(*facts: Fact) -> None:
        raise _ReachedError(facts)

    shadow.record = record
    try:
        await verb(shadow, arguments)
    except _ReachedError as reached:
        steered = (fact for fact in reached.facts if isinstance(fact, CycleStateSet))
        return str(next((fact.cycle for fact in steered), ""))
    return ""


async def without_copying(
    verb: str, arguments: Arguments, to_fetch: Collection[str] = ()
) -> Arguments:
    """Return a command's arguments as if its folders had been copied into the store; checked.

    to_fetch: folders that lack weights: their models will be there when it is ordered; a tokenizer
        that is there already counts

    Raises:
        NotFoundError: this daemon can't read a folder, or it holds no model to begin with.
        JupiterError: its tokenizer can't be used.
    """
    if verb == "train.start" and (folder := arguments.get("weights_folder")):
        rest = {name: value for name, value in arguments.items() if name != "weights_folder"}
        is_here = folder not in to_fetch
        if is_here:
            await asyncio.to_thread(_check_weights, Path(str(folder)))
        identity = await asyncio.to_thread(brought_tokenizer, Path(str(folder)))
        known = said_tokenizer(identity) if is_here or identity is not None else {}
        return rest | {"weights": NOT_COPIED} | known
    if verb == "cycle.start":
        init: Mapping[str, Any] = arguments.get("init") or {}
        if (folder := init.get("weights_folder")) and folder not in to_fetch:
            await asyncio.to_thread(check_tokenizer, Path(str(folder)))
        folders = [init.get("weights_folder"), *(arguments.get(f"{r}_folder") for r in ROLES)]
        for folder in {*filter(None, folders)}:
            if folder not in to_fetch:
                await asyncio.to_thread(_check_weights, Path(str(folder)))
            await asyncio.to_thread(check_convertible, Path(str(folder)))
    return arguments


ROLES = (GENERATOR, JUDGE)


def _check_weights(folder: Path) -> None:
    if not any(folder.glob("*.safetensors")):
        raise NotFoundError(f"{folder} holds no safetensors that this daemon can read")
