"""The sentences about the harm of a flag."""

from datetime import timedelta

import pytest

from ioportal.findings.flags.harm_texts import Harm
from ioportal.site.models import Server
from tests.logs import at

FIGURES = {"share": 0.84, "impact_s": 23_420, "outside_s": 0, "waited_s": 25_130, "total_s": 23_420}
DURING = (
    "84% of the work {} the metadata server mds1{}, 2017-07-05 12:02:03 to 12:02:41 UTC, was from "
    "job 77. "
)
QUEUE, SLOW = DURING.format("in a queue of", ""), DURING.format("while", " was slow")


@pytest.mark.parametrize(
    ("more", "expected"),
    [
        pytest.param(
            {"address": "/queue/", "users": 15},
            QUEUE + "Without it, the requests of 15 other users would have waited about 23,000 s "
            "(6 hours) less: this is their extra wait (11,000 s to 26,000 s: within a "
            "factor of 2, and at most all they waited).",
            id="a queue: at most what others waited",
        ),
        pytest.param(
            {"address": "/queue/"},
            QUEUE + "Without it, the requests of other users would have waited about 23,000 s "
            "(6 hours) less: this is their extra wait (11,000 s to 47,000 s: within a factor of "
            "2).",
            id="not what one user may have waited",
        ),
        pytest.param(
            {"address": "/queue/", "users": 15, "waited_s": 90_000, "request_wait_s": 3.14},
            QUEUE + "Without it, the requests of 15 other users would have waited about 23,000 s "
            "(6 hours) less: this is their extra wait (11,000 s to 47,000 s: within a factor of "
            "2). On average, a request of others waited 3.1 s longer.",
            id="what one request waited",
        ),
        pytest.param(
            {"address": "/queue/", "is_alone": True, "users": 15},
            QUEUE + "Other loads filled the server, too. Even without them, it would have made the "
            "requests of 15 other users wait about 23,000 s (6 hours) longer: this is their extra "
            "wait (11,000 s to 26,000 s: within a factor of 2, and at most all they waited).",
            id="one of two storms",
        ),
        pytest.param(
            {"address": "/queue/", "waited_s": 90_000, "outside_s": 340, "total_s": 61_000},
            QUEUE + "Without it, the requests of other users would have waited about 23,000 s "
            "(6 hours) less: this is their extra wait (11,000 s to 47,000 s: within a factor of "
            "2). Not counted, because no user waits for them: extra wait of pings, system daemons "
            "and requests without a job, 340 s (6 minutes). Extra wait in all slow intervals: "
            "about 61,000 s (17 hours).",
            id="pings wait too, and there are more queues",
        ),
        pytest.param(
            {"is_estimated": True, "waited_s": 0},
            SLOW + "Without it, the requests of other users would have waited about 23,000 s "
            "(6 hours) less: this is their extra wait (estimated, 5,800 s to 94,000 s: "
            "within a factor of 4).",
            id="an estimate",
        ),
    ],
)
def test_harm_has_a_queue_a_share_and_an_interval(more, expected):
    start = at("12:02:03")
    end = start + timedelta(seconds=38)
    harm = Harm(Server(name="mds1"), start, end, **(FIGURES | more))

    assert harm.in_words("job 77", "it") == expected
