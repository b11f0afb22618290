"""Whether the hub has a data set, and shows it to us: asked before work on it is.

Owns that one question. Doesn't know its subsets, splits or rows, which the work finds out.
"""

from jupiterd.ctl.console import notice
from jupiterd.ctl.hub.asking import asking, check_library
from jupiterd.ctl.hub.listing import TIMEOUT_S
from jupiterd.ctl.hub.names import HubName
from jupiterd.ctl.hub.patience import patiently
from jupiterd.errors import MissingExtraError


def check_data_set(repository: str) -> None:
    """Ask the hub for a data set; nothing where its library isn't here, as others may have it.

    Raises:
        JupiterError: there is no such data set, it isn't open to us, or there is no way to the hub.
    """
    try:
        check_library()
    except MissingExtraError:
        return
    from huggingface_hub import HfApi

    name = HubName(repository, is_data_set=True)
    with asking(name):
        patiently(lambda: HfApi().dataset_info(repository, timeout=TIMEOUT_S), notice)
