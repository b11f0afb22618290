"""jupiterd as it is, but for one rule: the alert of a machine that is gone waits a second, not a
minute, and is over as soon. For tests that can't wait so long; all else is the real daemon.
"""

import sys
from dataclasses import replace
from typing import cast

from jupiterd.cluster.health import alerts
from jupiterd.daemon.app.main import main

rules = cast("dict[str, alerts.Rule]", alerts.TABLE)
rules["node-gone"] = replace(rules["node-gone"], hold_s=1.0, clear_s=1.0)

if __name__ == "__main__":
    sys.exit(main())
