"""Migration of flags with their own triage to cases."""

from datetime import timedelta

import pytest
from django.db import connection
from django.db.migrations.executor import MigrationExecutor

from tests.logs import at

BEFORE, AFTER = [("flags", "0001_initial")], [("flags", "0002_cases")]


@pytest.fixture
def migrate(transactional_db):
    """Migrate the flags to a state; afterwards to the latest one."""

    def run(state):
        executor = MigrationExecutor(connection)
        return executor.migrate(state).apps

    yield run
    executor = MigrationExecutor(connection)
    executor.migrate(executor.loader.graph.leaf_nodes())


def test_flags_with_triage_become_cases(migrate):
    old = migrate(BEFORE)
    cluster = old.get_model("site", "Cluster").objects.create(
        name="anvil", time_zone="UTC", batch_system="slurm"
    )

    def flag(batch_id, state, *events, name="uq_sweep", kind="job", **facts):
        job = old.get_model("jobs", "Job").objects.create(
            cluster=cluster, batch_id=batch_id, submitted_at=at("11:00"), name=name
        )
        resolved = {"resolved_at": at("20:00")} if state == "resolved" else {}
        row = old.get_model("flags", "Flag").objects.create(
            rule="outlier",
            rule_version=1,
            subject_kind=kind,
            subject=str(job.pk) if kind == "job" else "alice",
            job=job if kind == "job" else None,
            owner="alice",
            state=state,
            severity=2,
            since=at("12:00"),
            until=at("13:00") + timedelta(hours=int(batch_id)),
            value=1,
            numbers={},
            thresholds={},
            scope="rule defaults",
            **resolved,
            **facts,
        )
        for event, by in (("opened", ""), *events):
            row.events.create(kind=event, by=by, text=event)
        return row.pk

    expired = flag("1", "resolved", ("resolved", ""), resolution="Expired.", expired=True)
    done = flag("2", "resolved", ("resolved", "sam"), resolution="Fixed.", resolved_by="sam")
    known = flag("3", "acknowledged", ("acknowledged", "sam"), name="uq_sweep_7")
    below = flag("4", "resolved", ("resolved", ""), name="plot", resolution="Below.")
    campaign = flag("5", "resolved", ("resolved", ""), kind="user", resolution="Below.")

    new = migrate(AFTER)

    flags = new.get_model("flags", "Flag").objects
    cases = {
        (case.subject_kind, case.application): case
        for case in new.get_model("flags", "Case").objects.all()
    }
    sweep = cases["job", "uq_sweep"]
    assert {row.pk for row in sweep.flags.all()} == {expired, done, known}
    assert (sweep.subject, sweep.state, sweep.until) == ("alice", "acknowledged", at("16:00"))
    assert [(event.kind, event.by) for event in sweep.events.order_by("pk")] == [
        ("opened", ""),
        ("resolved", "sam"),
        ("acknowledged", "sam"),
    ]
    assert [cases[key].state for key in (("job", "plot"), ("user", ""))] == ["resolved"] * 2
    assert set(flags.filter(ended_at=None).values_list("pk", flat=True)) == {expired, done, known}
    assert [row.ending for row in flags.filter(pk__in=[below, campaign])] == ["Below."] * 2
    kinds = new.get_model("flags", "FlagEvent").objects.values_list("flag", "kind")
    assert sorted(kinds) == sorted(
        [(pk, "opened") for pk in (expired, done, known, below, campaign)]
        + [(below, "ended"), (campaign, "ended")]
    )


def test_users_of_applications_may_contain_blanks(migrate):
    old = migrate([("flags", "0012_moved_cases")])
    times = {"since": at("12:00"), "until": at("13:00")}
    subject = {
        "subject_kind": "application",
        "subject": "alice smith relax",
        "owner": "alice smith",
    }
    old.get_model("flags", "Case").objects.create(
        rule="campaign", state="open", severity=2, changed_at=at("13:00"), **times, **subject
    )
    named = {"user": "alice smith", "project": "PHY12", "application": "alice smith relax"}
    old.get_model("flags", "BackTest").objects.create(
        rule="campaign",
        thresholds={},
        start=at("12:00"),
        end=at("13:00"),
        subjects=[
            {"subject": text if kind == "user" else f"{kind} {text}", "owner": "alice smith"}
            for kind, text in named.items()
        ],
    )

    new = migrate([("flags", "0012_application_texts")])

    assert new.get_model("flags", "Case").objects.get().subject == "alice smith:relax"
    assert [
        row["subject"] for row in new.get_model("flags", "BackTest").objects.get().subjects
    ] == [
        "user alice smith",
        "project PHY12",
        "application alice smith:relax",
    ]
