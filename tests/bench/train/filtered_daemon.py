"""A jupiterd whose gangs are behind the filter, or have none: `... filtered_daemon.py on|off ...`.

Runs as a program, with jupiterd's own arguments after that. Without a filter means that it says no
addresses of its own, as those of before did.
"""

import sys

from jupiterd.daemon.executor import preflight_listener
from jupiterd.programs import jupiterd

if sys.argv.pop(1) == "off":
    preflight_listener._own_hosts = lambda _host: []  # pyright: ignore[reportPrivateUsage] - no such setting
sys.exit(jupiterd())
