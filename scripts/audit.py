"""Say which of the pinned packages have known vulnerabilities: make audit.

Exits with 1 where there is one that nobody has explained, and where packages couldn't be looked up.
Owns that judgement and the list of explanations; `pip-audit` knows the vulnerabilities.
"""

import json
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

CONSTRAINTS = Path(__file__).resolve().parent.parent / "constraints.txt"
MOST_NAMED = 5

EXPLAINED: Mapping[str, str] = {}
"""Id of a vulnerability -> why Jupiter isn't open to it, until there is a version without it."""


def main() -> None:
    """Ask, print, and exit with what the answer is worth."""
    command = [sys.executable, "-m", "pip_audit", "-r", str(CONSTRAINTS), "--no-deps"]
    command += ["--disable-pip", "-f", "json", "--progress-spinner", "off"]
    done = subprocess.run(command, check=False, capture_output=True, text=True)
    if not done.stdout:
        sys.exit(f"audit: error: {_last_line(done.stderr)}\n\nhint: is the index reachable?")
    status, lines = judged(json.loads(done.stdout)["dependencies"])
    print("\n".join(lines))
    sys.exit(status)


def judged(packages: list[dict[str, Any]]) -> tuple[int, list[str]]:
    """Return an exit status and what to print, from the packages that pip-audit tells of."""
    findings = [(package, each) for package in packages for each in package.get("vulns", [])]
    lines = [_line(package, finding) for package, finding in findings]
    skipped = [package["name"] for package in packages if "skip_reason" in package]
    lines.append(f"{len(packages) - len(skipped)} of {len(packages)} packages were looked up")
    if skipped:
        more = ", ..." if len(skipped) > MOST_NAMED else ""
        lines.append(f"not known to the index: {', '.join(skipped[:MOST_NAMED])}{more}")
    lines += [f"{each} is explained, and no longer found" for each in _stale(findings)]
    is_clean = all(_is_explained(finding) for _, finding in findings) and not skipped
    return (0 if is_clean else 1), lines


def _line(package: Mapping[str, Any], finding: Mapping[str, Any]) -> str:
    fixed = ", ".join(finding.get("fix_versions", [])) or "nowhere yet"
    known = [EXPLAINED[name] for name in _names(finding) if name in EXPLAINED]
    word = known[0] if known else f"not explained; mended in {fixed}"
    return f"{package['name']} {package['version']}: {finding['id']}: {word}"


def _is_explained(finding: Mapping[str, Any]) -> bool:
    return any(name in EXPLAINED for name in _names(finding))


def _names(finding: Mapping[str, Any]) -> list[str]:
    return [finding["id"], *finding.get("aliases", [])]


def _stale(findings: list[tuple[dict[str, Any], dict[str, Any]]]) -> Iterator[str]:
    found = {name for _, finding in findings for name in _names(finding)}
    yield from (name for name in EXPLAINED if name not in found)


def _last_line(text: str) -> str:
    return (text.strip().splitlines() or ["pip-audit said nothing"])[-1]


if __name__ == "__main__":
    main()
