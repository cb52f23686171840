"""Jobs of the simulated story, and the dates of its year."""

from datetime import datetime, timedelta
from zoneinfo import ZoneInfo

from ioportal.demo import centre, mailbox
from ioportal.jobs.models import Job, JobStatistics
from ioportal.site.models import Cluster

ZONE = ZoneInfo("America/New_York")
DATES = '{"ends": "2017-10-30", "until": "2017-10-31T00:00:00+00:00"}'


def date_the_story(folder, monkeypatch):
    """Use the dates of the reports, and an empty mailbox."""
    monkeypatch.setattr(centre, "YEAR", folder)
    monkeypatch.setattr(mailbox, "FOLDER", folder / "mailbox")
    (folder / "dates.json").write_text(DATES)


def pilots(cluster: Cluster, first: str, count: int, opens: int) -> list[Job]:
    """Create jobs of the campaign of 8 minutes each, one after another."""
    begin = datetime.fromisoformat(first).replace(tzinfo=ZONE)
    starts = [begin + number * timedelta(minutes=8) for number in range(count)]
    jobs = Job.objects.bulk_create(
        Job(
            cluster=cluster,
            batch_id=f"{first}-{number}",
            owner="hepprod",
            name="atlas_pilot",
            project="HEP110",
            node_count=2,
            submitted_at=start,
            started_at=start,
            ended_at=start + timedelta(minutes=8),
        )
        for number, start in enumerate(starts)
    )
    JobStatistics.objects.bulk_create(
        JobStatistics(
            job=job,
            computed_at=job.ended_at,
            opens=opens,
            metadata_operations=2 * opens,
            covered_share=1,
            quality="good",
        )
        for job in jobs
    )
    return jobs
