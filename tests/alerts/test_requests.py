"""What mails ask for: always a number that the recipient can reach."""

import pytest

from ioportal.alerts.asked_changes import Load, request

WAIT = {"measure": "Extra wait", "value": "757 s", "threshold": "10 s"}


GOAL = "the extra wait of other users is below {} in every five minutes"


@pytest.mark.parametrize(
    ("load", "expected"),
    [
        pytest.param(
            Load(**WAIT, is_of_one_job=True, share=0.99, rate=4_950, capacity=5_210, goal=GOAL),
            "Please stop or throttle this job. Before you run it again, reduce its metadata "
            "operations from 5,000 to below 1,000 a second. That is 20% of what the server can do "
            "(5,200 a second) and leaves the rest to others. Solved when the extra wait of other "
            "users is below 10 s in every five minutes.",
            id="one job alone does too much",
        ),
        pytest.param(
            Load(
                **WAIT,
                is_of_one_job=True,
                share=0.6,
                rate=37,
                sent_s=20,
                capacity=20,
                has_ended=True,
            ),
            "Before you run this job again, please reduce its metadata operations from 37 a second "
            "(in the 20 s in which they arrived) to below 4 a second. That is 20% of what the "
            "server can do (20 a second) and leaves the rest to others. Target: extra wait below "
            "10 s.",
            id="an equal storm next to others has the same limit",
        ),
        pytest.param(
            Load(**WAIT, is_of_one_job=True, share=0.99, rate=4_950),
            "Please stop or throttle this job. Before you run it again, make it slower: it did 99% "
            "of the server's work with 5,000 metadata operations a second. Below 20%, the rest is "
            "left to others. Target: extra wait below 10 s.",
            id="without a capacity, only what is known",
        ),
        pytest.param(
            Load(**WAIT, is_of_one_job=True, share=0.9, rate=900, capacity=5_000),
            "Please stop or throttle this job. Before you run it again, make it slower: it did 90% "
            "of the server's work with 900 metadata operations a second. Below 20%, the rest is "
            "left to others. Target: extra wait below 10 s.",
            id="costly operations at a low rate",
        ),
        pytest.param(
            Load(**WAIT, is_of_one_job=True, share=0.15, rate=1_450, capacity=5_000),
            "Please stop or throttle this job. Before you run it again, reduce its metadata "
            "operations from 1,500 to below 1,000 a second. That is 20% of what the server can do "
            "(5,000 a second) and leaves the rest to others. Target: extra wait below 10 s.",
            id="one of many that did more together than the server can do",
        ),
        pytest.param(
            Load(**WAIT, share=0.4, at_once=5, has_ended=True),
            "Before you run these jobs again, please make each of them slower: one of them alone "
            "did 40% of the server's work. Below 20%, the rest is left to others. Target: extra "
            "wait below 10 s.",
            id="each of several does too much, and its rate is unknown",
        ),
        pytest.param(
            Load(**WAIT, share=0.06, at_once=12),
            "Please run at most 3 of these jobs in parallel (12 ran in parallel). They "
            "then do at most 20% of the server's work and leave the rest to others. Target: "
            "extra wait below 10 s.",
            id="too many at once",
        ),
        pytest.param(
            Load(**WAIT, share=0.06, at_once=12, rate=300, capacity=5_210),
            "Please run at most 3 of these jobs in parallel (12 ran in parallel). They then do at "
            "most 20% of the server's work (together below 1,000 metadata operations a second) "
            "and leave the rest to others. Target: extra wait below 10 s.",
            id="too many at once, with the limit of all storms on this server",
        ),
        pytest.param(
            Load(**WAIT, share=0.06, at_once=12, rate=50, capacity=5_210),
            "Please run at most 3 of these jobs in parallel (12 ran in parallel). They then do at "
            "most 20% of the server's work and leave the rest to others. Target: extra wait "
            "below 10 s.",
            id="too many at once, whose costly operations were fewer than the limit",
        ),
        pytest.param(
            Load(**WAIT, share=0.15, at_once=2),
            "Please run at most one of these jobs at a time (2 ran in parallel). They "
            "then do at most 20% of the server's work and leave the rest to others. Target: "
            "extra wait below 10 s.",
            id="two at once",
        ),
        pytest.param(
            Load(**WAIT, share=0.06, at_once=3),
            "Please reduce extra wait in each job from 757 to below 10 s.",
            id="few enough at once",
        ),
        pytest.param(
            Load(
                **WAIT,
                is_of_one_job=True,
                share=0.12,
                rate=600,
                capacity=5_000,
                goal="others wait below {}",
            ),
            "Please spread the requests of this job over a longer time. It did 12% of the server's "
            "work while others waited, and other load the rest. Solved when others wait below "
            "10 s.",
            id="one of many that did more together, below the harmless rate",
        ),
        pytest.param(
            Load("Opens without a close", "9,000 operations", "1,000 operations", is_of_job=False),
            "Please reduce opens without a close from 9,000 to below 1,000 operations.",
            id="nobody waited, and all jobs together exceed the threshold",
        ),
        pytest.param(
            Load("Mean write size", "4 kB", "64 MB", is_of_one_job=True, is_ceiling=True),
            "Please increase mean write size in this job from 4 kB to above 64 MB.",
            id="low values are flagged",
        ),
    ],
)
def test_a_request_has_a_target(load, expected):
    assert request(load) == expected
