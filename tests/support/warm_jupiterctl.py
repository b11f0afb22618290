"""jupiterctl as it is, for a fork of a warm process, whose modules are imported already."""

import sys

from jupiterd.programs import jupiterctl

if __name__ == "__main__":
    sys.argv[0] = "jupiterctl"
    jupiterctl()
