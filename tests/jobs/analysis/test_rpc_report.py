"""The RPC report as text."""

from ioportal.jobs.analysis.rpc_report import RpcReport, RpcRow, Times


def test_the_text_has_counts_rates_and_times_by_kind():
    times = Times(13, 42.4, 4_983)
    report = RpcReport(
        title="Application 9205593",
        simulated=False,
        covered_s=2.0,
        nodes_seen=299,
        nodes_held=300,
        overall=RpcRow("all", 40, 20.0, times, times),
        rows=(
            RpcRow("LDLM_ENQUEUE", 39, 19.5, times, times),
            RpcRow("MDS_CLOSE", 1, 0.5, None, None),
        ),
    )

    assert (
        report.text()
        == """\
Application 9205593
      40 RPCs from 299 of 300 nodes
        ~20.00 per sec
          39 LDLM_ENQUEUE RPCs    ~19.50 per sec
                pmin 13us pavg 42us pmax 4983us
          1 MDS_CLOSE RPCs    ~0.50 per sec
                not timed
          Overall times
                pmin 13us pavg 42us pmax 4983us"""
    )


def test_the_rate_is_unknown_without_traced_time():
    report = RpcReport(
        title="Host n1",
        simulated=True,
        covered_s=0.0,
        nodes_seen=1,
        nodes_held=None,
        overall=RpcRow("all", 1, None, None, None),
        rows=(),
    )

    assert report.text().startswith("Host n1 (simulated)\n")
    assert "1 RPCs from 1 nodes\n        rate unknown: no traced time" in report.text()
