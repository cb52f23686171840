import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_initial"),
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
                            ("project", "project"),
                            ("application", "application"),
                            ("campaign", "campaign"),
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
                            ("answered", "answered"),
                            ("followed up", "followed up"),
                            ("resolved", "resolved"),
                            ("moved", "moved"),
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
                        to="findings.case",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Flag",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rule", models.CharField(max_length=64)),
                ("rule_version", models.PositiveSmallIntegerField()),
                (
                    "subject_kind",
                    models.CharField(
                        choices=[
                            ("job", "job"),
                            ("user", "user"),
                            ("project", "project"),
                            ("application", "application"),
                            ("campaign", "campaign"),
                            ("host", "host"),
                            ("filesystem", "filesystem"),
                        ],
                        max_length=16,
                    ),
                ),
                ("subject", models.CharField(max_length=128)),
                ("owner", models.CharField(blank=True, max_length=64)),
                (
                    "severity",
                    models.PositiveSmallIntegerField(
                        choices=[(1, "notice"), (2, "warning"), (3, "abuse")]
                    ),
                ),
                ("since", models.DateTimeField()),
                ("until", models.DateTimeField()),
                ("value", models.FloatField()),
                ("numbers", models.JSONField()),
                ("thresholds", models.JSONField()),
                ("scope", models.CharField(max_length=200)),
                ("advice", models.TextField()),
                ("suppression_reasons", models.JSONField(default=list)),
                ("opened_at", models.DateTimeField(auto_now_add=True)),
                ("changed_at", models.DateTimeField(auto_now=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("ending", models.CharField(blank=True, max_length=200)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="flags",
                        to="findings.case",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="site.cluster",
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
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="flags",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "ordering": ["-severity", "-until", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="FlagEvent",
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
                            ("grew", "grew"),
                            ("escalated", "escalated"),
                            ("ended", "ended"),
                        ],
                        max_length=16,
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("text", models.TextField(blank=True)),
                ("value", models.FloatField(null=True)),
                (
                    "flag",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="findings.flag",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="JobEvidence",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="evidence",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("seen_until", models.DateTimeField()),
                ("startup_operations", models.FloatField(null=True)),
                ("startup_opens", models.FloatField(null=True)),
                ("lock_share", models.FloatField(null=True)),
                ("lock_ratio", models.FloatField(null=True)),
                ("impact_s", models.FloatField(null=True)),
                ("impact_share", models.FloatField(null=True)),
                ("impact_times", models.FloatField(null=True)),
                ("impact_is_estimated", models.BooleanField(null=True)),
                ("peak_operations", models.FloatField(null=True)),
                ("peak_operations_at", models.DateTimeField(null=True)),
                ("sustained_operations", models.FloatField(null=True)),
                ("sustained_operations_at", models.DateTimeField(null=True)),
                ("peak_stats", models.FloatField(null=True)),
                ("peak_stats_at", models.DateTimeField(null=True)),
                ("peak_locks_s", models.FloatField(null=True)),
                ("peak_locks_s_at", models.DateTimeField(null=True)),
                ("peak_impact_s", models.FloatField(null=True)),
                ("peak_impact_s_at", models.DateTimeField(null=True)),
                (
                    "filesystem",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="site.filesystem",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Observation",
            fields=[
                (
                    "server",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="+",
                        serialize=False,
                        to="site.server",
                    ),
                ),
                ("until", models.DateTimeField()),
                ("is_estimated", models.BooleanField()),
                ("since", models.DateTimeField(null=True)),
                ("times", models.FloatField(null=True)),
                ("shares", models.JSONField(default=list)),
                ("is_known", models.BooleanField(default=True)),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("since", None), ("times", None)),
                            models.Q(("since__isnull", False), ("times__isnull", False)),
                            _connector="OR",
                        ),
                        name="observation_slow_has_times",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="ThresholdSet",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rule", models.CharField(max_length=64)),
                ("queue", models.CharField(blank=True, max_length=128)),
                ("thresholds", models.JSONField(blank=True, default=dict)),
                ("advice", models.TextField(blank=True, max_length=2000)),
                ("is_on", models.BooleanField(null=True)),
                ("reason", models.CharField(max_length=200)),
                ("set_by", models.CharField(editable=False, max_length=150)),
                ("set_at", models.DateTimeField(auto_now_add=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.cluster",
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.filesystem",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="BackTest",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rule", models.CharField(max_length=64)),
                ("thresholds", models.JSONField()),
                ("queue", models.CharField(blank=True, max_length=128)),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("requested_by", models.CharField(max_length=150)),
                ("requested_at", models.DateTimeField(auto_now_add=True)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("waiting", "waiting"),
                            ("running", "running"),
                            ("done", "done"),
                            ("failed", "failed"),
                            ("stopped", "stopped"),
                        ],
                        default="waiting",
                        max_length=8,
                    ),
                ),
                ("done_share", models.FloatField(default=0)),
                ("evaluated", models.BigIntegerField(default=0)),
                ("took_s", models.FloatField(null=True)),
                ("subjects", models.JSONField(default=list)),
                ("counts", models.JSONField(default=dict)),
                ("current_thresholds", models.JSONField(default=dict)),
                ("error", models.CharField(blank=True, max_length=500)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.cluster",
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.filesystem",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [
                    models.Index(
                        condition=models.Q(("state__in", ["waiting", "running"])),
                        fields=["id"],
                        name="backtest_waiting",
                    )
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("end__gt", models.F("start"))),
                        name="backtest_ends_after_start",
                        violation_error_message="The end must be after the start.",
                    )
                ],
            },
        ),
        migrations.AddIndex(
            model_name="case",
            index=models.Index(fields=["state", "-severity", "-until", "-id"], name="case_inbox"),
        ),
        migrations.AddIndex(
            model_name="case",
            index=models.Index(fields=["rule", "-until"], name="case_rule_recent"),
        ),
        migrations.AddIndex(
            model_name="case",
            index=models.Index(fields=["owner", "-until"], name="case_owner_recent"),
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.UniqueConstraint(
                fields=("rule", "subject_kind", "subject", "application", "filesystem"),
                name="case_identity",
                nulls_distinct=False,
            ),
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__gte", models.F("since"))), name="case_spans"
            ),
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "resolved"), _negated=True),
                    models.Q(
                        models.Q(("resolution", ""), _negated=True), ("resolved_at__isnull", False)
                    ),
                    _connector="OR",
                ),
                name="case_resolved_has_reason",
            ),
        ),
        migrations.AddConstraint(
            model_name="case",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "muted"), _negated=True),
                    ("muted_until__isnull", False),
                    _connector="OR",
                ),
                name="case_muted_has_end",
            ),
        ),
        migrations.AddIndex(
            model_name="flag",
            index=models.Index(fields=["rule", "-until"], name="flag_rule_recent"),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.UniqueConstraint(
                condition=models.Q(
                    ("ended_at", None), models.Q(("subject_kind", "host"), _negated=True)
                ),
                fields=("rule", "subject_kind", "subject"),
                name="flag_one_current",
            ),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.UniqueConstraint(
                condition=models.Q(("ended_at", None), ("subject_kind", "host")),
                fields=("rule", "subject", "filesystem"),
                name="flag_one_current_of_host",
            ),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.CheckConstraint(
                condition=models.Q(("until__gte", models.F("since"))), name="flag_spans"
            ),
        ),
        migrations.AddConstraint(
            model_name="flag",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("ended_at", None), ("ending", "")),
                    models.Q(("ended_at__isnull", False), models.Q(("ending", ""), _negated=True)),
                    _connector="OR",
                ),
                name="flag_end_has_reason",
            ),
        ),
        migrations.AddIndex(
            model_name="thresholdset",
            index=models.Index(
                fields=["rule", "cluster", "filesystem", "queue", "-id"], name="thresholdset_scope"
            ),
        ),
        migrations.AddConstraint(
            model_name="thresholdset",
            constraint=models.CheckConstraint(
                condition=models.Q(("queue", ""), ("cluster__isnull", False), _connector="OR"),
                name="thresholdset_queue_of_cluster",
                violation_error_message="A queue needs a cluster. Choose its cluster too.",
            ),
        ),
    ]
