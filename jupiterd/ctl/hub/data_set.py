"""Whether the hub has a data set, and shows it to us: asked before work on it is.

Owns that one question. Doesn't know its subsets, splits or rows, which the work finds out.
"""

from collections.abc import Callable

from jupiterd.ctl.hub.asking import asking, check_library, has_no_way
from jupiterd.ctl.hub.listing import TIMEOUT_S
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.patience import patiently
from jupiterd.ctl.output.console import notice
from jupiterd.errors import MissingExtraError, SourceUnreachableError


def check_data_set(repository: str, are_others_here: Callable[[], bool]) -> None:
    """Ask the hub for a data set; nothing where its library isn't here, as others may have it.

    Where this machine has no way to the hub and others are here, that is only said: whoever does
    the work asks again, and it moves on to the next machine from one that has no way either.

    Raises:
        JupiterError: there is no such data set, it isn't open to us, or there is no way to the hub.
    """
    try:
        check_library()
    except MissingExtraError:
        return
    from huggingface_hub import HfApi

    name = HubName(repository, is_data_set=True)
    try:
        with asking(name):
            patiently(lambda: HfApi().dataset_info(repository, timeout=TIMEOUT_S), notice)
    except SourceUnreachableError as error:
        if not (has_no_way(error) and are_others_here()):
            raise
        notice(f"{error.message}; one of the other machines may have a way to it")
