"""Sources are asked for a moment: on the disk, of a real repository, of a real web server."""

import json
import subprocess
import threading
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jupiterd.ctl.sources import pinned_request
from jupiterd.ctl.sources.source_reachability import reach
from jupiterd.cycle.domain.data_sources import (
    FeedSource,
    FolderSource,
    GitSource,
    JsonlSource,
    ParquetSource,
    PythonStdlibSource,
    WebSource,
)
from tests.unit.workers.data.collectors.test_git import Smart

pytestmark = pytest.mark.net
TIMEOUT_S = 5.0


def problem(source, timeout_s=TIMEOUT_S):
    (found,) = reach([source], timeout_s)
    return found.problem


def test_the_standard_library_is_everywhere():
    assert problem(PythonStdlibSource(kind="python_stdlib")) == ""


def test_a_folder_must_hold_what_is_asked_for(tmp_path):
    (tmp_path / "a.txt").write_text("a")

    def folder(path=tmp_path, glob="**/*", exclude=()):
        fields = {"path": str(path), "license": "MIT", "glob": glob, "exclude": exclude}
        return FolderSource(kind="folder", **fields)

    assert problem(folder()) == ""
    assert problem(folder(glob="*.py")) == "no file in it matches *.py"
    assert "no such folder" in problem(folder(tmp_path / "none"))
    assert "no such folder" in problem(folder(tmp_path / "a.txt"))
    assert problem(folder(glob="/etc/*")) == "no file in it matches /etc/*"
    assert problem(folder(glob="*.{md,txt}")) == ""  # as the collector takes it
    assert problem(folder(glob="*.{md,rst}")) == "no file in it matches *.{md,rst}"
    assert problem(folder(exclude=("*.txt",))) == "no file in it matches **/*"
    assert "is no glob" in problem(folder(glob="[z-a].txt"))


def test_hidden_files_are_not_there_for_they_are_not_collected_either(tmp_path):
    (tmp_path / ".hidden.txt").write_text("a")
    (tmp_path / ".git").mkdir()
    (tmp_path / ".git" / "a.txt").write_text("a")
    source = FolderSource(kind="folder", path=str(tmp_path), license="MIT")
    assert problem(source) == "no file in it matches **/*"


def test_tables_are_a_file_or_a_folder_of_them(tmp_path):
    rows = tmp_path / "rows.jsonl.zst"
    rows.write_text("")
    assert problem(JsonlSource(kind="jsonl", path=str(rows))) == ""
    assert problem(JsonlSource(kind="jsonl", path=str(tmp_path))) == ""
    assert "**/*.parquet" in problem(ParquetSource(kind="parquet", path=str(tmp_path)))


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "repository"
    identity = ("-c", "user.name=t", "-c", "user.email=t@example.org")
    subprocess.run(["git", "init", "-q", "-b", "trunk", folder], check=True)
    (folder / "a.txt").write_text("a")
    subprocess.run(["git", "-C", folder, "add", "."], check=True)
    subprocess.run(["git", "-C", folder, *identity, "commit", "-q", "-m", "a"], check=True)
    return folder


def git(url, **more):
    return GitSource(kind="git", url=url, license="MIT", **more)


def test_a_repository_must_have_the_branch_that_is_asked_for(repository):
    url = f"file://{repository}"
    assert problem(git(url)) == ""
    assert problem(git(url, revision="trunk")) == ""
    assert problem(git(url, revision="a" * 40)) == ""  # a commit can't be asked for
    assert problem(git(url, revision="other")) == "it has no branch or tag other"
    assert problem(git(f"{url}-none")).startswith("git says: ")


class Site(BaseHTTPRequestHandler):
    def do_HEAD(self):
        status, location = {
            "/": (200, ""),
            "/old": (301, "/"),
            "/round": (302, "/round"),
            "/away": (302, "file:///etc/passwd"),
            "/picky": (405, ""),
            "/inside": (302, "http://169.254.169.254/latest/"),
        }.get(self.path, (404, ""))
        self._say(status, location)

    def do_GET(self):
        self._say(200 if self.path == "/picky" else 500, "")

    def _say(self, status, location):
        self.send_response(status)
        if location:
            self.send_header("Location", location)
        self.send_header("Content-Length", "0")
        self.end_headers()

    def log_message(self, *_):
        pass


@pytest.fixture
def site():
    server = ThreadingHTTPServer(("127.0.0.1", 0), Site)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    yield f"http://127.0.0.1:{server.server_port}"
    server.shutdown()
    thread.join()
    server.server_close()


def web(*urls, allow=True):
    return WebSource(kind="web", urls=urls, allow_private_addresses=allow)


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/", ""),
        ("/old", ""),
        ("/picky", ""),
        ("/gone", "the server says 404"),
        ("/round", "more than 5 redirects"),
        ("/away", "protocol"),
    ],
)
def test_a_page_is_asked_for_its_head(site, path, said):
    found = problem(web(site + path))
    assert said.lower() in found.lower()
    assert bool(found) == bool(said)


def test_every_address_of_a_source_is_asked(site):
    assert "404" in problem(web(site, f"{site}/gone"))
    feed = FeedSource(kind="feed", urls=(site, f"{site}/gone"), allow_private_addresses=True)
    assert "404" in problem(feed)


def test_a_private_address_is_refused_unless_the_source_allows_it(site):
    assert "is in a private network" in problem(web(site, allow=False))
    assert "is in a private network" in problem(git("http://localhost/a.git"))


@pytest.fixture
def rebound(monkeypatch):
    """Let a name lead to this machine, which counts as public, and elsewhere the second time."""
    real = pinned_request.socket.getaddrinfo
    answers = ["127.0.0.1"]

    def resolve(host, *arguments, **named):
        if host == "site.example":
            host = answers.pop() if answers else "127.66.66.66"
        return real(host, *arguments, **named)

    monkeypatch.setattr(pinned_request.socket, "getaddrinfo", resolve)
    monkeypatch.setattr(pinned_request, "is_public", lambda address: address == "127.0.0.1")


def test_what_is_connected_to_is_the_address_that_was_looked_at(site, rebound):
    named = site.replace("127.0.0.1", "site.example")
    assert problem(web(f"{named}/", allow=False)) == ""


def test_a_redirect_to_a_private_address_is_refused(site, rebound):
    named = site.replace("127.0.0.1", "site.example")
    assert "is in a private network" in problem(web(f"{named}/inside", allow=False))


def test_git_connects_to_the_address_that_was_looked_at(repository, tmp_path, rebound):
    """The name is known to nobody but this process: git could find it by no other way."""
    handler = type("Here", (Smart,), {"root": str(tmp_path)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        assert problem(git(f"http://site.example:{server.server_port}/repository")) == ""
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_no_proxy_of_the_environment_is_asked(site, monkeypatch):
    """It would connect to whatever it likes; collecting uses none either."""
    for name in ("http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
        monkeypatch.setenv(name.upper(), "http://127.0.0.1:9")
    monkeypatch.delenv("no_proxy", raising=False)
    monkeypatch.delenv("NO_PROXY", raising=False)
    assert problem(web(f"{site}/")) == ""
    assert "error: 500" in problem(git(f"{site}/a.git", allow_private_addresses=True))


def test_who_is_silent_is_given_up(site):
    import socket

    with socket.create_server(("127.0.0.1", 0)) as silent:
        url = f"http://127.0.0.1:{silent.getsockname()[1]}/"
        assert "timed out" in problem(web(url), timeout_s=0.3)
        asked = git(f"{url}a.git", allow_private_addresses=True)
        assert problem(asked, timeout_s=0.5) == "no answer within 0.5 s"


def test_lint_says_which_source_can_t_be_reached(ctl, tmp_path):
    file = tmp_path / "odd.yaml"
    file.write_text(
        "version: 1\ndomain: odd\ntitle: Odd\nlanguage: en\n"
        "data_sources:\n- {kind: folder, path: /nowhere, license: MIT}\n"
        "- {kind: python_stdlib}\nholdout: {salt: s}\n"
    )
    ran = ctl("domain", "lint", str(file))
    assert ran.exit_code != 0
    assert "source nowhere (folder, /nowhere): there is no such folder" in ran.out
    assert "sources that can't be reached: nowhere" in ran.err
    sources = json.loads(ctl("domain", "lint", str(file), "-o", "json").out)["sources"]
    assert [(each["name"], bool(each["problem"])) for each in sources] == [
        ("nowhere", True), ("python_stdlib", False),
    ]  # fmt: skip
    assert ctl("domain", "lint", str(file), "--offline").exit_code == 0
