"""What every part of a file that people write has in common.

Owns how strictly a part is read. Doesn't know any part.
"""

from pydantic import BaseModel, ConfigDict


class StrictModel(BaseModel):
    """A part of such a file: read once, never changed, no keys but its own."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)
