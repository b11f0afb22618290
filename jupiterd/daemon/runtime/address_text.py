"""An address as people write it: HOST, HOST:PORT, IPv6 or [IPv6]:PORT.

Owns the form. Doesn't know whether anybody answers there.
"""

import ipaddress
import re

from jupiterd.ports import Address

DEFAULT_PORT = 47470

HOST_NAME = re.compile(r"[\w.-]+")


def parse_address(text: str) -> Address:
    """Read HOST, HOST:PORT, IPv6 or [IPv6]:PORT; raises ValueError where it is none of them."""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        port = rest.removeprefix(":")
    elif text.count(":") > 1:
        host, port = text, ""
    else:
        host, _, port = text.partition(":")
    is_bad_name = ":" not in host and not HOST_NAME.fullmatch(host)
    if (
        is_bad_name
        or _is_bad_ipv6(host)
        or (port and not (port.isdigit() and 0 < int(port) < 65536))
    ):
        raise ValueError(f"{text!r} is not HOST, HOST:PORT or [IPv6]:PORT")
    return Address(_in_short(host), int(port) if port else DEFAULT_PORT)


def _is_bad_ipv6(host: str) -> bool:
    try:
        return ":" in host and not ipaddress.IPv6Address(host)
    except ValueError:
        return True


def _in_short(host: str) -> str:
    """Return an IPv6 address in the one form that all others have too."""
    return str(ipaddress.IPv6Address(host)) if ":" in host else host
