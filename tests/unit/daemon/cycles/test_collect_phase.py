"""How the leader collects where a source can't be had: real sources, read by real workers."""

import shutil
import socket
import subprocess
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest

from jupiterd.cluster.facts.facts import CycleStarted, RoleAssigned, WorkCompleted
from jupiterd.cycle.base.work_item import Phase
from jupiterd.daemon.cycles.cycle_driver import CycleDriver
from jupiterd.daemon.leader import work_item
from jupiterd.daemon.leader.term_services import TermServices
from jupiterd.daemon.leader.work_item import Patience
from jupiterd.daemon.queries.cycle.cycle_document import cycle_document
from jupiterd.errors import SourceUnreachableError
from jupiterd.ids import CycleId
from jupiterd.locations import config_folder
from tests.support.cluster.building import CYCLE, checkpoint, round_over, started
from tests.support.daemon.two_nodes import found, serving
from tests.support.sources.tiny_domain import write_domain
from tests.support.workers import local_site
from tests.support.workers.local_site import page

pytestmark = [pytest.mark.net, pytest.mark.timeout(120)]

_SITE = "{{kind: web, name: site, urls: ['{url}/'], timeout_s: 0.1, allow_private_addresses: true}}"
_GIT = "{{kind: git, name: project, url: 'file://{folder}', license: MIT, cluster_depth: 1}}"


@pytest.fixture
def asked(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Write down why anything is tried again."""
    reasons: list[str] = []
    real = work_item.wait_out

    async def wait_out(
        leading: TermServices, cycle: CycleId, trouble: str, pause_s: float = 0.0
    ) -> None:
        reasons.append(trouble)
        await real(leading, cycle, trouble, pause_s)

    monkeypatch.setattr(work_item, "wait_out", wait_out)
    return reasons


@pytest.fixture(autouse=True)
def _hasty(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(work_item, "SOURCE_RETRY_S", 0.0)
    monkeypatch.setattr(work_item, "NEEDED", Patience(3, 60.0))
    monkeypatch.setattr(work_item, "SPARED", Patience(2, 60.0))


def domain_of(folder: Path, *sources: str, files: bool = True) -> CycleStarted:
    """The beginning of a cycle over these sources, and over a folder of files."""
    written = write_domain(folder).read_text()
    own = next(line for line in written.splitlines() if "kind: folder" in line)
    listed = "\n".join([*([own] if files else []), *(f"  - {source}" for source in sources)])
    return replace(
        started(rounds=3),
        domain_yaml=written.replace(own, listed),
        model_yaml=(config_folder() / "models" / "1m.yaml").read_text(),
    )


def project(folder: Path) -> str:
    """Make a repository; return it as a source."""
    for number in range(8):
        (folder / f"part_{number}").mkdir(parents=True)
        (folder / f"part_{number}" / "a.py").write_text(
            f"def part_{number}():\n    return {number}\n"
        )
    who = ("-c", "user.name=a", "-c", "user.email=a@b")
    for call in (("init", "--quiet"), ("add", "-A"), (*who, "commit", "--quiet", "-m", "one")):
        subprocess.run(["git", *call], cwd=folder, check=True)
    return _GIT.format(folder=folder)


@asynccontextmanager
async def a_term(folder: Path, start: CycleStarted) -> AsyncGenerator[TermServices]:
    async with serving(folder, "one", readable_folders=(folder,)) as one:
        own = RoleAssigned(one.identity.node_id, "hybrid", "it is alone", 1)
        await found(one, facts=(own, start))
        yield one._begin_term(1)


async def collect(leading: TermServices) -> None:
    await CycleDriver(leading, CYCLE)._step()


def collected(leading: TermServices, number: int = 1) -> dict[str, WorkCompleted]:
    done = leading.term.cycle(CYCLE).completed.values()
    return {
        fact.item: fact for fact in done if fact.phase == Phase.COLLECT and fact.round == number
    }


def told(leading: TermServices) -> str:
    shown = cycle_document(leading.term.cycle(CYCLE), None, model=None, has_leader=True)
    rows = [row for row in shown["phases"] if row["phase"] == "collect"]
    return str(rows[-1]["detail"])


@pytest.mark.full
async def test_the_others_go_on_without_a_repository_that_is_gone(tmp_path: Path) -> None:
    source = project(tmp_path / "project")
    shutil.rmtree(tmp_path / "project")
    async with a_term(tmp_path, domain_of(tmp_path, source)) as leading:
        await collect(leading)
        there, gone = (collected(leading)[f"r1/collect/{number}"] for number in (0, 1))
        assert there.counts["documents"] > 0
        assert (gone.outputs, gone.counts) == ({}, {})
        assert (
            f"source project failed: one: file://{tmp_path}/project can't be fetched: fatal: "
            in (told(leading))
        )
        assert told(leading).endswith("there is none of it, the next round tries it anew")
        await collect(leading)
        assert {"r1/collect/clean/0"} == {
            item for _, item in leading.term.cycle(CYCLE).completed if "/clean/" in item
        }


@pytest.mark.full
async def test_what_was_collected_before_stays_and_a_source_that_comes_back_is_read_again(
    tmp_path: Path,
) -> None:
    source = project(tmp_path / "project")
    async with a_term(tmp_path, domain_of(tmp_path, source, files=False)) as leading:
        await collect(leading)
        first = collected(leading)["r1/collect/0"]
        await end_round(leading, 1)
        (tmp_path / "project").rename(tmp_path / "moved")
        await collect(leading)
        second = collected(leading, 2)["r2/collect/0"]
        kept = {name: artifact for name, artifact in first.outputs.items() if name != "skipped"}
        assert second.outputs == kept
        assert second.counts["documents"] == first.counts["documents"]
        assert "what was collected of it before is used" in told(leading)
        await end_round(leading, 2)
        (tmp_path / "moved").rename(tmp_path / "project")
        await collect(leading)
        third = collected(leading, 3)["r3/collect/0"]
        assert third.outputs["documents"] == first.outputs["documents"]
        assert third.summary == {}


async def end_round(leading: TermServices, number: int) -> None:
    line = [checkpoint(f"k{number}", f"k{number - 1}" if number > 1 else "", number, is_final=True)]
    await leading.term.record(*line, round_over(f"k{number}", number))


@pytest.mark.full
async def test_a_site_that_never_answers_is_asked_a_few_times_and_longer_where_it_is_needed(
    tmp_path: Path, asked: list[str]
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:  # connections are made, and no more
        url = f"http://127.0.0.1:{silent.getsockname()[1]}"
        source = _SITE.format(url=url)
        async with a_term(tmp_path / "spared", domain_of(tmp_path / "spared", source)) as leading:
            await collect(leading)
            assert len(asked) == 2 - 1  # after the last one nobody waits
            assert f"source site failed: one: the site {url}/ can't be reached" in told(leading)
        asked.clear()
        needed = domain_of(tmp_path / "needed", source, files=False)
        async with a_term(tmp_path / "needed", needed) as leading:
            await CycleDriver(leading, CYCLE).run()
            assert len(asked) == 3 - 1
            failed = leading.term.cycle(CYCLE).failed
            assert failed is not None
            assert failed.code == "source-unreachable"
            assert failed.message == f"one: the site {url}/ can't be reached"
            assert failed.hint == "check the address, and this machine's way to it"
            assert collected(leading) == {}


async def test_where_all_are_gone_each_is_named(tmp_path: Path) -> None:
    source = project(tmp_path / "project")
    start = domain_of(tmp_path, source)
    for folder in ("project", "code"):
        shutil.rmtree(tmp_path / folder)
    async with a_term(tmp_path, start) as leading:
        with pytest.raises(SourceUnreachableError) as caught:
            await collect(leading)
        message = caught.value.message
        assert message.startswith("too little text without what failed: ")
        assert f"source code: the data source {tmp_path}/code is no folder" in message
        assert "source project: one: file://" in message
        assert "\n" not in message
        assert collected(leading) == {}  # whoever leads next begins anew


@pytest.mark.full
async def test_too_little_text_for_a_sequence_says_what_is_missing(tmp_path: Path) -> None:
    source = project(tmp_path / "project")
    start = domain_of(tmp_path, source)
    shutil.rmtree(tmp_path / "project")
    for each in sorted((tmp_path / "code").rglob("*.py")):
        each.write_text("x = 1\n")
    async with a_term(tmp_path, start) as leading:
        await CycleDriver(leading, CYCLE).run()
        failed = leading.term.cycle(CYCLE).failed
        assert failed is not None
        assert failed.code == "empty-source"
        assert "left no real text" in failed.message
        assert "; source project failed: one: file://" in failed.message


async def test_two_sources_of_one_host_are_read_one_after_the_other(tmp_path: Path) -> None:
    with local_site.serving() as site:
        for part in ("one", "two"):
            links = [f"{part}-{number}" for number in range(3)]
            site.put(f"/{part}", page(part, *links))
            for link in links:
                site.put(f"/{link}", page(link))
        named = "{{kind: web, name: {part}, urls: ['{url}/{part}'], max_depth: 1, delay_s: 0.0, "
        told = named + "allow_private_addresses: true, license: MIT}}"
        sources = [told.format(part=part, url=site.url) for part in ("one", "two")]
        async with a_term(tmp_path, domain_of(tmp_path, *sources, files=False)) as leading:
            await collect(leading)
            assert [fact.counts["documents"] for fact in collected(leading).values()] == [4, 4]
    pages = [path for path in site.asked if path != "/robots.txt"]
    assert sorted(pages[:4]) == ["/one", "/one-0", "/one-1", "/one-2"]
    assert sorted(pages[4:]) == ["/two", "/two-0", "/two-1", "/two-2"]


@pytest.mark.full
async def test_of_several_sites_each_is_read_by_itself_and_one_that_is_lost_is_named(
    tmp_path: Path, asked: list[str]
) -> None:
    told_of = (
        "{{kind: web, name: sites, urls: ['{one}/', '{two}/'], max_depth: 1, delay_s: 0.0, "
        "timeout_s: 1.0, allow_private_addresses: true, license: MIT}}"
    )
    with local_site.serving() as site, socket.create_server(("127.0.0.1", 0)) as silent:
        site.put("/", page("begin", "a", "b"))
        for name in ("a", "b"):
            site.put(f"/{name}", page(name))
        two = f"http://localhost:{silent.getsockname()[1]}"
        source = told_of.format(one=site.url, two=two)
        async with a_term(tmp_path, domain_of(tmp_path, source, files=False)) as leading:
            await collect(leading)
            found = collected(leading)
            assert {item: fact.counts.get("documents") for item, fact in found.items()} == {
                "r1/collect/0/0": 3, "r1/collect/0/1": None,
            }  # fmt: skip
            assert f"source sites (part 2 of 2) failed: one: the site {two}/" in told(leading)
            assert told(leading).startswith(f"{found['r1/collect/0/0'].counts['bytes']:,.0f} bytes")
            assert asked
            await collect(leading)
            assert "r1/collect/clean/0" in collected(leading)
