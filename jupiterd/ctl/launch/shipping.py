"""Sending the working folder to the machines that run a launch.

Owns the call and its notices. Doesn't choose the files (`working_folder`), or transfer them.
"""

from collections.abc import Callable, Iterator
from dataclasses import replace
from typing import Final

from jupiterd.ctl.launch.places import Prepared
from jupiterd.formats import counted, plain, size
from jupiterd.processes.script_plan import MachinePart, ScriptOrder
from jupiterd.processes.scripts.run_names import folder_of_run, run_name
from jupiterd.protocol.commands.script_commands import ShipFolder

SHIP_TIMEOUT_S: Final = 960.0
RETAINED: Final = "7 days"
SHOWN: Final = 3


async def shipped(prepared: Prepared, notify: Callable[[str], None]) -> Prepared:
    """Send the folder if it was requested; return the launch with orders that name its copies.

    Raises:
        JupiterError: the folder can't be read here, or a machine can't fetch it.
    """
    folder, channel = prepared.wanted.travelling, prepared.channel
    others = [place for place in prepared.places if place.node != prepared.own]
    if folder is None or channel is None or not others:
        return prepared
    for line in ship_lines(prepared):
        notify(line)
    ship = ShipFolder(
        folder=str(folder.root),
        files=tuple(folder.sizes),
        nodes=tuple(place.node for place in others),
        run=run_name(prepared.orders[0].id),
    )
    done = await channel.execute(ship.VERB, ship.to_plain(), SHIP_TIMEOUT_S)
    by_node = {str(each["node"]): each for each in done["places"]}
    places, orders = list[MachinePart](), list[ScriptOrder]()
    for place, order in zip(prepared.places, prepared.orders, strict=True):
        answer = by_node.get(place.node)
        if answer is None:
            places.append(place)
            orders.append(order)
            continue
        folder_there = folder_of_run(str(answer["folders"]), order.id)
        new = size(int(answer["fetched_bytes"]))
        notify(
            f"{plain(place.name)} fetched {new} of it, and runs it in {plain(folder_there)}, "
            f"which is kept for {RETAINED}"
        )
        places.append(replace(place, folder=folder_there))
        orders.append(replace(order, folder="", shipped=str(done["artifact"])))
    return replace(prepared, places=tuple(places), orders=tuple(orders))


def ship_lines(prepared: Prepared) -> Iterator[str]:
    """Yield lines that name the folder, its size, its target machines and the files left out."""
    folder = prepared.wanted.travelling
    others = [plain(place.name) for place in prepared.places if place.node != prepared.own]
    if folder is None or not others:
        return
    yield f"ships {folder.shown} of {plain(str(folder.root))} to {', '.join(others)}"
    if left_out := folder.left_out:
        more = f" and {len(left_out) - SHOWN} more" if len(left_out) > SHOWN else ""
        shown = ", ".join(map(plain, left_out[:SHOWN]))
        count = counted(len(left_out), "link or odd name", "links or odd names")
        yield f"{count} can't travel: {shown}{more}"
