"""The one way in which an address of the web is written, so that equal ones are told as equal.

Owns that form. Fetches nothing, and doesn't know what lies where.
"""

from urllib.parse import urlsplit, urlunsplit


def normalised(url: str) -> str:
    """Return the one way in which an address is written here; empty where it is none of the web."""
    try:
        parts = urlsplit(url.strip())
        port = parts.port
    except ValueError:
        return ""
    if parts.scheme not in {"http", "https"} or not parts.hostname or parts.username is not None:
        return ""
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    if port is not None and port != {"http": 80, "https": 443}[parts.scheme]:
        host = f"{host}:{port}"
    return urlunsplit((parts.scheme, host, parts.path or "/", parts.query, ""))
