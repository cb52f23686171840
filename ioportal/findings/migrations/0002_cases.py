"""Cases: a case for each group of flags, which takes over their triage."""

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

# The group of a flag `f` of a job `j`, as `ioportal.findings.cases` defines it.
_GROUPS = """
CREATE TEMPORARY TABLE flag_groups ON COMMIT DROP AS
SELECT f.id AS flag_id, f.rule, f.subject_kind,
    CASE WHEN f.subject_kind = 'job' THEN f.owner ELSE f.subject END AS subject,
    CASE WHEN f.subject_kind = 'job' THEN regexp_replace(
        regexp_replace(coalesce(j.name, ''), '[0-9]+', '*', 'g'), '[^[:alpha:]]+$', ''
    ) ELSE '' END AS application,
    f.filesystem_id
FROM flags_flag f LEFT JOIN jobs_job j ON j.id = f.job_id
"""
# The flag that most needs attention determines the state of the case.
_CASES = """
INSERT INTO flags_case (
    rule, subject_kind, subject, application, filesystem_id, owner, state, severity, since, until,
    opened_at, changed_at, resolved_at, resolved_until, resolution, resolved_by, muted_until,
    assignee_id
)
SELECT DISTINCT ON (rule, subject_kind, subject, application, filesystem_id)
    rule, subject_kind, subject, application, filesystem_id, owner, state,
    max(severity) OVER same, min(since) OVER same, max(until) OVER same,
    min(opened_at) OVER same, max(changed_at) OVER same, resolved_at,
    CASE WHEN state = 'resolved' AND (expired OR resolved_by <> '') THEN max(until) OVER same END,
    resolution, resolved_by, muted_until, assignee_id
FROM (
    SELECT g.*, f.owner, f.state, f.severity, f.since, f.until, f.opened_at, f.changed_at,
        f.resolved_at, f.expired, f.resolution, f.resolved_by, f.muted_until, f.assignee_id,
        array_position(
            ARRAY['open', 'acknowledged', 'muted', 'resolved', 'suppressed']::text[], f.state::text
        ) AS rank
    FROM flag_groups g JOIN flags_flag f ON f.id = g.flag_id
) grouped
WINDOW same AS (PARTITION BY rule, subject_kind, subject, application, filesystem_id)
ORDER BY rule, subject_kind, subject, application, filesystem_id, rank, until DESC, flag_id DESC
"""
_FLAGS = """
UPDATE flags_flag f SET case_id = c.id
FROM flag_groups g JOIN flags_case c ON (
    c.rule = g.rule AND c.subject_kind = g.subject_kind AND c.subject = g.subject
    AND c.application = g.application AND c.filesystem_id IS NOT DISTINCT FROM g.filesystem_id
)
WHERE g.flag_id = f.id
"""
_FIRST_EVENTS = """
INSERT INTO flags_caseevent (case_id, kind, at, by, text)
SELECT id, CASE state WHEN 'suppressed' THEN 'suppressed' ELSE 'opened' END, opened_at, '', ''
FROM flags_case
"""
_TRIAGE_EVENTS = """
INSERT INTO flags_caseevent (case_id, kind, at, by, text)
SELECT f.case_id, e.kind, e.at, e.by, e.text
FROM flags_flagevent e JOIN flags_flag f ON f.id = e.flag_id
WHERE e.by <> '' ORDER BY e.id
"""
_RESOLUTIONS = """
INSERT INTO flags_caseevent (case_id, kind, at, by, text)
SELECT id, 'resolved', resolved_at, '', resolution FROM flags_case
WHERE state = 'resolved' AND resolved_by = ''
"""
# A finding on a job applies until it is below the thresholds; a job has one of each rule.
_ENDS = """
UPDATE flags_flag f SET
    ended_at = coalesce(f.resolved_at, f.changed_at),
    ending = CASE
        WHEN f.resolution = '' THEN 'Replaced by a later finding.'
        WHEN f.resolved_by = '' THEN left(f.resolution, 200)
        ELSE 'The case was resolved.'
    END
WHERE f.state = 'resolved' AND (
    f.subject_kind <> 'job' OR (f.resolved_by = '' AND NOT f.expired)
) OR f.subject_kind = 'job' AND EXISTS (
    SELECT 1 FROM flags_flag later
    WHERE later.rule = f.rule AND later.subject_kind = 'job' AND later.subject = f.subject
        AND later.id > f.id
)
"""
_REMAINING_EVENTS = """
DELETE FROM flags_flagevent WHERE kind IN ('acknowledged', 'muted', 'reopened', 'assigned', 'commented');
DELETE FROM flags_flagevent e USING flags_flag f
WHERE f.id = e.flag_id AND e.kind = 'resolved' AND f.ended_at IS NULL;
UPDATE flags_flagevent e SET kind = 'ended', text = f.ending FROM flags_flag f
WHERE f.id = e.flag_id AND e.kind = 'resolved';
"""
_CHECKS = "SET CONSTRAINTS ALL IMMEDIATE"  # pending checks would prevent changes of the table


class Migration(migrations.Migration):
    dependencies = [
        ("flags", "0001_initial"),
        ("site", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Case",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rule", models.CharField(max_length=64)),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("job", "job"),
                            ("user", "user"),
                            ("host", "host"),
                            ("filesystem", "filesystem"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject", models.CharField(blank=True, max_length=128)),
                ("application", models.CharField(blank=True, max_length=255)),
                ("owner", models.CharField(blank=True, max_length=64)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("open", "open"),
                            ("acknowledged", "acknowledged"),
                            ("muted", "muted"),
                            ("resolved", "resolved"),
                            ("suppressed", "suppressed"),
                        ],
                        max_length=16,
                    ),
                ),
                (
                    "severity",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "notice"), (2, "warning"), (3, "abuse")]
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("opened_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField()),
                ("resolved_at", models.DateTimeField(null=True)),
                ("resolved_until", models.DateTimeField(null=True)),
                ("resolution", models.CharField(blank=True, max_length=500)),
                ("resolved_by", models.CharField(blank=True, max_length=150)),
                ("muted_until", models.DateTimeField(null=True)),
                (
                    "assignee",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="cases",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="site.filesystem",
                    ),
                ),
            ],
            options={
                "ordering": ["-severity", "-until", "-pk"],
                "constraints": [
                    models.UniqueConstraint(
                        fields=("rule", "subject_kind", "subject", "application", "filesystem"),
                        name="case_identity",
                        nulls_distinct=False,
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("until__gte", models.F("since"))), name="case_spans"
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "resolved"), _negated=True),
                            models.Q(
                                models.Q(("resolution", ""), _negated=True),
                                ("resolved_at__isnull", False),
                            ),
                            _connector="OR",
                        ),
                        name="case_resolved_has_reason",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("state", "muted"), _negated=True),
                            ("muted_until__isnull", False),
                            _connector="OR",
                        ),
                        name="case_muted_has_end",
                    ),
                ],
                "indexes": [
                    models.Index(fields=["state", "-severity", "-until", "-id"], name="case_inbox"),
                    models.Index(fields=["rule", "-until"], name="case_rule_recent"),
                    models.Index(fields=["owner", "-until"], name="case_owner_recent"),
                ],
            },
        ),
        migrations.CreateModel(
            name="CaseEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("opened", "opened"),
                            ("suppressed", "suppressed"),
                            ("escalated", "escalated"),
                            ("acknowledged", "acknowledged"),
                            ("muted", "muted"),
                            ("reopened", "reopened"),
                            ("assigned", "assigned"),
                            ("commented", "commented"),
                            ("resolved", "resolved"),
                        ],
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("by", models.CharField(blank=True, max_length=150)),
                ("text", models.TextField(blank=True, max_length=2000)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="flags.case",
                    ),
                ),
            ],
            options={"ordering": ["pk"]},
        ),
        migrations.AddField(
            "flag",
            "case",
            models.ForeignKey(
                null=True,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="flags",
                to="flags.case",
            ),
        ),
        migrations.AddField("flag", "ended_at", models.DateTimeField(null=True)),
        migrations.AddField(
            "flag",
            "ending",
            models.CharField(blank=True, default="", max_length=200),
            preserve_default=False,
        ),
        *(
            migrations.RunSQL(statement, migrations.RunSQL.noop)
            for statement in (
                _GROUPS,
                _CASES,
                _FLAGS,
                _FIRST_EVENTS,
                _TRIAGE_EVENTS,
                _RESOLUTIONS,
                _ENDS,
                _REMAINING_EVENTS,
                _CHECKS,
            )
        ),
        migrations.AlterField(
            "flag",
            "case",
            models.ForeignKey(
                on_delete=django.db.models.deletion.CASCADE,
                related_name="flags",
                to="flags.case",
            ),
        ),
        migrations.RemoveConstraint("flag", "flag_one_unresolved"),
        migrations.RemoveConstraint("flag", "flag_one_unresolved_of_host"),
        migrations.RemoveConstraint("flag", "flag_resolved_has_reason"),
        migrations.RemoveConstraint("flag", "flag_muted_has_end"),
        migrations.RemoveIndex("flag", "flag_inbox"),
        migrations.RemoveIndex("flag", "flag_owner_recent"),
        *(
            migrations.RemoveField("flag", name)
            for name in (
                "state",
                "resolved_at",
                "resolution",
                "resolved_by",
                "expired",
                "muted_until",
                "assignee",
            )
        ),
        migrations.RemoveField("flagevent", "by"),
        migrations.AlterField("flagevent", "text", models.TextField(blank=True)),
        migrations.AlterField(
            "flagevent",
            "kind",
            models.CharField(
                choices=[
                    ("opened", "opened"),
                    ("suppressed", "suppressed"),
                    ("grew", "grew"),
                    ("escalated", "escalated"),
                    ("ended", "ended"),
                ],
                max_length=16,
            ),
        ),
        migrations.AddConstraint(
            "flag",
            models.UniqueConstraint(
                condition=models.Q(
                    ("ended_at", None), models.Q(("subject_kind", "host"), _negated=True)
                ),
                fields=("rule", "subject_kind", "subject"),
                name="flag_one_current",
            ),
        ),
        migrations.AddConstraint(
            "flag",
            models.UniqueConstraint(
                condition=models.Q(("ended_at", None), ("subject_kind", "host")),
                fields=("rule", "subject", "filesystem"),
                name="flag_one_current_of_host",
            ),
        ),
        migrations.AddConstraint(
            "flag",
            models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at", None), ("ending", "")),
                    models.Q(("ended_at__isnull", False), models.Q(("ending", ""), _negated=True)),
                    _connector="OR",
                ),
                name="flag_end_has_reason",
            ),
        ),
    ]
