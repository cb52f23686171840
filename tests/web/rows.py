"""Rows of pages that no log file creates."""

from datetime import timedelta
from pathlib import Path
from uuid import UUID

from ioportal.alerts import answers
from ioportal.alerts.models import Notification
from ioportal.changes.models import Mitigation
from ioportal.experiments import uploads
from ioportal.experiments.experiments import named_experiment
from ioportal.experiments.models import Experiment, Upload
from ioportal.findings.cases import case_lifecycle
from ioportal.findings.models import BackTest, Flag, ThresholdSet
from ioportal.ingest.models import Stream
from ioportal.jobs.models import Job, Population, WorkloadJob
from ioportal.load.models import Incident
from ioportal.site.models import Server, Source
from tests.logs import DAY, at

FIXTURES = Path(__file__).parents[1] / "fixtures"
EXPERIMENT_FOLDERS = ("runs", "ior", "cmssw_log", "cmssw_fjr", "prmon", "pair_series", "strace")


def unsaved_job(start, **facts):
    """Return a job of alice that ran for an hour from `start` on; None: it waits.

    `facts` have at least its cluster and batch id.
    """
    return Job(
        **{
            "submitted_at": start or DAY,
            "started_at": start,
            "ended_at": start and start + timedelta(hours=1),
            "name": "relax",
            "owner": "alice",
            "project": "PHY12",
            "queue": "batch",
            "state": Job.State.COMPLETED,
            "node_count": 2,
            "precedence": "",
            **facts,
        }
    )


def flag_job(job, **facts):
    """Store a flag of a job and its case, without the job's data."""
    flag = Flag(
        **{
            "rule": "metadata-operations",
            "rule_version": 1,
            "subject_kind": "job",
            "subject": str(job.pk),
            "job": job,
            "owner": job.owner,
            "cluster": job.cluster,
            "severity": Flag.Severity.WARNING,
            "since": at("12:00"),
            "until": at("13:00"),
            "value": 3e6,
            "numbers": {"metadata_operations": 3e6},
            "thresholds": {"metadata_operations": 2e6},
            "scope": "rule defaults",
            "advice": "Keep software off Lustre.",
            **facts,
        }
    )
    if flag.subject_kind != "job":
        flag.job = None
    case_lifecycle.assign([flag], [flag.job.name if flag.job else ""])
    flag.save()
    case_lifecycle.update([flag], [])
    return flag


def put_inside(job, *numbers, **facts):
    """Put PanDA jobs of these numbers inside a batch job."""
    facts = {
        "task_id": 10_995_522,
        "reported_batch_id": job.batch_id,
        "batch_id": job.batch_id,
        "site": "ORNL_Titan_MCORE",
        "user": "Pilot One",
        "state": "finished",
        "created_at": at("11:55"),
        "started_at": at("12:05"),
        "ended_at": at("12:15"),
        "core_count": 16,
        "cpu_s": 4_800,
        **facts,
    }
    inside = WorkloadJob.objects.bulk_create(
        WorkloadJob(cluster=job.cluster, batch_job=job, panda_id=number, **facts)
        for number in numbers
    )
    links = WorkloadJob.jobs.through
    links.objects.bulk_create(links(workloadjob=each, job=job) for each in inside)


def experiment_of(owner):
    """Load our files of runs into an experiment of a user, in the project PHY12."""
    experiment = named_experiment("Tests", owner)
    Experiment.objects.filter(pk=experiment.pk).update(project="PHY12")
    for folder in EXPERIMENT_FOLDERS:
        for path in sorted((FIXTURES / folder).glob("[a-z]*.*")):
            upload = Upload(owner=owner, experiment=experiment, arm=path.stem, run=path.stem)
            [file] = uploads.declare(upload, [(path.name, path.stat().st_size)])
            uploads.receive(file, [path.read_bytes()])
            uploads.complete(upload)
            uploads.load_next(1)
    return experiment


def page_names(job, alice):
    """Create a row of each kind that has a page, about the job of `stories.heavy_job`.

    Returns their names and keys.
    """
    facts = {"start": at("12:00"), "end": at("13:00")}
    put_inside(job, 4242)
    Population.objects.create(slug="mine", name="Mine", query="user=alice", owner=alice)
    server = Server.objects.get(name="mds1")
    flag = flag_job(job)
    outlier = flag_job(
        job,
        rule="outlier",
        value=6,
        numbers={"z_score": 6.0, "metadata_operations_per_node": 1e6, "usual_operations": 100},
        thresholds={"z_score": 3.0},
    )
    thresholds = ThresholdSet.objects.create(
        rule=flag.rule, thresholds={"metadata_operations": 50_000}
    )
    test = BackTest.objects.create(rule=flag.rule, thresholds={}, requested_by="sam", **facts)
    mail = Notification.objects.create(
        recipient="alice", address="alice@example.org", state=Notification.State.SENT,
        subject="Your jobs", text="Hello Alice", html="<p>Hello Alice</p>", finished_at=at("14:00"),
    )  # fmt: skip
    mitigation = Mitigation.objects.create(title="Fix", kind="code", started_at=at("12:30"))
    stream = Stream.objects.create(
        source=Source.objects.create(name="streamed", format="rpctrace", server=server),
        stream=UUID(int=1), host="mds1.example.org", started_at=at("12:00"), latest_at=at("13:00"),
    )  # fmt: skip
    experiment = experiment_of(alice)
    attachment = experiment.runs.first().attachments.create(name="a", content=b"a", size_bytes=1)
    upload = experiment.uploads.first()
    mail.images.create(name="timeline-1", png=b"PNG")
    mail.cases.create(case_id=flag.case_id, value=flag.value, rule_version=1)
    return {
        "job": job.pk,
        "segment": job.records.get().segment_id,
        "incident": Incident.objects.create(title="Slow", server=server, **facts).pk,
        "case": flag.case_id,
        "flag": flag.pk,
        "outlier": outlier.pk,
        "rule": flag.rule,
        "thresholds": thresholds.pk,
        "test": test.pk,
        "mail": mail.pk,
        "answer": answers.key_of(mail),
        "mitigation": mitigation.pk,
        "experiment": experiment.slug,
        "key": experiment.share_key,
        "run": attachment.run_id,
        "attachment": attachment.pk,
        "upload": upload.pk,
        "upload_file": upload.files.first().pk,
        "stream": stream.pk,
    }
