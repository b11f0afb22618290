"""jupiterd as it is, but that its workers with an engine come from the test run's fork server.

python -P tests/support/warm_jupiterd.py OPTIONS
"""

import sys
from pathlib import Path

sys.path.append(str(Path(__file__).parents[2]))  # it is started in whatever folder

from jupiterd.processes import interpreter
from jupiterd.programs import jupiterd
from tests.support.warm_start import start_warm

if __name__ == "__main__":
    interpreter.start_module = start_warm
    sys.argv[0] = "jupiterd"
    jupiterd()
