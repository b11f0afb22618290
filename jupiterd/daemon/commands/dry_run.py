"""A command that is only tried: all its checks are made, and it ends before anything is recorded.

Owns how far it goes. Doesn't know any command: each checks first, and then records what follows.
"""

import asyncio
import copy
from collections.abc import Awaitable, Callable, Collection, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TypeVar

from jupiterd.cluster.facts.facts import CycleStateSet, Fact
from jupiterd.daemon.catalog.brought_tokenizer import brought_tokenizer, check_convertible
from jupiterd.daemon.catalog.model_import import (
    check_adapter,
    check_tokenizer,
    plain_identity,
)
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.errors import NotFoundError
from jupiterd.protocol.commands.command import Command
from jupiterd.protocol.commands.cycle_commands import StartCycle
from jupiterd.protocol.commands.train_commands import StartTraining

NOT_COPIED = "0" * 64
"""Stands for the artifact that a folder would become."""

C = TypeVar("C", bound=Command)


class _ReachedError(Exception):
    """All checks are made: these would be recorded."""

    def __init__(self, facts: Sequence[Fact]) -> None:
        super().__init__()
        self.facts = facts


async def tried(
    carry_out: Callable[[TermServices, C], Awaitable[object]], services: TermServices, command: C
) -> str:
    """Do what a command does until it would record something; raises what it would refuse with.

    It returns the cycle or training that would be stopped or gone on with; empty: none.
    """
    shadow = copy.copy(services.term)

    async def record(*facts: Fact) -> None:
        raise _ReachedError(facts)

    shadow.record = record
    try:
        await carry_out(replace(services, term=shadow), command)
    except _ReachedError as reached:
        steered = (fact for fact in reached.facts if isinstance(fact, CycleStateSet))
        return str(next((fact.cycle for fact in steered), ""))
    return ""


async def training_without_copying(
    command: StartTraining, to_fetch: Collection[str] = ()
) -> StartTraining:
    """Return a command as if its weights had been copied into the store; checked.

    to_fetch: folders that lack weights: their models will be there when it is ordered; a tokenizer
        that is there already counts

    Raises:
        NotFoundError: this daemon can't read the folder, or it holds no model to begin with.
        JupiterError: its tokenizer can't be used.
    """
    if not (folder := command.weights_folder):
        return command
    is_here = folder not in to_fetch
    if is_here:
        await asyncio.to_thread(_check_weights, Path(folder))
    identity = await asyncio.to_thread(brought_tokenizer, Path(folder))
    adapter = NOT_COPIED if command.adapter_folder else None
    copied = replace(
        command, weights_folder=None, weights=NOT_COPIED, adapter_folder=None, adapter=adapter
    )
    if not is_here and identity is None:
        return copied
    return replace(copied, tokenizer_of_weights=plain_identity(identity))


async def cycle_without_copying(command: StartCycle, to_fetch: Collection[str] = ()) -> None:
    """Check the models that a cycle names, where they lie; raises as above."""
    init = command.init or {}
    first = str(init.get("weights_folder") or "")
    if first and first not in to_fetch:
        await asyncio.to_thread(check_tokenizer, Path(first))
    if adapter := str(init.get("adapter_folder") or ""):
        check_adapter(Path(adapter))
    named = (first, command.generator_folder or "", command.judge_folder or "")
    for folder in {*filter(None, named)}:
        if folder not in to_fetch:
            await asyncio.to_thread(_check_weights, Path(folder))
        await asyncio.to_thread(check_convertible, Path(folder))


def _check_weights(folder: Path) -> None:
    if not any(folder.glob("*.safetensors")):
        raise NotFoundError(f"{folder} holds no safetensors that this daemon can read")
