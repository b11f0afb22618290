"""Who may ask the endpoint at all.

Owns the rules against pages of other sites, against names that lead here by a trick (DNS
rebinding), and for the token. Doesn't know HTTP's server; secrets are compared by who has them.
"""

from collections.abc import Collection, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final

from jupiterd.address_ranges import is_loopback
from jupiterd.cluster.serving.request_error import NOT_ALLOWED, ErrorAnswer

ANY_ORIGIN: Final = "*"
LOCAL_NAME: Final = "localhost"
_BEARER: Final = "bearer "
_ALLOWED_METHODS: Final = "GET, POST, OPTIONS"
_PREFLIGHT_AGE_S: Final = 600


@dataclass(frozen=True)
class AccessRules:
    """Who may ask one endpoint."""

    host: str
    """Where it listens."""
    origins: Collection[str] = ()
    """Of other sites whose pages may ask; `*` means all."""

    def host_refusal(self, asked_host: str) -> ErrorAnswer | None:
        """Return why a request with that `Host` is refused.

        On the loopback interface only this machine's own names are meant: a page of another site
        whose name was made to lead here says that name.
        """
        if not is_loopback_host(self.host) or is_loopback_host(_without_port(asked_host)):
            return None
        return ErrorAnswer(
            HTTPStatus.FORBIDDEN,
            f"this endpoint is {LOCAL_NAME}'s, and the request is for another host",
            code="host_not_allowed",
        )

    def origin_refusal(self, origin: str | None, asked_host: str) -> ErrorAnswer | None:
        """Return why a request of a page of that `Origin` is refused; programs send none."""
        if origin is None or self.allows(origin) or _is_own(origin, asked_host):
            return None
        return ErrorAnswer(
            HTTPStatus.FORBIDDEN,
            "pages of other sites may not ask this endpoint; --cors ORIGIN allows one",
            code="origin_not_allowed",
        )

    def allows(self, origin: str) -> bool:
        """Say whether pages of that origin were allowed to ask."""
        return ANY_ORIGIN in self.origins or origin in self.origins

    def cors_headers(self, origin: str | None, asked_headers: str = "") -> Mapping[str, str]:
        """Return what tells a browser that a page of that origin may read the answer."""
        if origin is None or not self.allows(origin):
            return {}
        found = {"Access-Control-Allow-Origin": origin, "Vary": "Origin"}
        if asked_headers:
            found["Access-Control-Allow-Methods"] = _ALLOWED_METHODS
            found["Access-Control-Allow-Headers"] = asked_headers
            found["Access-Control-Max-Age"] = str(_PREFLIGHT_AGE_S)
        return found


def is_loopback_host(host: str) -> bool:
    """Say whether a host is this machine, and can be nothing else."""
    return host.lower() == LOCAL_NAME or is_loopback(host.strip("[]"))


def bearer_in(header: str) -> str:
    """Return the token of an `Authorization` header; empty where it has none."""
    is_bearer = header[: len(_BEARER)].lower() == _BEARER
    return header[len(_BEARER) :].strip() if is_bearer else ""


def token_refusal() -> ErrorAnswer:
    """Return the error of a request without the token."""
    return ErrorAnswer(
        HTTPStatus.UNAUTHORIZED,
        "the token is missing or wrong: send the header Authorization: Bearer TOKEN",
        kind=NOT_ALLOWED,
        code="invalid_api_key",
    )


def _without_port(host: str) -> str:
    if host.startswith("["):
        return host.partition("]")[0] + "]"
    return host.partition(":")[0]


def _is_own(origin: str, asked_host: str) -> bool:
    return origin in {f"http://{asked_host}", f"https://{asked_host}"}
