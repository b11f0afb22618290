"""Islands that train an adapter over a slow link: how fast beside the same without its limit.

Owns these figures: SmolLM2-135M, one island on MLX and one on torch, which train on meanwhile. The
same run is taken by turns over a link of so many Mbit/s and over one that isn't shaped.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, median

from jupiterd.cluster.facts.facts import OuterStepTaken
from jupiterd.cluster.links.allreduce_cost import FEWEST_INNER_STEPS
from jupiterd.cycle.training.adapters.adapter import AdapterOptions
from tests.bench.islands.losses import verdict
from tests.bench.islands.network import LONGEST_S
from tests.bench.islands.rounds import equal_digests, share_of_calm, stretches
from tests.bench.islands.wired import Wired, wired
from tests.real.smollm2 import NotInTheIndexError, model_folder
from tests.support.network import links

ADAPTER = AdapterOptions(rank=16, alpha=32)
MACHINES = 2
SEQ_LEN, SEQUENCES = 64, 2
"""Of an island's step: short ones, which say more of the link than long ones would."""

EVERY = FEWEST_INNER_STEPS
"""The planner never exchanges more often."""

LEFT_OUT, LAST = 1, 1
"""Rounds at the beginning and at the end that don't count; see `network`."""

SHARE = 98.0
MIB = 1 << 20


@dataclass(frozen=True)
class Found:
    """What one run came to."""

    speed: float
    """Tokens/s of both."""
    calm: float
    """Beside what they would have, were all steps as those of the second halves of rounds."""
    late_s: float
    """How much longer the first step after an outer step took than others, in the mean."""


async def print_adapters(mbit: int, rounds: int, passes: int) -> None:
    """Train, and print what came of it; rounds: of each run, beside those that are left out."""
    try:
        model = model_folder()
    except NotInTheIndexError as error:
        print(f"adapters: not run, the package index doesn't give the model ({error})")
        return
    async with wired(MACHINES, 0, model) as on:
        pairs: list[tuple[Found, Found]] = []
        for _ in range(passes):
            free = await _trained(on, rounds)
            print_found("no limit", free)
            for machine in on.machines.machines:
                links.throttle(machine.host, 0, f"{mbit}mbit")
            slow = await _trained(on, rounds)
            print_found(f"{mbit} Mbit/s", slow)
            print_ways(on)
            for machine in on.machines.machines:
                links.free(machine.host)
            pairs.append((free, slow))
            print_shares(mbit, pairs)


async def _trained(on: Wired, rounds: int) -> Found:
    who = " ".join(
        f"{engine}:{name}" for engine, name in zip(("mlx", "torch"), on.names, strict=True)
    )
    sizes = ("--seq-len", str(SEQ_LEN), "--batch-size", str(SEQUENCES))
    how = ("--islands", who, "--sync", "overlapped", "--sync-every", str(EVERY))
    steps = EVERY * (rounds + LEFT_OUT + LAST)
    await on.start(steps, "--lora", ADAPTER.to_text(), *sizes, *how)
    await on.until_over(LONGEST_S)
    equal, of = equal_digests([*on.heard().values()])
    print(f"  equal adapters after {equal} of {of} outer steps {verdict(equal == of > 0)}")
    counted = _counted(on)
    found = stretches(on.heard(), on.islands(), counted, SEQ_LEN)
    speed = sum(each.tokens / each.span_s for each in found.values())
    return Found(speed, 100 * share_of_calm(found), _late_s(on, counted))


def _counted(on: Wired) -> Sequence[OuterStepTaken]:
    line = [*on.recorded().outer_branch().values()]
    return [taken for taken in line[LEFT_OUT:] if taken.steps][:-LAST]


def _late_s(on: Wired, rounds: Sequence[OuterStepTaken]) -> float:
    """Return how much longer than others a round's first step took."""
    late: list[float] = []
    for island in on.heard().values():
        at_s = island.at_s
        took = [at_s[step] - at_s[step - 1] for step in at_s if step - 1 in at_s]
        firsts = [taken.first_step + 1 for taken in rounds]
        late += [at_s[first] - at_s[first - 1] - median(took) for first in firsts]
    return fmean(late)


def print_found(link: str, found: Found) -> None:
    """Print what a run came to."""
    print(
        f"  {link}: {found.speed:,.1f} tokens/s, {found.calm:.1f} % of calm steps; the first step "
        f"of a round {found.late_s:+.2f} s longer than others",
        flush=True,
    )


def print_ways(on: Wired) -> None:
    """Print how large what islands send of a round is, and that of full tuning."""
    line = [*on.recorded().outer_branch().values()]
    names = [name for taken in line for name in taken.pseudo_gradients]
    sizes = [size for name in names if (size := _size(on, name))]
    print(f"  pseudo-gradients of {fmean(sizes) / MIB:.2f} MiB, {len(sizes)} of them")


def _size(on: Wired, artifact: str) -> int:
    folders = (
        machine.state_dir / "store" / artifact[:2] / artifact for machine in on.machines.machines
    )
    found = (
        sum(path.stat().st_size for path in folder.rglob("*") if path.is_file())
        for folder in folders
    )
    return max(found)


def print_shares(mbit: int, pairs: Sequence[tuple[Found, Found]]) -> None:
    """Print how fast islands are over the slow link, beside the same over one without a limit."""
    shares = [100 * slow.speed / free.speed for free, slow in pairs]
    told = ", ".join(f"{share:.1f}" for share in shares)
    calm = fmean(slow.calm for _, slow in pairs)
    print(
        f"adapters at {mbit} Mbit/s, H = {EVERY}, int8: {told} % of the speed without a limit, "
        f"median {median(shares):.1f} % {verdict(median(shares) >= SHARE)} (goal {SHARE:g}); "
        f"{calm:.1f} % of calm steps",
        flush=True,
    )
