"""A script for torchrun that waits until somebody ends it; it imports nothing that takes long."""

import os
import time

print(f"rank {os.environ['RANK']} waits", flush=True)
time.sleep(600)
