"""How the name `promoted` goes from one model to the next, step by step and at random."""

from dataclasses import dataclass, field
from itertools import pairwise

from hypothesis import given
from hypothesis import strategies as st

from jupiterd.cluster.serving.promotion_follow import (
    FIRST_RETRY_S,
    LAST_RETRY_S,
    Deed,
    Engines,
    Following,
    Load,
    Notice,
    Unload,
    step,
    stopped,
)
from jupiterd.ids import ArtifactId

OLD, NEW, NEWER = (ArtifactId(letter * 64) for letter in "abc")
ON_OLD = Following(serving=OLD)


def deeds_of(deeds: tuple[Deed, ...]) -> list[Deed]:
    return [deed for deed in deeds if not isinstance(deed, Notice)]


def test_the_new_model_is_loaded_beside_the_old_one() -> None:
    after, deeds = step(ON_OLD, 0.0, NEW, Engines(ready={OLD}))
    assert deeds == (Load(NEW),)
    assert (after.serving, after.loading) == (OLD, NEW)


def test_it_takes_new_requests_once_it_is_ready_and_the_old_one_ends_its_answers() -> None:
    loading = Following(serving=OLD, loading=NEW)
    after, deeds = step(loading, 1.0, NEW, Engines(ready={OLD, NEW}, running={OLD: 3}))
    assert (after.serving, after.ending) == (NEW, {OLD})
    assert deeds_of(deeds) == []
    after, deeds = step(after, 2.0, NEW, Engines(ready={OLD, NEW}, running={OLD: 1}))
    assert deeds == ()
    after, deeds = step(after, 3.0, NEW, Engines(ready={OLD, NEW}))
    assert deeds == (Unload(OLD),)
    assert after == Following(serving=NEW)


def test_a_failed_load_keeps_the_old_model_and_says_so() -> None:
    loading = Following(serving=OLD, loading=NEW)
    after, deeds = step(loading, 1.0, NEW, Engines(ready={OLD}, failed={NEW: "out of memory"}))
    assert (after.serving, after.loading) == (OLD, None)
    assert after.trouble(NEW) == "out of memory"
    assert deeds == (Unload(NEW), Notice("promoted_model_failed", NEW, "out of memory"))


def test_a_failed_load_is_tried_again_later_and_less_and_less_often() -> None:
    now, at_s, tries = Following(serving=OLD), 0.0, list[float]()
    while at_s < 4 * LAST_RETRY_S:
        failed = {NEW: "no"} if now.loading == NEW else {}
        now, deeds = step(now, at_s, NEW, Engines(ready={OLD}, failed=failed))
        tries += [at_s] * (Load(NEW) in deeds)
        at_s += 1.0
    waits = [after - before for before, after in pairwise(tries)]
    assert waits[0] >= FIRST_RETRY_S
    assert waits == sorted(waits)
    assert waits[-1] >= LAST_RETRY_S


def test_a_rollback_before_the_last_answer_is_over_goes_straight_back() -> None:
    switched = Following(serving=NEW, ending=frozenset({OLD}))
    after, deeds = step(switched, 1.0, OLD, Engines(ready={OLD, NEW}, running={OLD: 1, NEW: 2}))
    assert (after.serving, after.ending) == (OLD, {NEW})
    assert deeds_of(deeds) == []


def test_a_promotion_during_a_load_takes_its_place() -> None:
    loading = Following(serving=OLD, loading=NEW)
    after, deeds = step(loading, 1.0, NEWER, Engines(ready={OLD}))
    assert deeds == (Unload(NEW), Load(NEWER))
    assert (after.serving, after.loading) == (OLD, NEWER)


def test_a_promotion_that_is_taken_back_during_its_load_ends_the_load() -> None:
    after, deeds = step(Following(serving=OLD, loading=NEW), 1.0, OLD, Engines(ready={OLD}))
    assert (after, deeds) == (ON_OLD, (Unload(NEW),))


def test_an_engine_that_died_is_loaded_again() -> None:
    after, deeds = step(ON_OLD, 1.0, OLD, Engines())
    assert deeds == (Load(OLD),)
    assert after.serving == OLD
    after, deeds = step(after, 2.0, OLD, Engines(ready={OLD}))
    assert (after, deeds) == (ON_OLD, ())


def test_the_old_model_is_loaded_again_while_the_new_one_cannot_be() -> None:
    loading = Following(serving=OLD, loading=NEW)
    after, deeds = step(loading, 1.0, NEW, Engines(failed={NEW: "no"}))
    assert Load(OLD) in deeds
    assert step(after, 2.0, NEW, Engines())[1] == ()


def test_where_nothing_was_ever_promoted_nothing_is_done() -> None:
    assert step(Following(), 0.0, None, Engines()) == (Following(), ())


def test_a_model_that_was_rolled_back_without_another_takes_no_new_request() -> None:
    both = Following(serving=OLD, loading=NEW)
    after, deeds = step(both, 0.0, None, Engines(ready={OLD}, running={OLD: 1}))
    assert (after, deeds) == (Following(ending=frozenset({OLD})), (Unload(NEW),))
    assert step(after, 1.0, None, Engines(ready={OLD})) == (Following(), (Unload(OLD),))
    again, deeds = step(after, 1.0, OLD, Engines(ready={OLD}, running={OLD: 1}))
    assert (again, deeds_of(deeds)) == (ON_OLD, [])


def test_who_serves_the_name_no_more_gives_everything_up() -> None:
    after, deeds = stopped(Following(serving=NEW, loading=NEWER, ending=frozenset({OLD})))
    assert (after, set(deeds)) == (Following(), {Unload(NEW), Unload(NEWER), Unload(OLD)})


@dataclass
class World:
    """Engines that load, fail and die, and clients, as lots have it."""

    now: Following = field(default_factory=Following)
    at_s: float = 0.0
    wanted: ArtifactId | None = None
    loading: dict[ArtifactId, float] = field(default_factory=dict[ArtifactId, float])
    ready: set[ArtifactId] = field(default_factory=set[ArtifactId])
    failed: dict[ArtifactId, str] = field(default_factory=dict[ArtifactId, str])
    answers: list[ArtifactId] = field(default_factory=list[ArtifactId])
    lost: int = 0

    def look(self) -> None:
        running = {each: self.answers.count(each) for each in self.answers}
        engines = Engines(frozenset(self.ready), dict(self.failed), running)
        served_before = self.now.serving
        self.failed.clear()
        self.now, deeds = step(self.now, self.at_s, self.wanted, engines)
        for deed in deeds:
            self._do(deed)
        if (
            served_before in self.ready and self.wanted is not None
        ):  # what could answer isn't given up without another
            assert self.now.serving in self.ready
        assert self.now.held == self.ready | set(self.loading) | (self.now.held - self.ready)
        assert self.ready | set(self.loading) <= self.now.held

    def _do(self, deed: Deed) -> None:
        match deed:
            case Load(artifact):
                assert artifact not in self.loading, "it is loaded twice"
                if artifact not in self.ready:
                    self.loading[artifact] = self.at_s + 3.0
            case Unload(artifact):
                assert artifact not in self.answers or artifact not in self.ready
                self.loading.pop(artifact, None)
                self.ready.discard(artifact)
            case Notice():
                pass

    def pass_time(self, seconds: float, *, fails: bool) -> None:
        self.at_s += seconds
        for artifact in [each for each, at_s in self.loading.items() if at_s <= self.at_s]:
            del self.loading[artifact]
            if fails:
                self.failed[artifact] = "no memory"
            else:
                self.ready.add(artifact)

    def ask(self) -> None:
        takes = self.now.serving
        if takes is not None and takes in self.ready:
            self.answers.append(takes)

    def kill(self, artifact: ArtifactId) -> None:
        if artifact in self.ready:
            self.ready.discard(artifact)
            self.lost += self.answers.count(artifact)
            self.answers = [each for each in self.answers if each != artifact]


MODELS = st.sampled_from([OLD, NEW, NEWER])
ROLLED_BACK = st.just("roll back"), st.none()
EVENTS = st.lists(
    st.one_of(
        st.tuples(st.just("promote"), MODELS),
        st.tuples(st.just("ask"), st.none()),
        st.tuples(*ROLLED_BACK),
        st.tuples(st.just("end"), st.integers(0, 5)),
        st.tuples(st.just("pass"), st.tuples(st.floats(0.1, 30.0), st.booleans())),
        st.tuples(st.just("kill"), MODELS),
    ),
    max_size=40,
)


def happen(world: World, name: str, what: object) -> None:
    match name, what:
        case "promote", str():
            world.wanted = ArtifactId(what)
        case "roll back", _:
            world.wanted = None
        case "ask", _:
            world.ask()
        case "end", int() if world.answers:
            world.answers.pop(what % len(world.answers))
        case "pass", (float() as seconds, bool() as fails):
            world.pass_time(seconds, fails=fails)
        case "kill", str():
            world.kill(ArtifactId(what))
        case _:
            pass


@given(EVENTS)
def test_whatever_happens_no_answer_is_cut_and_the_name_comes_to_the_wanted_model(
    events: list[tuple[str, object]],
) -> None:
    world = World()
    for name, what in events:
        before = world.lost
        happen(world, name, what)
        world.look()
        assert name == "kill" or world.lost == before
    world.answers.clear()
    for _ in range(3):
        world.look()
        world.pass_time(LAST_RETRY_S, fails=False)
    world.look()
    assert world.now.serving == world.wanted
    assert world.ready == ({world.wanted} if world.wanted else set())


@given(EVENTS)
def test_a_request_always_finds_a_model_once_one_was_ready_and_no_engine_dies(
    events: list[tuple[str, object]],
) -> None:
    world = World()
    was_ready = False
    for name, what in events:
        if name not in {"kill", "roll back"}:
            happen(world, name, what)
            world.look()
        was_ready = was_ready or bool(world.ready)
        assert not was_ready or world.now.serving in world.ready
