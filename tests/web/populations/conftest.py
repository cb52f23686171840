"""Jobs of a week, and jobs of other users."""

import pytest

OPENS = [0, 7, 1_368, 2_000, 2_499, 2_500, 146_459, 1_260_185]


@pytest.fixture
def week(new_job):
    """Jobs with known opens, and one without."""
    for number, opens in enumerate(OPENS):
        new_job(
            {
                "node_count": number + 1,
                "duration_s": 1_932.5 + number,
                "opens": opens,
                "read_bytes": 10**9 * number,
                "read_bytes_per_node": 370_000.0,
            },
            node_count=number + 1,
        )
    new_job({})


@pytest.fixture
def crowd(new_job):
    """Forty jobs of users without a common project with alice."""
    for number in range(40):
        new_job(
            {"opens": 10_000 + number, "read_bytes": 5 * 10**9 if number else 9 * 10**15},
            owner=f"user{number}",
            project="BIO3",
        )
