"""Say whether this tree may be released as the version that it names: make release-check.

The tag that is to be released stands in RELEASE_TAG; without one, only the form is checked.
Owns that judgement. Doesn't know what a release contains.
"""

import os
import re
import sys
from pathlib import Path

from jupiterd import __version__

ROOT = Path(__file__).resolve().parent.parent


def main() -> None:
    """Print the version, or what is wrong with it."""
    changelog = (ROOT / "CHANGELOG.md").read_text(encoding="utf-8")
    if wrong := complaint(__version__, os.environ.get("RELEASE_TAG", ""), changelog):
        sys.exit(f"release: error: {wrong[0]}\n\nhint: {wrong[1]}")
    print(f"version {__version__}")


def complaint(version: str, tag: str, changelog: str) -> tuple[str, str] | None:
    """Return (what is wrong, what to do), or None."""
    if not re.fullmatch(r"\d+\.\d+\.\d+((a|b|rc)\d+)?", version):
        return f"{version} is no version of the form 1.2.3 or 1.2.3rc1", "jupiterd/__init__.py"
    if not tag:
        return None
    if tag != f"v{version}":
        return f"the tag is {tag}, and the code says {version}", f"tag it v{version}"
    if not re.search(rf"^## \[?{re.escape(version)}\]?( |$)", changelog, re.MULTILINE):
        return (
            f"CHANGELOG.md has no section {version}",
            f"rename Unreleased: ## {version} - YYYY-MM-DD",
        )
    return None


if __name__ == "__main__":
    main()
