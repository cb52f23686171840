"""What is usual for each kind of RPC: as reckoned, and as pinned."""

import django.db.models.deletion
import django.utils.timezone
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0017_asked_at"),
        ("telemetry", "0016_baseline_periods"),
    ]

    operations = [
        migrations.CreateModel(
            name="Baseline",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("opcode", models.SmallIntegerField()),
                ("baseline_us", models.FloatField()),
                ("windows", models.IntegerField()),
                (
                    "period",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="telemetry.baselineperiod"
                    ),
                ),
                (
                    "service",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="jobs.service"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("period", "service", "opcode"), name="baseline")
                ],
            },
        ),
        migrations.CreateModel(
            name="PinnedBaseline",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("opcode", models.SmallIntegerField()),
                ("baseline_us", models.FloatField(verbose_name="baseline [µs]")),
                ("since", models.DateTimeField(default=django.utils.timezone.now)),
                (
                    "until",
                    models.DateTimeField(blank=True, help_text="Empty: it holds.", null=True),
                ),
                ("why", models.CharField(blank=True, max_length=200)),
                ("pinned_by", models.CharField(editable=False, max_length=150)),
                ("pinned_at", models.DateTimeField(auto_now_add=True)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="jobs.server"
                    ),
                ),
                (
                    "service",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="jobs.service"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("until", None)),
                        fields=("server", "service", "opcode"),
                        name="pinnedbaseline_one_holds",
                        violation_error_message="One is pinned already: end that one first.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("until", None), ("until__gte", models.F("since")), _connector="OR"
                        ),
                        name="pinnedbaseline_ends_after_start",
                        violation_error_message="It must end after it begins.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("baseline_us__gt", 0)),
                        name="pinnedbaseline_takes_time",
                        violation_error_message="An RPC takes time.",
                    ),
                ],
            },
        ),
    ]
