"""jupiterctl as it is, for a fork of a warm process, whose modules are imported already.

Its looks at text are forked, too: of a session of their own, they end with it.
"""

import os
import sys

from jupiterd.programs import jupiterctl
from tests.support.fork_server import FOLDER_VARIABLE
from tests.support.warm_children import start_looks_warm

if __name__ == "__main__":
    if FOLDER_VARIABLE in os.environ:
        start_looks_warm()
    sys.argv[0] = "jupiterctl"
    jupiterctl()
