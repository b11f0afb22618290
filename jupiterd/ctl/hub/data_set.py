"""Whether the hub has a data set, and gives us access: checked before work on it is requested.

Owns that one request. Doesn't know its subsets, splits or rows, which the work finds out.
"""

from collections.abc import Callable

from jupiterd.ctl.hub.asking import asking, check_library, is_no_answer
from jupiterd.ctl.hub.listing import TIMEOUT_S
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.patience import patiently
from jupiterd.ctl.output.console import notice
from jupiterd.errors import MissingExtraError, SourceUnreachableError


def check_data_set(repository: str, are_others_here: Callable[[], bool]) -> None:
    """Check a data set of the hub; do nothing where the hub's library isn't installed here.

    Where this machine can't reach the hub and others are in the cluster, that is only a notice: the
    machine that does the work checks again, and the work moves on from one that can't reach it.

    Raises:
        JupiterError: there is no such data set, we have no access, or the hub can't be reached.
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
        if not (is_no_answer(error) and are_others_here()):
            raise
        notice(f"{error.message}; one of the other machines may have a way to it")
