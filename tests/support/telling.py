"""Prints what it was started with, then waits for a word on its link, as a worker does."""

import json
import os
import socket
import sys

from jupiterd.protocol.frames import LINK_FD_VARIABLE
from tests.support.fork_server import end_with_parent

end_with_parent()
told = {
    "arguments": sys.argv[1:],
    "environment": dict(os.environ),
    "folder": os.getcwd(),  # noqa: PTH109
    "leads": os.getsid(0) == os.getpid(),
    "has_torch": "torch" in sys.modules,
}
print(json.dumps(told), flush=True)
sys.exit(socket.socket(fileno=int(os.environ[LINK_FD_VARIABLE])).recv(1)[0])
