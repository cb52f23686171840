import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_initial"),
        ("site", "0001_initial"),
    ]

    operations = [
        migrations.CreateModel(
            name="DirtyJob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("has_rows", models.BooleanField(default=False)),
                (
                    "node_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), size=None
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(on_delete=django.db.models.deletion.CASCADE, to="jobs.job"),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="DirtyReads",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("has_rows", models.BooleanField(default=False)),
                (
                    "target",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="site.target"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="DirtyTrace",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("has_rows", models.BooleanField(default=False)),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="site.server"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Segment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("format", models.CharField(max_length=16)),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("name", models.CharField(max_length=1024)),
                ("start", models.DateTimeField(null=True)),
                ("end", models.DateTimeField(null=True)),
                ("loaded_at", models.DateTimeField(auto_now_add=True)),
                ("lines", models.BigIntegerField(default=0)),
                ("accepted", models.BigIntegerField(default=0)),
                ("rejected", models.BigIntegerField(default=0)),
                ("irrelevant", models.BigIntegerField(default=0)),
                ("rejected_by_reason", models.JSONField(default=dict)),
                ("records", models.BigIntegerField(default=0)),
                ("operations", models.BigIntegerField(default=0)),
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
                    "server",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.server",
                    ),
                ),
                ("targets", models.ManyToManyField(blank=True, to="site.target")),
            ],
        ),
        migrations.CreateModel(
            name="Reject",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("line", models.BigIntegerField()),
                ("text", models.TextField()),
                ("reason", models.TextField()),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="rejects",
                        to="ingest.segment",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="LateRows",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("noticed_at", models.DateTimeField(auto_now_add=True)),
                (
                    "job",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to="jobs.job"
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to="site.server"
                    ),
                ),
                (
                    "target",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to="site.target"
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.CASCADE, to="ingest.segment"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DirtyDeltas",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "created_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("has_rows", models.BooleanField(default=False)),
                (
                    "filesystem",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="site.filesystem"
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="ingest.segment"
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="Batch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stream", models.UUIDField()),
                ("sequence", models.BigIntegerField()),
                ("content", models.CharField(max_length=64)),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batches",
                        to="site.source",
                    ),
                ),
                (
                    "segment",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="batch",
                        to="ingest.segment",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="AccountingRecord",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("line", models.BigIntegerField()),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="records",
                        to="jobs.job",
                    ),
                ),
                (
                    "workload_job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="records",
                        to="jobs.workloadjob",
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="accounting_records",
                        to="ingest.segment",
                    ),
                ),
            ],
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(fields=["-loaded_at"], name="segment_recent"),
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(fields=["format", "server", "start"], name="segment_extent"),
        ),
        migrations.AddIndex(
            model_name="segment",
            index=models.Index(
                condition=models.Q(("rejected__gt", 0)),
                fields=["-loaded_at"],
                name="segment_rejected",
            ),
        ),
        migrations.AddConstraint(
            model_name="segment",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    (
                        "lines",
                        django.db.models.expressions.CombinedExpression(
                            django.db.models.expressions.CombinedExpression(
                                models.F("accepted"), "+", models.F("rejected")
                            ),
                            "+",
                            models.F("irrelevant"),
                        ),
                    )
                ),
                name="segment_accounts_for_every_line",
            ),
        ),
        migrations.AddIndex(
            model_name="reject",
            index=models.Index(fields=["segment", "line"], name="reject_line"),
        ),
        migrations.AddIndex(
            model_name="laterows",
            index=models.Index(fields=["-noticed_at"], name="laterows_recent"),
        ),
        migrations.AddIndex(
            model_name="batch",
            index=models.Index(fields=["source", "-id"], name="batch_newest"),
        ),
        migrations.AddConstraint(
            model_name="batch",
            constraint=models.UniqueConstraint(
                fields=("source", "stream", "sequence"), name="batch_identity"
            ),
        ),
    ]
