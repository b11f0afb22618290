"""Collecting a git repository: one that the test makes, and what is planted in it."""

import os
import shutil
import subprocess
import threading
from base64 import b64encode
from dataclasses import replace
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

import pytest

from jupiterd.cycle.domain.data_sources import GitSource
from jupiterd.errors import EmptySourceError, SourceUnreachableError
from jupiterd.workers.data.collectors.git import GitRepository
from jupiterd.workers.data.crawl import allowed_addresses
from tests.support.workers.collecting import PARAMS, collect, samples_in, skipped, texts_in

WHO = {
    **os.environ,
    "GIT_AUTHOR_NAME": "a", "GIT_AUTHOR_EMAIL": "a@b", "GIT_COMMITTER_NAME": "a",
    "GIT_COMMITTER_EMAIL": "a@b", "GIT_CONFIG_GLOBAL": "/dev/null",
}  # fmt: skip


def git(folder, *arguments):
    done = subprocess.run(
        ["git", *arguments], cwd=folder, env=WHO, capture_output=True, text=True, check=True
    )
    return done.stdout.strip()


@pytest.fixture
def repository(tmp_path):
    folder = tmp_path / "project"
    folder.mkdir()
    git(folder, "init", "--quiet", "--initial-branch=main")
    commit(folder, {"README.md": "# Project", "src/a.py": "A = 1", "src/deep/b.py": "B = 2"})
    return folder


def commit(folder, files):
    for name, text in files.items():
        (folder / name).parent.mkdir(parents=True, exist_ok=True)
        (folder / name).write_bytes(text.encode() if isinstance(text, str) else text)
    git(folder, "add", "-A")
    git(folder, "commit", "--quiet", "-m", "change")
    return git(folder, "rev-parse", "HEAD")


def source(folder, **changes):
    return GitSource(kind="git", url=f"file://{folder}", license="MIT", **changes)


def gather(folder, output, before=None, **changes):
    return collect(GitRepository(source(folder, **changes)), output, before=before)


def names_in(output):
    return [uri.partition("#")[2] for uri in texts_in(output)]


@pytest.fixture
def calls(tmp_path, monkeypatch):
    """Write down each call of git; the real one answers."""
    real = shutil.which("git")
    folder = tmp_path / "bin"
    folder.mkdir()
    log = tmp_path / "calls"
    (folder / "git").write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec {real} "$@"\n')
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")

    def made():
        text = log.read_text() if log.exists() else ""
        log.write_text("")
        return [verb for verb in ("ls-remote", "fetch") for line in text.splitlines()
                if f" {verb} " in line]  # fmt: skip

    return made


def test_a_repository_leaves_out_what_it_excludes(repository, tmp_path):
    gather(repository, tmp_path / "out", glob="**/*.py", exclude=("**/deep/**",))
    assert names_in(tmp_path / "out") == ["src/a.py"]


def test_every_file_is_a_document_of_the_commit(repository, tmp_path):
    newest = git(repository, "rev-parse", "HEAD")
    gather(repository, tmp_path / "out")
    found = samples_in(tmp_path / "out")
    assert names_in(tmp_path / "out") == ["README.md", "src/a.py", "src/deep/b.py"]
    assert {sample.revision for sample in found} == {newest}
    assert {sample.cluster_id for sample in found} == {f"file://{repository}"}
    assert found[0].source_uri == f"git+file://{repository}#README.md"
    assert (found[0].license, found[0].collector) == ("MIT", "git@2")


def test_folders_may_be_clusters_and_a_glob_chooses_files(repository, tmp_path):
    gather(repository, tmp_path / "out", glob="**/*.py", cluster_depth=2)
    assert {sample.cluster_id.removeprefix(f"file://{repository}") for sample in
            samples_in(tmp_path / "out")} == {"/src", "/src/deep"}  # fmt: skip


@pytest.mark.parametrize("revision", ["old", "v1", "commit"])
def test_a_branch_a_tag_or_a_commit_is_what_it_says(repository, tmp_path, revision):
    first = git(repository, "rev-parse", "HEAD")
    git(repository, "branch", "old")
    git(repository, "tag", "-a", "v1", "-m", "one")
    commit(repository, {"new.md": "new"})
    gather(repository, tmp_path / "out", revision=first if revision == "commit" else revision)
    assert "new.md" not in names_in(tmp_path / "out")
    assert {sample.revision for sample in samples_in(tmp_path / "out")} == {first}


def test_without_a_new_commit_nothing_is_cloned_again(repository, tmp_path, calls):
    first = gather(repository, tmp_path / "one")
    assert calls() == ["ls-remote", "fetch"]
    second = gather(repository, tmp_path / "two", before=tmp_path / "one")
    assert calls() == ["ls-remote"]
    assert second == {**first, "used_bytes": 0}  # nothing is read
    assert samples_in(tmp_path / "two") == samples_in(tmp_path / "one")
    assert gather(repository, tmp_path / "three", before=tmp_path / "two") == second
    assert calls() == ["ls-remote"]


def test_a_pinned_commit_asks_nobody(repository, tmp_path, calls):
    pinned = git(repository, "rev-parse", "HEAD")
    gather(repository, tmp_path / "one", revision=pinned)
    calls()
    gather(repository, tmp_path / "two", before=tmp_path / "one", revision=pinned)
    assert calls() == []


def test_a_purged_repository_isn_t_cloned_and_purged_files_are_not_taken_over(
    repository, tmp_path, calls
):
    collector = GitRepository(source(repository))
    gather(repository, tmp_path / "one")
    params = replace(PARAMS, purged=(f"file://{repository}#src",))
    collect(collector, tmp_path / "two", params, before=tmp_path / "one")
    assert names_in(tmp_path / "two") == ["README.md"]
    calls()
    params = replace(PARAMS, purged=(f"file://{repository}",))
    counts = collect(collector, tmp_path / "three", params)
    assert (counts["documents"], counts[f"left_out:file://{repository}"]) == (0, 1)
    assert calls() == []


def test_a_new_commit_brings_what_changed(repository, tmp_path):
    first = git(repository, "rev-parse", "HEAD")
    gather(repository, tmp_path / "one")
    (repository / "README.md").unlink()
    newest = commit(repository, {"src/a.py": "A = 11", "src/c.py": "C = 3"})
    gather(repository, tmp_path / "two", before=tmp_path / "one")
    found = {s.source_uri.partition("#")[2]: s.revision for s in samples_in(tmp_path / "two")}
    assert found == {"src/a.py": newest, "src/c.py": newest, "src/deep/b.py": first}


def test_a_repository_that_has_gone_cannot_be_reached_whatever_was_had_before(repository, tmp_path):
    gather(repository, tmp_path / "one")
    repository.rename(tmp_path / "moved")
    for before in (None, tmp_path / "one"):
        with pytest.raises(SourceUnreachableError, match="can't be fetched: fatal:"):
            gather(repository, tmp_path / "two", before=before)


def test_a_branch_that_is_not_there_says_so(repository, tmp_path):
    with pytest.raises(EmptySourceError, match="no branch or tag nowhere"):
        gather(repository, tmp_path / "out", revision="nowhere")


def test_nothing_of_the_repository_is_run_or_followed(repository, tmp_path):
    mark = tmp_path / "was-run"
    hook = repository / ".git" / "hooks" / "post-checkout"
    hook.write_text(f"#!/bin/sh\ntouch {mark}\n")
    hook.chmod(0o755)
    (tmp_path / "secret.md").write_text("secret")
    (repository / "link.md").symlink_to(tmp_path / "secret.md")
    other = tmp_path / "other"
    shutil.copytree(repository, other)
    git(repository, "-c", "protocol.file.allow=always", "submodule", "add", "--quiet",
        f"file://{other}", "module")  # fmt: skip
    commit(
        repository,
        {
            ".gitattributes": "*.md filter=evil\n",
            "x.md": "as it is",
            "big.md": "version https://git-lfs.github.com/spec/v1\noid sha256:00\nsize 9\n",
            ".hidden.md": "hidden",
        },
    )
    gather(repository, tmp_path / "out")
    texts = {uri.partition("#")[2]: text for uri, text in texts_in(tmp_path / "out").items()}
    assert texts["x.md"] == "as it is"
    assert set(texts) == {"README.md", "src/a.py", "src/deep/b.py", "x.md"}
    assert list(skipped(tmp_path / "out").values()) == ["unknown_form"]
    assert not mark.exists()


def test_files_and_bytes_are_bounded(repository, tmp_path):
    commit(repository, {f"many/{number:04}.md": f"text {number}" for number in range(500)})
    commit(repository, {"big.md": "x" * 5000, "image.md": b"\x89PNG\0\0\0\rIHDR"})
    counts = gather(repository, tmp_path / "files", max_files=50)
    assert counts["documents"] == 49
    assert counts["skipped.too_many"] == 1
    counts = gather(repository, tmp_path / "bytes", max_document_bytes=1024)
    assert (counts["skipped.too_large"], counts["skipped.not_text"]) == (1, 1)
    commit(repository, {"noise": os.urandom(200_000)})
    with pytest.raises(SourceUnreachableError):
        gather(repository, tmp_path / "small", max_bytes=100_000)


def test_a_clone_that_takes_too_long_is_ended(repository, tmp_path, monkeypatch):
    folder = tmp_path / "slow"
    folder.mkdir()
    (folder / "git").write_text("#!/bin/sh\nexec sleep 60\n")
    (folder / "git").chmod(0o755)
    monkeypatch.setenv("PATH", f"{folder}:{os.environ['PATH']}")
    with pytest.raises(SourceUnreachableError, match="took longer than 1 s"):
        gather(repository, tmp_path / "out", timeout_s=1.0)


def test_a_repository_at_a_private_address_is_refused_unless_allowed(tmp_path):
    private = GitSource(kind="git", url="http://127.0.0.1:9/x.git", license="MIT")
    with pytest.raises(EmptySourceError, match="on this machine or its local network"):
        collect(GitRepository(private), tmp_path / "out")


class Smart(BaseHTTPRequestHandler):
    """Serves repositories as a forge does, by git's own program for that."""

    root = ""

    def do_GET(self):
        path, _, query = self.path.partition("?")
        body = self.rfile.read(int(self.headers.get("Content-Length", 0)))
        done = subprocess.run(
            ["git", "http-backend"],
            input=body,
            capture_output=True,
            check=True,
            env={
                **WHO,
                "GIT_PROJECT_ROOT": self.root,
                "GIT_HTTP_EXPORT_ALL": "1",
                "PATH_INFO": path,
                "QUERY_STRING": query,
                "REQUEST_METHOD": self.command,
                "CONTENT_TYPE": self.headers.get("Content-Type", ""),
                "GIT_PROTOCOL": self.headers.get("Git-Protocol", ""),
                "HTTP_CONTENT_ENCODING": self.headers.get("Content-Encoding", ""),
            },
        )
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        fields = dict(line.split(": ", 1) for line in head.decode().split("\r\n"))
        self.send_response(int(fields.pop("Status", "200").split()[0]))
        for name, value in fields.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    do_POST = do_GET  # noqa: N815 - the server asks for that name

    def log_message(self, *arguments):
        pass


def test_what_is_connected_to_over_http_is_the_address_that_was_looked_at(
    repository, tmp_path, monkeypatch
):
    """The name is known to nobody but this process: git could find it by no other way."""
    real = allowed_addresses.socket.getaddrinfo
    monkeypatch.setattr(
        allowed_addresses.socket,
        "getaddrinfo",
        lambda host, *rest, **named: real(
            "127.0.0.1" if host == "forge.example" else host, *rest, **named
        ),
    )
    handler = type("Here", (Smart,), {"root": str(tmp_path)})
    server = ThreadingHTTPServer(("127.0.0.1", 0), handler)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://forge.example:{server.server_port}/project"
    forge = GitSource(kind="git", url=url, license="MIT", allow_private_addresses=True)
    try:
        collect(GitRepository(forge), tmp_path / "out")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert names_in(tmp_path / "out") == ["README.md", "src/a.py", "src/deep/b.py"]


def test_a_forge_that_asks_for_a_password_is_shown_none_of_this_machines(tmp_path, monkeypatch):
    """Neither what a helper or .netrc holds, nor what a program would ask somebody for."""
    shown = []

    class Asks(BaseHTTPRequestHandler):
        def do_GET(self):
            shown.append(self.headers.get("Authorization", ""))
            self.send_response(401)
            self.send_header("WWW-Authenticate", 'Basic realm="forge"')
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, *arguments):
            pass

    home = tmp_path / "home"
    home.mkdir()
    (home / ".netrc").write_text("machine 127.0.0.1 login ada password mine\n")
    (home / ".gitconfig").write_text("[credential]\n\thelper = store\n")
    (home / "asks").write_text("#!/bin/sh\necho mine\n")
    (home / "asks").chmod(0o755)
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("GIT_ASKPASS", str(home / "asks"))
    server = ThreadingHTTPServer(("127.0.0.1", 0), Asks)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    url = f"http://127.0.0.1:{server.server_port}/project"
    (home / ".git-credentials").write_text(url.replace("//", "//ada:mine@") + "\n")
    forge = GitSource(kind="git", url=url, license="MIT", allow_private_addresses=True)
    try:
        with pytest.raises(SourceUnreachableError, match="can't be fetched"):
            collect(GitRepository(forge), tmp_path / "out")
    finally:
        server.shutdown()
        thread.join()
        server.server_close()
    assert shown
    assert set(shown) <= {"", f"Basic {b64encode(b':').decode()}"}, "an empty name and password"
