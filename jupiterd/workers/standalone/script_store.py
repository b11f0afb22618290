"""The place where the ranks of a launched script find each other: torch's store, and nothing else.

Owns a TCPStore on a socket that was bound for it and left open. Doesn't know the ranks. It runs
under the Python of the script, so both speak of the same torch, and in a process of its own, so
that no rank takes it along.

Arguments: the descriptor of the listening socket.
"""

import signal
import socket
import sys

try:
    from torch.distributed import TCPStore  # pyright: ignore[reportPrivateImportUsage]
except ModuleNotFoundError as error:
    sys.exit(f"this Python ({sys.executable}) can't import torch: {error}")


def main(descriptor: int) -> None:
    """Serve until killed."""
    with socket.socket(fileno=descriptor) as listener:
        host, port = listener.getsockname()[:2]
        listener.detach()  # the store closes it
    store = TCPStore(
        str(host), int(port), is_master=True, wait_for_workers=False, master_listen_fd=descriptor
    )
    while store.port:
        signal.pause()


if __name__ == "__main__":
    main(int(sys.argv[1]))
