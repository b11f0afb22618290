"""Say in one line what is wrong with this Python, if anything is; must run on old ones too.

Owns the conditions. Doesn't know who asks.
"""

import sys

OLDEST = (3, 11)


def complaint():  # noqa: ANN201 - read by interpreters older than the syntax of our types
    """Return (what is wrong, what to do), or None."""
    version = "%d.%d" % sys.version_info[:2]  # noqa: UP031 - the same
    if sys.version_info < OLDEST:
        return (
            "Jupiter needs Python 3.11 or newer, and %s is %s" % (sys.executable, version),  # noqa: UP031
            "install a newer one and name it: make setup PYTHON=python3.12",
        )
    try:
        import ensurepip
        import venv
    except ImportError:
        return (
            "Python %s is here without its venv module" % version,  # noqa: UP031
            "sudo apt-get install python3-venv, then run make again",
        )
    del ensurepip, venv
    return None


def main():  # noqa: ANN201 - the same
    """Exit with 1 when something is wrong."""
    found = complaint()
    if found:
        sys.stderr.write("make: error: %s\n\nhint: %s\n" % found)  # noqa: UP031
        sys.exit(1)


if __name__ == "__main__":
    main()
