"""The load of a server from its traces."""

from datetime import timedelta

import pytest

from ioportal.load import capacity
from ioportal.load.capacity import Method
from ioportal.site.models import Server
from tests import storms
from tests.logs import GETATTR, at, rpc

READPAGE = 37


def test_work_without_a_baseline_is_not_larger_because_the_server_is_slow(
    site, logs, ingest, evaluate
):
    """Ten times as slow as usual, it serves two kinds of requests, each once a second."""
    trace = [
        rpc(at("12:00") + timedelta(seconds=second), "2@gni", opcode, us=(200_000, 200_000))
        for second in range(181)
        for opcode in (GETATTR, READPAGE)
    ]
    ingest("rpctrace", logs("t", *trace), server="mds1")
    storms.pin_baseline()
    evaluate()
    server = Server.objects.get(name="mds1")

    found = capacity.of_server(server.pk, Method.TRACES, at("12:00"), at("12:03"))

    assert found.hours["highest"].to_list() == pytest.approx([2 * 0.02], rel=0.1)
