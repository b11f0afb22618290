"""A worker as it is, but that a CPU counts as a device on which micro batches are tried."""

import sys

from jupiterd.workers import __main__ as worker
from jupiterd.workers.train import micro_batch_probe

if __name__ == "__main__":
    micro_batch_probe.__dict__["CPU"] = "none"
    sys.exit(worker.main())
