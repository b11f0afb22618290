"""Making a data set: the command that asks for one.

Owns its checks and what it records; it runs at the leader. Doesn't know how text becomes tokens.
"""

import secrets
from typing import Any

from jupiterd.cluster.facts.facts import DataRequested
from jupiterd.cluster.ledger.state import State
from jupiterd.daemon.catalog.dataset_catalog import check_name, data_sets, find_data
from jupiterd.daemon.leader.term import Term
from jupiterd.daemon.runtime.clock import wall_iso
from jupiterd.errors import ConflictError
from jupiterd.ids import CycleId
from jupiterd.protocol.commands.data_commands import PrepareData


async def prepare_data(term: Term, command: PrepareData) -> dict[str, Any]:
    """Ask for a data set; a cluster makes several at once if it must.

    Raises:
        ConflictError: one of that name is there, or being made.
        NotFoundError: no data set has the tokenizer that is named.
        UsageError: something that can't be.
    """
    run = CycleId(secrets.token_hex(8))
    requested = requested_data(term.state, run, command)
    for other, fact in data_sets(term.state):
        if fact.name == requested.name and not (other.has_nothing_to_do and other.prepared is None):
            raise ConflictError(
                f"there is a data set called {requested.name}", "choose another name with --name"
            )
    await term.record(requested)
    return {"data": run, "name": requested.name}


def requested_data(
    state: State, run: CycleId, command: PrepareData, vocab_size: int = 0
) -> DataRequested:
    """Return the fact that asks for a data set, as the command has it.

    Args:
        state: what the ledger says.
        run: the run that makes it.
        command: what is to be made of which text.
        vocab_size: entries of a tokenizer that is trained, where the source doesn't say.
    """
    from jupiterd.cycle.runs.run_settings import DataSettings  # its models take 8 MB, idle or not

    given = dict(command.source)
    if vocab_size:
        given.setdefault("vocab_size", vocab_size)
    settings = DataSettings.parse(given)
    wanted = command.tokenizer or ""
    made = find_data(state, wanted)[1] if wanted else None
    is_on_one_disk = settings.kind == "folder" or settings.tokenizer_path
    return DataRequested(
        cycle=run,
        name=check_name(command.name),
        source=settings.to_scalars(),
        node=command.node if is_on_one_disk else "",
        tokenizer="" if made is None else made.outputs["tokenizer"],
        started_at=wall_iso(),
        asked_at=command.asked_at or "",
    )
