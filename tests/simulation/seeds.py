"""Running one seed from its founding to its healed end.

Owns how a world is set up from a seed and its profile. What a failing seed says is made here too.
"""

from jupiterd.ids import NodeId
from tests.simulation.invariants.healing import heal
from tests.simulation.invariants.violation import Violation
from tests.simulation.node.disk import Content, Disk
from tests.simulation.node.fencing import keep_ordering
from tests.simulation.node.machine import Machine
from tests.simulation.node.newcomers import KNOCK_S, Newcomer
from tests.simulation.node.recording import founding, keep_recording
from tests.simulation.node.replica import Replica
from tests.simulation.profiles import Profile, profile_of
from tests.simulation.trouble.troubles import TROUBLES, make_trouble
from tests.simulation.world import World

SETTLED_S = 5.0


class SeedFailed(AssertionError):  # noqa: N818 - what happened to it
    """An invariant doesn't hold in a seed; says which seed, and what happened last."""


def run_seed(seed: int, profile: Profile | None = None) -> str:
    """Run a seed and return the hash of its trace.

    Raises:
        SeedFailed: an invariant doesn't hold.
    """
    return run_world(found(seed, profile or profile_of(seed)))


def run_world(world: World) -> str:
    """Let a world that was set up live, and return the hash of its trace.

    Raises:
        SeedFailed: an invariant doesn't hold.
    """
    seed = world.seed
    try:
        live(world)
    except Exception as error:
        last = "\n".join(world.recent)
        raise SeedFailed(
            f"seed {seed} ({world.profile.name}): {type(error).__name__}: {error}\n"
            f"again: python -m tests.simulation {seed} 1 {world.profile.name}\n{last}"
        ) from error
    return world.trace.hexdigest()


def found(seed: int, profile: Profile) -> World:
    """Set up machines that all hold the founding of one cluster."""
    world = World(seed, profile)
    count = world.rng.randint(*profile.nodes)
    nodes = [NodeId(f"{number:02x}" * 16) for number in range(count + profile.spares)]
    world.outside = nodes[count:]
    world.rng.shuffle(nodes)
    founder = Disk()
    members = [node for node in nodes if node not in world.outside]
    replica = Replica(members[0], founder, lambda: world.fresh_name(16))
    is_first_day = profile.is_first_day
    world.founders = frozenset(members[:1] if is_first_day else members)
    for facts in founding(members[0], members, is_first_day=is_first_day):
        replica.append(1, facts)
    for node in nodes:
        is_member = node in members
        content = Content(1, founder.content.entries) if is_member else Content()
        world.machines[node] = Machine(world, node, Disk(content))
        world.machines[node].is_latecomer = not is_member
    return world


def live(world: World) -> None:
    """Go through troubles, then through healing."""
    for node, machine in world.machines.items():
        if node not in world.outside:
            machine.start()
    if world.profile.starts_split:
        TROUBLES["partition"](world)
    checks = world.checks
    checks.keep_looking()
    keep_recording(world)
    keep_ordering(world)
    for node in world.outside:
        world.newcomers[node] = newcomer = Newcomer(world, node)
        latest_s = world.rng.choice((KNOCK_S[1], world.profile.troubled_s))
        world.at(world.rng.uniform(KNOCK_S[0], latest_s), newcomer.knock)
    world.run(SETTLED_S)
    until = world.now + world.profile.troubled_s
    while world.now < until:
        make_trouble(world)
        world.run(world.rng.expovariate(1.0 / world.profile.trouble_every_s))
    if world.profile.heals:
        heal(world)
    checks.check_ledgers()


__all__ = ["SeedFailed", "Violation", "found", "live", "run_seed", "run_world"]
