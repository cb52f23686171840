import django.core.serializers.json
import django.db.models.deletion
import django.utils.timezone
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("site", "0001_initial"),
        ("telemetry", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
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
                        on_delete=django.db.models.deletion.CASCADE, to="site.service"
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
            name="Incident",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("title", models.CharField(max_length=120)),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("notes", models.TextField(blank=True, max_length=10000)),
                (
                    "figures",
                    models.JSONField(
                        editable=False,
                        encoder=django.core.serializers.json.DjangoJSONEncoder,
                        null=True,
                    ),
                ),
                ("saved_by", models.CharField(editable=False, max_length=150)),
                ("saved_at", models.DateTimeField(auto_now_add=True)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="incidents",
                        to="site.server",
                    ),
                ),
            ],
            options={
                "ordering": ["-start", "-pk"],
                "indexes": [models.Index(fields=["server", "start"], name="incident_of_server")],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("end__gt", models.F("start"))),
                        name="incident_ends_after_start",
                        violation_error_message="The end must be after the start.",
                    )
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
                    models.DateTimeField(blank=True, help_text="Empty: still valid.", null=True),
                ),
                ("why", models.CharField(blank=True, max_length=200)),
                ("pinned_by", models.CharField(editable=False, max_length=150)),
                ("pinned_at", models.DateTimeField(auto_now_add=True)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="site.server"
                    ),
                ),
                (
                    "service",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="site.service"
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(
                        condition=models.Q(("until", None)),
                        fields=("server", "service", "opcode"),
                        name="pinnedbaseline_single",
                        violation_error_message="A baseline is pinned already. Set its end first.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            ("until", None), ("until__gte", models.F("since")), _connector="OR"
                        ),
                        name="pinnedbaseline_ends_after_start",
                        violation_error_message="The end must be after the start.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(("baseline_us__gt", 0)),
                        name="pinnedbaseline_takes_time",
                        violation_error_message="The baseline must be greater than 0.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Report",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "at",
                    models.DateTimeField(default=django.utils.timezone.now, verbose_name="when"),
                ),
                ("description", models.TextField(max_length=1000)),
                ("reported_at", models.DateTimeField(auto_now_add=True)),
                (
                    "filesystem",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reports",
                        to="site.filesystem",
                    ),
                ),
                (
                    "reporter",
                    models.ForeignKey(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="reports",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["-at", "-pk"],
                "indexes": [
                    models.Index(fields=["filesystem", "at"], name="report_of_filesystem"),
                    models.Index(fields=["reporter", "-reported_at"], name="report_of_reporter"),
                ],
            },
        ),
    ]
