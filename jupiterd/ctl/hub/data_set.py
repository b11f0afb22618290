"""The check that the hub has a data set and gives us access, made before work is requested.

Owns that one request. Doesn't check subsets, splits or rows: the worker that prepares the data
does.
"""

from collections.abc import Callable

from jupiterd.ctl.hub.asking import asking, check_library, is_no_answer
from jupiterd.ctl.hub.listing import TIMEOUT_S
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.patience import patiently
from jupiterd.ctl.output.console import notice
from jupiterd.errors import MissingExtraError, SourceUnreachableError


def check_data_set(repository: str, are_others_here: Callable[[], bool]) -> None:
    """Check a data set of the hub; do nothing if the hub's library isn't installed here.

    If this machine can't reach the hub and the cluster has other machines, print only a notice: the
    machine that does the work checks again, and a machine that can't reach the hub passes it on.

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
