"""Licences of collected text: how they are written, and which may be collected.

Owns that decision. Doesn't know sources, or how a text's licence was found out.
"""

from typing import Annotated, Literal

from pydantic import Field

from jupiterd.cycle.base.strict_model import StrictModel

PYTHON_LICENSE = "PSF-2.0"
"""The licence of CPython and its standard library."""

UNKNOWN_LICENSE = "unknown"

PRIVATE_LICENSE = "private"
"""Of what people wrote themselves, or have for their own use: nobody was given a licence."""

LICENSE_PATTERN = r"^[A-Za-z0-9.+-]{1,64}$"

LicenseId = Annotated[
    str,
    Field(
        pattern=LICENSE_PATTERN,
        json_schema_extra={"expected": "an SPDX licence id such as MIT, private or unknown"},
    ),
]

Consent = Literal["deny", "warn", "allow"]
"""`warn` collects the text and counts it among `unknown_license`."""

_WEB = ("https://", "http://")


class LicensePolicy(StrictModel):
    """Which licences may be collected."""

    allow: Annotated[tuple[LicenseId, ...], Field(strict=False, max_length=64)] = ()
    """SPDX ids that may be collected; empty: any that is stated."""
    unknown: Consent = "deny"
    """What to do with files, code and rows of tables whose licence nobody stated; once trained on,
    they can't be taken back."""
    unknown_web: Consent = "warn"
    """The same for pages and feeds of the web, which seldom state one."""

    def permits(self, license_id: str, source_uri: str = "") -> bool:
        """Say whether text under this licence, from there, may be collected."""
        if license_id == UNKNOWN_LICENSE:
            return self.of_unknown(source_uri) != "deny"
        return not self.allow or license_id in self.allow

    def of_unknown(self, source_uri: str) -> Consent:
        """Return what to do with a text from there whose licence nobody stated."""
        return self.unknown_web if source_uri.startswith(_WEB) else self.unknown
