"""What a broken invariant is told by."""


class Violation(AssertionError):  # noqa: N818 - of an invariant
    """An invariant doesn't hold."""
