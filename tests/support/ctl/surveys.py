"""Looks at sources as they come from the process that reads them, for tests that read none."""

from jupiterd.cycle.domain.survey import SourceSurvey, Survey
from jupiterd.cycle.holdout.verdict_check import Found

ENOUGH = Survey(
    sources=(
        SourceSurvey(
            "notes", "folder", found=40_000, read=400, kept=380, documents=38_000,
            bytes=190_000_000,
            dropped={"too-short": 15, "stub": 5}, kinds={"documentation": 300, "prose": 80},
        ),
    ),
    found=Found(38_000, 190_000_000, 769, 80, 62.0, 192, 1_345),
    reading_s=1.5,
    judging_s=0.5,
)  # fmt: skip

TWELVE = Survey(
    sources=(
        SourceSurvey("notes", "folder", found=12, read=12, kept=12, documents=12, bytes=60_000),
    ),
    found=Found(12, 60_000, 3, 3, 3.0, 2, 5),
    reading_s=1.0,
)

FAR = Survey(
    sources=(
        *TWELVE.sources,
        SourceSurvey("docs.example.org", "web", why_not="not counted before collection"),
    ),
    found=TWELVE.found,
    reading_s=1.0,
)
