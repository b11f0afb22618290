"""A jupiterd that says no addresses of its own, as those of before did: its gangs have no filter.

Runs as a program, with jupiterd's own arguments.
"""

import sys

from jupiterd.daemon import probes
from jupiterd.programs import jupiterd

probes._own_hosts = lambda _host: []  # pyright: ignore[reportPrivateUsage] - no such setting
sys.exit(jupiterd())
