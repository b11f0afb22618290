"""What holds for every test."""

import asyncio
import contextlib
import gc
import os
import secrets
import signal
import sys
import tempfile
from collections.abc import Generator, Iterator
from pathlib import Path
from zlib import crc32

import pytest
from hypothesis import HealthCheck, settings
from xdist.remote import Producer

from jupiterd.processes import interpreter
from jupiterd.processes.environment import ALWAYS
from tests.support.core_tokens import OF_A_CORE, CoreTokens
from tests.support.fork_server import FOLDER_VARIABLE, open_fork_server
from tests.support.reading import own_part, read
from tests.support.schedule import Schedule, has_daemons
from tests.support.warm_start import start_warm

SEED_VARIABLE = "JUPITER_TEST_SEED"

COLD_VARIABLE = "JUPITER_TEST_COLD"
"""Has daemons start their workers as on people's machines, without the fork server."""

TOKENS_VARIABLE = "JUPITER_TEST_TOKENS"
"""The folder of the tokens for cores, where several processes run tests."""

TOKENS = pytest.StashKey[CoreTokens]()
MAX_WORKERS = 8

# Several tests share the cores: threads of torch that spin while they wait would take them away.
os.environ.setdefault("GOMP_SPINCOUNT", ALWAYS["GOMP_SPINCOUNT"])
DEFAULT_TIMEOUT_S = 60.0

MAX_ID_LENGTH = 200
"""Of a parameter in the name of a test."""

# The same examples in every run, and no time limit for one of them: machines that test are busy.
settings.register_profile(
    "jupiter", derandomize=True, deadline=None, suppress_health_check=[HealthCheck.too_slow]
)
settings.load_profile("jupiter")


def pytest_configure(config: pytest.Config) -> None:
    # What is ignored here, programs under test and the fork server that they come from would
    # inherit, and take it as a wish; of a function they don't.
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:  # under nohup
        signal.signal(signal.SIGHUP, pass_over)
    if signal.getsignal(signal.SIGINT) is signal.SIG_IGN:  # in the background of a shell
        signal.signal(signal.SIGINT, signal.default_int_handler)
    if config.getoption("numprocesses", None):  # this is the one that the others are started by
        share_among_workers(config)
    elif TOKENS_VARIABLE in os.environ:
        tokens = config.stash[TOKENS] = CoreTokens(Path(os.environ[TOKENS_VARIABLE]), cores())
        config.add_cleanup(tokens.close)
    # Or pytest-asyncio asks for "the current loop", gets one made for it, and never closes it:
    # a warning at the very end of the run, which counts as an error.
    asyncio.set_event_loop(None)


def pass_over(_number: int, _frame: object) -> None:
    """Handle a signal by doing nothing."""


def pytest_xdist_auto_num_workers(config: pytest.Config) -> int:
    """Have one for each core that computes, and more for tests with daemons, which wait.

    Half as many more where few tests have daemons: there, on two cores, each process's reading of
    all modules costs more than a further one saves.
    """
    waiting = cores() if wants_full(config) else max(1, cores() // 2)
    return min(cores() + waiting, MAX_WORKERS)


def pytest_xdist_make_scheduler(config: pytest.Config, log: Producer) -> Schedule:
    """Have tests that compute and tests that wait run beside each other."""
    return Schedule(config, log, cores())


def pytest_ignore_collect(collection_path: Path, config: pytest.Config) -> bool | None:
    """Leave out files without a test that is wanted, where only `full` ones are.

    Each process imports all that it collects: most of what it took `make test-rest` to begin.
    """
    if collection_path.suffix != ".py" or has_daemons(str(collection_path)):
        return None
    if not wants_full_alone(config):
        return None
    return "mark.full" not in collection_path.read_text(encoding="utf-8") or None


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, object, object]:
    """Share the work of reading all modules among the processes of a run.

    What is read is kept to the end: looking through it for garbage again and again takes a third of
    the time.
    """
    config = session.config
    folders = (config.rootpath / argument for argument in config.args)
    files = [file for folder in folders for file in folder.rglob("test_*.py")]
    wanted = [file for file in files if not pytest_ignore_collect(file, config)]
    gc.disable()
    try:
        read(own_part(wanted, config), config.rootpath)
        return (yield)
    finally:
        gc.enable()


@pytest.hookimpl(tryfirst=True)  # before -m chooses, and xdist reads the order
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark what `make test` leaves out; where several processes run tests, sort them.

    Tests with real daemons are left to `make test-all`, but for those of the smoke test. The
    longest of each kind come first.
    """
    for item in items:
        if has_daemons(item.nodeid) and item.get_closest_marker("smoke") is None:
            item.add_marker(pytest.mark.full)
    if TOKENS_VARIABLE in os.environ:
        items.sort(key=place)
        bring_forward([item for item in items if tokens(item) > OF_A_CORE], items)


@pytest.hookimpl(wrapper=True, tryfirst=True)  # before the clock of its time limit is started
def pytest_runtest_protocol(item: pytest.Item) -> Generator[None, object, object]:
    """Wait until there are cores for a test, where several run at once."""
    if (shared := item.config.stash.get(TOKENS, None)) is None:
        return (yield)
    with shared.taken(tokens(item)):
        return (yield)


def wants_full_alone(config: pytest.Config) -> bool:
    """Say whether `full` tests alone are wanted."""
    return str(config.getoption("markexpr", "")).startswith("full and ")


def wants_full(config: pytest.Config) -> bool:
    """Say whether `full` tests are wanted, which most tests with daemons are."""
    return "not full" not in str(config.getoption("markexpr", ""))


def cores() -> int:
    """Return how many cores the tests may use."""
    return len(os.sched_getaffinity(0)) if sys.platform == "linux" else os.cpu_count() or 1


def place(item: pytest.Item) -> tuple[bool, bool, float]:
    """Return what says when a test begins: those with daemons first, those for all cores last."""
    return not has_daemons(item.nodeid), tokens(item) > OF_A_CORE, -seconds(item)


def bring_forward(for_all_cores: list[pytest.Item], items: list[pytest.Item]) -> None:
    """Let tests that want all cores come before the last tenth of the others.

    No test with daemons runs any more by then, for whose end they would wait for minutes, and there
    is still something short to run beside them.
    """
    many = len(for_all_cores)
    if many:
        del items[-many:]
        before = len(items) - len(items) // 10
        items[before:before] = for_all_cores


def seconds(item: pytest.Item) -> float:
    """Return how long a test with daemons, or one marked as slow, may take; nothing for others."""
    if item.get_closest_marker("slow") is None and not has_daemons(item.nodeid):
        return 0.0
    limit = item.get_closest_marker("timeout")
    return limit.args[0] if limit else DEFAULT_TIMEOUT_S


def tokens(item: pytest.Item) -> int:
    """Return how many tokens a test takes, which stand for parts of a core."""
    if (marker := item.get_closest_marker("cores")) is not None:
        return marker.args[0] * OF_A_CORE
    return 1 if has_daemons(item.nodeid) else OF_A_CORE


def pytest_collection_finish() -> None:
    # Thousands of tests are kept to the end: looking through them for garbage again and again takes
    # a tenth of the time. The dashboard collects as seldom.
    gc.freeze()
    gc.set_threshold(20_000, 20, 50)


def pytest_make_parametrize_id(val: object) -> str | None:
    """Give long texts a short name: pytest puts it in the environment of all that a test starts.

    The kernel takes no variable longer than 128 KiB, so whoever starts a process would fail.
    """
    if isinstance(val, bytes | str) and len(val) > MAX_ID_LENGTH:
        data = val.encode("utf-8", "surrogatepass") if isinstance(val, str) else val
        return f"{type(val).__name__}-{len(data)}-{crc32(data):08x}"
    return None


@pytest.fixture(autouse=True)
def seeded_libraries(request: pytest.FixtureRequest) -> None:
    """Let what a test draws from its libraries depend on its name alone, not on tests before it."""
    seed = crc32(request.node.nodeid.encode())
    if (numpy := sys.modules.get("numpy")) is not None:
        numpy.random.seed(seed)
    if (torch := sys.modules.get("torch")) is not None:
        torch.default_generator.manual_seed(seed)
    if (mlx := sys.modules.get("mlx.core")) is not None:
        mlx.random.seed(seed)


@pytest.fixture
def seed() -> int:
    """Return another seed each time, shown where a test fails; the variable has one used again."""
    seed = int(os.environ.get(SEED_VARIABLE) or secrets.randbelow(1 << 32))
    print(f"{SEED_VARIABLE}={seed}")
    return seed


def share_among_workers(config: pytest.Config) -> None:
    """Have one folder of tokens, and one fork server, for all processes that run tests."""
    shared = contextlib.ExitStack()
    config.add_cleanup(shared.close)
    patch = shared.enter_context(pytest.MonkeyPatch.context())
    tokens = shared.enter_context(tempfile.TemporaryDirectory(prefix="jupiter-tokens-"))
    patch.setenv(TOKENS_VARIABLE, tokens)
    if is_warm():
        patch.setenv(FOLDER_VARIABLE, str(shared.enter_context(open_fork_server())))


def is_warm() -> bool:
    """Say whether daemons' workers are to come from a fork server."""
    return sys.platform == "linux" and not os.environ.get(COLD_VARIABLE)


@pytest.fixture(scope="session")
def fork_server() -> Iterator[None]:
    """Let the daemons that tests start get their workers from processes that are warm already."""
    if FOLDER_VARIABLE in os.environ or not is_warm():
        yield
        return
    with open_fork_server() as folder, pytest.MonkeyPatch.context() as patch:
        patch.setenv(FOLDER_VARIABLE, str(folder))
        yield


@pytest.fixture
def warm_starts(fork_server: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let workers that this process starts come from there, too."""
    if FOLDER_VARIABLE in os.environ:
        monkeypatch.setattr(interpreter, "start_module", start_warm)
