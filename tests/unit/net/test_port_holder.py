"""Who has a port."""

import socket
import subprocess
import sys
from pathlib import Path

import pytest

from jupiterd.net.port_holder import holder_of

pytestmark = pytest.mark.net

LISTENS = """
import socket, sys
listener = socket.create_server(("127.0.0.1", 0))
print(listener.getsockname()[1], flush=True)
sys.stdin.read()
"""


@pytest.mark.parametrize(
    ("called", "told"), [("jupiterd", "jupiterd (process {})"), ("x", "another program")]
)
def test_another_jupiterd_is_named_with_its_process(tmp_path: Path, called: str, told: str) -> None:
    program = tmp_path / called
    program.write_text(LISTENS)
    command = [sys.executable, str(program)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as it:
        assert it.stdout is not None
        port = int(it.stdout.readline())
        assert holder_of(port) == told.format(it.pid)
        it.communicate()


def test_this_process_is_not_another_one() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        assert holder_of(listener.getsockname()[1]) == "another program"
