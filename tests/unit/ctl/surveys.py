"""Looks at sources as they come from the process that reads them, for tests that read none."""

from jupiterd.cycle.data.clusters import DOCUMENT, Level
from jupiterd.cycle.data.survey import SourceSurvey, Survey

ENOUGH = Survey(
    sources=(
        SourceSurvey(
            "notes", "folder", found=40_000, read=400, kept=380, documents=38_000,
            bytes=190_000_000,
            dropped={"too-short": 15, "stub": 5}, kinds={"documentation": 300, "prose": 80},
        ),
    ),
    documents=37_000,
    levels=(Level(0, 4_000, 3_000.0), Level(DOCUMENT, 37_000, 37_000.0)),
    reading_s=1.5,
    judging_s=0.5,
)  # fmt: skip

TWELVE = Survey(
    sources=(
        SourceSurvey("notes", "folder", found=12, read=12, kept=12, documents=12, bytes=60_000),
    ),
    documents=12,
    levels=(Level(0, 1, 1.0), Level(DOCUMENT, 12, 12.0)),
    reading_s=1.0,
)

FAR = Survey(
    sources=(
        *TWELVE.sources,
        SourceSurvey("docs.example.org", "web", why_not="not counted before collection"),
    ),
    documents=12,
    levels=TWELVE.levels,
    reading_s=1.0,
)
