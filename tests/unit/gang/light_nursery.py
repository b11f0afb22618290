"""A nursery that has imported no more than a store needs: for what isn't about an engine."""

import sys

from jupiterd.workers import nursery

if __name__ == "__main__":
    nursery.PRELOADED = {"torch": ("jupiterd.workers.train.store",)}
    nursery.main(sys.argv[1])
