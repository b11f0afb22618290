"""The compiled graphs that torch keeps on disk, so that a later worker needn't compile again.

Owns what may be kept. Where they lie, the daemon says (`TORCHINDUCTOR_CACHE_DIR`); how they are
found again (by the graph, the versions and the device) is torch's.
"""

from torch._functorch import config as traced
from torch._inductor import config as compiled

_OWN_FUNCTIONS = "autograd_cache_allow_custom_autograd_functions"
_MARKED = "unsafe_marked_cacheable_functions"
_AUTOCAST = "torch.amp.autocast_mode."


def keep_graphs_of_losses() -> None:
    """Let torch keep what it traced of a graph with an autograd function of ours and autocast.

    It keeps none by itself, for such a function might depend on what isn't in the graph. The
    chunked loss doesn't: chunks and types are unrolled into the graph, which is the key. Autocast's
    device and type stand in it, too. A torch without these choices traces at each start.
    """
    if hasattr(traced, _OWN_FUNCTIONS):
        setattr(traced, _OWN_FUNCTIONS, True)
    if hasattr(compiled, _MARKED):
        safe = {_AUTOCAST + name: "1" for name in ("_enter_autocast", "_exit_autocast")}
        setattr(compiled, _MARKED, {**getattr(compiled, _MARKED), **safe})
