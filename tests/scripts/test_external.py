"""Addresses in the environment replace the checkout's own servers."""

import pytest

from scripts.checkout import Problem
from scripts.services import external

OURS = ["postgresql://ours", "redis+socket:///ours"]


@pytest.fixture
def environment(monkeypatch):
    def set_both(database, broker):
        monkeypatch.setenv("DATABASE_URL", database)
        monkeypatch.setenv("IOPORTAL_BROKER_URL", broker)

    return set_both


def test_external_addresses_are_used(environment):
    environment("postgresql://db.example.org/ioportal", "redis://mq.example.org")

    assert external.provider(OURS).addresses() == {
        "DATABASE_URL": "postgresql://db.example.org/ioportal",
        "IOPORTAL_BROKER_URL": "redis://mq.example.org",
    }


@pytest.mark.parametrize("addresses", [("", ""), OURS, (OURS[0], "")])
def test_missing_or_own_addresses_are_ignored(environment, addresses):
    environment(*addresses)

    assert external.provider(OURS) is None


def test_one_address_of_two_is_refused(environment):
    environment("postgresql://db.example.org/ioportal", "")

    with pytest.raises(Problem, match="both, or neither"):
        external.provider(OURS)


def test_a_database_that_does_not_answer_is_named(environment):
    environment("postgresql://nobody@127.0.0.1:1/none", "redis://127.0.0.1:1")

    with pytest.raises(Problem, match=r"DATABASE_URL cannot be used: .*refused"):
        external.provider(OURS).start()


def test_a_broker_that_does_not_answer_is_named():
    with pytest.raises(Problem, match=r"IOPORTAL_BROKER_URL cannot be used: .*refused"):
        external.check_broker("redis://127.0.0.1:1")
