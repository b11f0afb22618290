"""Do all machines run the same versions?

Pure. Owns comparing the versions that nodes report. Doesn't know how they are sent.
"""

from typing import Any, Final

from jupiterd.doctor.examined_machine import ExaminedMachine, name_of
from jupiterd.doctor.finding import Finding, fail, not_here, ok, warn
from jupiterd.versions import UPGRADE, Kinship, kinship

CHECK: Final = "versions"
PROGRAM: Final = "jupiterd"


def judge(machine: ExaminedMachine) -> list[Finding]:
    """Return a finding for each difference between another node's versions and ours."""
    own = _versions_of(machine.own)
    others = [node for node in machine.others if _versions_of(node)]
    if not own or not others:
        why = "there is no other machine to compare with"
        return [not_here(CHECK, why)] if machine.status else [not_here(CHECK, "no jupiterd runs")]
    found = [finding for node in others for finding in _compared(own, node)]
    found += [
        _unreported(node)
        for node in machine.others
        if node.get("hardware") and not _versions_of(node)
    ]
    listed = ", ".join(f"{name} {version}" for name, version in sorted(own.items()))
    return found or [ok(CHECK, f"all machines have {listed}")]


def _compared(own: dict[str, str], node: Any) -> list[Finding]:  # noqa: ANN401 - a row
    found: list[Finding] = []
    theirs, name = _versions_of(node), name_of(node)
    for program, version in own.items():
        if program not in theirs or _release(theirs[program]) == _release(version):
            continue
        why = f"{name} has {program} {theirs[program]}, and this machine {version}"
        if program == PROGRAM:
            found.append(_of_jupiter(why, kinship(theirs[program], version)))
        else:
            newest = max(theirs[program], version, key=_numbers)
            fix = f"pip install '{program}=={_release(newest)}' where it is older"
            found.append(warn(CHECK, why, fix))
    return found


def _of_jupiter(why: str, found: Kinship) -> Finding:
    fix = f"upgrade the older one: {UPGRADE}, then start jupiterd again"
    if found is Kinship.ALIKE:
        return ok(CHECK, f"{why}; they work together")
    apart = (
        "more than one minor version apart" if found is Kinship.APART else "no work crosses that"
    )
    return fail(CHECK, f"{why}: {apart}", fix)


def _unreported(node: Any) -> Finding:  # noqa: ANN401 - a row
    why = f"{name_of(node)} doesn't tell its versions: its jupiterd is older than this one"
    return warn(CHECK, why, f"upgrade {name_of(node)}: {UPGRADE}, then start jupiterd again")


def _versions_of(node: Any) -> dict[str, str]:  # noqa: ANN401 - a row
    return dict((node.get("hardware") or {}).get("versions") or {})


def _release(version: str) -> str:
    """Return a version without its build: `2.13.0+cpu` can train together with `2.13.0+cu130`."""
    return version.partition("+")[0]


def _numbers(version: str) -> tuple[int, ...]:
    parts = _release(version).split(".")
    return tuple(int(part) if part.isdecimal() else 0 for part in parts)
