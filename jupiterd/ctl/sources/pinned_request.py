"""Short requests to other people's servers, sent only to addresses that were checked.

Owns a HEAD request and `git ls-remote`, made as the collectors make theirs: resolve the name once,
refuse private addresses unless the source allows them, and connect to one of the resolved
addresses, so that DNS can't answer differently in between. Uses no proxy and no credentials of this
machine, because collecting text uses none. Doesn't know sources.
"""

import os
import socket
import subprocess
from dataclasses import dataclass
from typing import TYPE_CHECKING
from urllib.parse import urljoin, urlsplit

from jupiterd.address_ranges import is_public

if TYPE_CHECKING:
    import httpx

MAX_REDIRECTS = 5
MAX_ADDRESSES = 4
USER_AGENT = "JupiterCollector/1"
_PORTS = {"http": 80, "https": 443}
_REFUSES_HEAD = (405, 501)
_GIT_SETTINGS = ("http.followRedirects=false", "http.proxy=", "credential.helper=")


class UnreachableError(Exception):
    """A source can't be reached; the text says why."""


@dataclass(frozen=True)
class PinnedRequest:
    """A request with its limits: the timeout, and whether private addresses are allowed."""

    timeout_s: float
    allow_private: bool

    def page(self, url: str) -> None:
        """Send a HEAD request for a page, or GET if HEAD isn't supported; follow redirects.

        Raises:
            UnreachableError: no answer, an HTTP error, a forbidden address, or too many redirects.
        """
        import httpx  # imported here because it loads slowly

        try:
            self._follow(url)
        except (httpx.HTTPError, httpx.InvalidURL, ValueError) as error:
            said = str(error) or type(error).__name__
            raise UnreachableError(f"{url}: {said}") from error

    def _follow(self, url: str) -> None:
        at = url
        for _ in range(MAX_REDIRECTS + 1):
            answer = self._sent("HEAD", at)
            if answer.status_code in _REFUSES_HEAD:
                answer = self._sent("GET", at)
            location = answer.headers.get("location")
            if answer.is_redirect and location:
                at = urljoin(at, location)
                continue
            if answer.is_error:
                raise UnreachableError(f"{url}: the server says {answer.status_code}")
            return
        raise UnreachableError(f"{url}: more than {MAX_REDIRECTS} redirects")

    def _sent(self, method: str, url: str) -> "httpx.Response":
        """Send the request to the first checked address that connects, with the host's own name."""
        import httpx

        original = httpx.Request(method, url, headers={"User-Agent": USER_AGENT})
        timeout = httpx.Timeout(self.timeout_s).as_dict()
        extensions = {"sni_hostname": original.url.host, "timeout": timeout}
        addresses = self._addresses(url)
        for number, address in enumerate(addresses, 1):
            at = original.url.copy_with(host=address)
            pinned = httpx.Request(method, at, headers=original.headers, extensions=extensions)
            try:
                with httpx.HTTPTransport(trust_env=False) as transport:
                    answer = transport.handle_request(pinned)
                    answer.close()  # its body isn't read
                    return answer
            except httpx.ConnectError:
                if number == len(addresses):
                    raise
        raise UnreachableError(f"nobody knows the host of {url}")

    def repository(self, url: str, revision: str) -> None:
        """Check that a repository has a branch or tag.

        Raises:
            UnreachableError: it has none, the repository can't be reached, or git isn't installed.
        """
        command = [*self._git(url), "ls-remote", "--exit-code", "--", url, revision]
        try:
            done = subprocess.run(
                command, timeout=self.timeout_s, env=_git_environment(url), check=False,
                capture_output=True, stdin=subprocess.DEVNULL,
            )  # fmt: skip
        except FileNotFoundError as error:
            raise UnreachableError("git isn't installed") from error
        except subprocess.TimeoutExpired as error:
            raise UnreachableError(f"no answer within {self.timeout_s:g} s") from error
        if done.returncode == 2:  # git's status with --exit-code if nothing matches
            raise UnreachableError(f"it has no branch or tag {revision}")
        if done.returncode:
            last = done.stderr.decode(errors="replace").strip().splitlines()[-1:]
            raise UnreachableError(f"git says: {''.join(last) or 'nothing'}")

    def _git(self, url: str) -> list[str]:
        settings = [*_GIT_SETTINGS]
        if urlsplit(url).scheme != "file":
            host, port = _host_and_port(url)
            settings.append(f"http.curloptResolve={host}:{port}:{','.join(self._addresses(url))}")
        return ["git", *(word for one in settings for word in ("-c", one))]

    def _addresses(self, url: str) -> list[str]:
        """Return the addresses of a URL's host, best first: one to MAX_ADDRESSES of them."""
        host, port = _host_and_port(url)
        try:
            found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
        except (OSError, UnicodeError) as error:
            raise UnreachableError(f"nobody knows the host {host}") from error
        addresses = list(dict.fromkeys(str(entry[4][0]) for entry in found))
        if not self.allow_private and not all(map(is_public, addresses)):
            raise UnreachableError(
                f"{host} is in a private network; allow_private_addresses: true allows that"
            )
        return addresses[:MAX_ADDRESSES]


def _host_and_port(url: str) -> tuple[str, int]:
    parts = urlsplit(url)
    if parts.scheme not in _PORTS:
        raise UnreachableError(f"{url}: a protocol other than http and https")
    return parts.hostname or "", parts.port or _PORTS[parts.scheme]


def _git_environment(url: str) -> dict[str, str]:
    """Return git's environment, without this user's configuration and credentials."""
    return {
        "PATH": os.environ.get("PATH", os.defpath),
        "HOME": os.devnull,
        "LC_ALL": "C",
        "GIT_CONFIG_NOSYSTEM": "1",
        "GIT_CONFIG_GLOBAL": os.devnull,
        "GIT_TERMINAL_PROMPT": "0",
        "GIT_ASKPASS": "true",
        "GIT_ALLOW_PROTOCOL": urlsplit(url).scheme,
    }
