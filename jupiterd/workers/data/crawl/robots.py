"""What the robots.txt of each host asks for, by the rules of RFC 9309.

Owns fetching and remembering it. Doesn't know pages.
"""

from urllib.parse import urlsplit

from protego import Protego

from jupiterd.workers.data.crawl.fetcher import USER_AGENT, Fetcher, FetchResponse, normalised
from jupiterd.workers.data.skips import SkipReason, UnreadableError

MAX_BYTES = 512 * 1024
"""What lies behind is left unread, as the RFC allows."""

MAX_REDIRECTS = 5
MAX_DELAY_S = 300.0
"""A host that asks for more between two requests is asked for nothing."""


class Robots:
    """The rules of every host that was met."""

    def __init__(self, fetcher: Fetcher) -> None:
        self._fetcher = fetcher
        self._rules: dict[str, Protego | SkipReason] = {}

    def check(self, url: str) -> float:
        """Return the pause that the host asks for between two requests, in seconds.

        Raises:
            UnreadableError: the page mustn't be fetched, or the rules can't be had.
        """
        rules = self._of(url)
        if isinstance(rules, SkipReason):
            raise UnreadableError(rules)
        delay_s = float(rules.crawl_delay(USER_AGENT) or 0.0)
        if delay_s > MAX_DELAY_S or not rules.can_fetch(url, USER_AGENT):
            raise UnreadableError(SkipReason.ROBOTS)
        return delay_s

    def _of(self, url: str) -> Protego | SkipReason:
        parts = urlsplit(url)
        origin = f"{parts.scheme}://{parts.netloc}"
        if origin not in self._rules:
            self._rules[origin] = self._fetched(f"{origin}/robots.txt")
        return self._rules[origin]

    def _fetched(self, url: str) -> Protego | SkipReason:
        try:
            answer = self._followed(url)
        except UnreadableError as error:
            # No rules can be had: the RFC says that everything is forbidden then.
            return error.reason
        if answer.status >= 500:
            return SkipReason.UNREACHABLE
        text = answer.body[:MAX_BYTES].decode("utf-8", "replace")
        return Protego.parse(text if answer.status == 200 else "")

    def _followed(self, url: str) -> FetchResponse:
        answer = self._fetcher.get(url)
        for _ in range(MAX_REDIRECTS):
            if not answer.is_redirect or not normalised(answer.location):
                break
            answer = self._fetcher.get(normalised(answer.location))
        return answer
