import django.db.models.deletion
import django.db.models.functions.comparison
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="DismissedChange",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("scope", models.CharField(blank=True, max_length=2000)),
                ("day", models.DateField()),
                ("by", models.CharField(max_length=150)),
                ("at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("scope", "day"), name="dismissed_change")
                ],
            },
        ),
        migrations.CreateModel(
            name="Mitigation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=120)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("concurrency", "number of concurrent jobs"),
                            ("striping", "striping"),
                            ("software", "software location"),
                            ("environment", "environment clean-up"),
                            ("placement", "file placement or RAM disk"),
                            ("code", "code fix"),
                            ("scheduling", "scheduling"),
                            ("server", "server change"),
                            ("other", "other"),
                        ],
                        max_length=16,
                    ),
                ),
                ("made_by", models.CharField(blank=True, max_length=100, verbose_name="made by")),
                ("started_at", models.DateTimeField(verbose_name="start")),
                (
                    "completed_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="end of roll-out"),
                ),
                (
                    "reverted_at",
                    models.DateTimeField(blank=True, null=True, verbose_name="reverted"),
                ),
                ("scope", models.CharField(blank=True, max_length=2000)),
                (
                    "metric",
                    models.CharField(blank=True, max_length=40, verbose_name="expected metric"),
                ),
                ("factor", models.FloatField(blank=True, null=True)),
                (
                    "direction",
                    models.CharField(
                        blank=True, choices=[("less", "falls"), ("more", "rises")], max_length=4
                    ),
                ),
                ("links", models.TextField(blank=True)),
                ("notes", models.TextField(blank=True)),
                ("cost", models.CharField(blank=True, max_length=200)),
                (
                    "fix",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("reported", "reported"),
                            ("accepted", "accepted"),
                            ("released", "released"),
                            ("rejected", "rejected"),
                        ],
                        max_length=16,
                        verbose_name="upstream fix",
                    ),
                ),
                (
                    "fix_url",
                    models.URLField(blank=True, max_length=500, verbose_name="link of the fix"),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("hand", "by hand"),
                            ("case", "from a case"),
                            ("answer", "from a user's answer"),
                            ("change-point", "from a change point"),
                        ],
                        default="hand",
                        max_length=16,
                    ),
                ),
                ("case_key", models.BigIntegerField(blank=True, null=True)),
                ("key", models.CharField(editable=False, max_length=100, null=True, unique=True)),
                (
                    "is_public",
                    models.BooleanField(default=False, verbose_name="visible to all users"),
                ),
                ("simulated", models.BooleanField(default=False, editable=False)),
            ],
            options={
                "ordering": ["-started_at", "-pk"],
                "indexes": [
                    models.Index(fields=["-started_at", "-id"], name="mitigation_recent"),
                    models.Index(
                        condition=models.Q(("case_key__isnull", False)),
                        fields=["case_key"],
                        name="mitigation_case",
                    ),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("title", ""), _negated=True),
                        name="mitigation_has_title",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("completed_at", None),
                            ("completed_at__gt", models.F("started_at")),
                            _connector="OR",
                        ),
                        name="mitigation_completed_after_start",
                        violation_error_message="The roll-out must end after the start.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("reverted_at", None),
                            (
                                "reverted_at__gt",
                                django.db.models.functions.comparison.Coalesce(
                                    "completed_at", "started_at"
                                ),
                            ),
                            _connector="OR",
                        ),
                        name="mitigation_reverted_after_completion",
                        violation_error_message="It can only be reverted after the roll-out.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("factor", None),
                            models.Q(("factor__gt", 0), models.Q(("metric", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="mitigation_factor_of_metric",
                        violation_error_message="A factor is positive and needs a metric.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("direction", ""),
                            models.Q(("factor", None), models.Q(("metric", ""), _negated=True)),
                            _connector="OR",
                        ),
                        name="mitigation_direction_without_factor",
                        violation_error_message="A direction needs a metric, and has no factor.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="MitigationEvent",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                ("by", models.CharField(max_length=150)),
                ("text", models.TextField()),
                (
                    "mitigation",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="events",
                        to="changes.mitigation",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
    ]
