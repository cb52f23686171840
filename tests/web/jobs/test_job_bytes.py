"""Timelines of bytes of jobs on filesystems whose OSTs are not registered, or not all read."""

from ioportal.jobs.models import Job
from tests.logs import Run, at, job_stats, pbs
from tests.web.reading import json_of, words_of


def test_bytes_come_from_osts_of_the_filesystems_of_the_job(site, logs, ingest, refresh, as_staff):
    """Of two filesystems of birch, pond has no OST, and one of lake's two is never read."""
    jobs = [("E", Run("1", nodes="b1")), ("E", Run("2", nodes="b2"))]
    ingest("pbs", logs("20170705", pbs(*jobs)), cluster="birch")
    for n, clock in enumerate(
        f"{minute // 60}:{minute % 60:02d}" for minute in range(710, 791, 10)
    ):
        ingest(
            "job_stats",
            logs(
                "read",
                job_stats("pond-MDT0000", {"1.sdb": {"open": 5 + n}}, snapshot=clock),
                job_stats("lake-MDT0000", {"2.sdb": {"open": 5 + n}}, snapshot=clock),
                job_stats("lake-OST0000", {"2.sdb": {"read_bytes": (n, 600 * n)}}, snapshot=clock),
            ),
            at=at(clock).isoformat(),
        )
    refresh()

    on_pond, on_lake = Job.objects.order_by("batch_id")
    address = "/jobs/{}/timelines/bytes/?format=json"
    unknown = json_of(as_staff.get(address.format(on_pond.pk)))
    assert on_pond.statistics.bytes_quality is None
    assert unknown["rows"] == []
    assert [gap["known"] for gap in unknown["not_observed"]] == ["nothing"]
    assert "Bytes are unknown: no OST" in words_of(as_staff.get(f"/jobs/{on_pond.pk}/"))

    half = json_of(as_staff.get(address.format(on_lake.pk)))
    assert on_lake.statistics.bytes_quality == "partial"
    assert {(row["observed_sources"], row["sources"]) for row in half["rows"]} == {(1, 2)}
    assert {row["read_bytes"] for row in half["rows"]} == {1.0}
    assert [gap["known"] for gap in half["not_observed"]] == ["part"]
