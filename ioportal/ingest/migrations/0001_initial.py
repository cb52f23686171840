import django.contrib.postgres.fields
import django.db.models.deletion
import django.db.models.expressions
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("experiments", "0001_initial"),
        ("jobs", "0001_initial"),
        ("site", "0001_initial"),
    ]

    operations = [
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
                    "experiment",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="segments",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "runs",
                    models.ManyToManyField(
                        blank=True, related_name="segments", to="experiments.run"
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
            name="OwnerConflict",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("reported_owner", models.CharField(max_length=64)),
                ("line", models.BigIntegerField()),
                ("differences", models.CharField(default="owner", max_length=255)),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="owner_conflicts",
                        to="jobs.job",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="site.source",
                    ),
                ),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="owner_conflicts",
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
            name="DisplacedClaim",
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
                            ("rpctrace", "RPC trace of a server"),
                            ("job_stats", "job_stats of a target"),
                            ("md_stats", "md_stats of a target"),
                            ("exports", "export statistics of a target"),
                            ("mds_stats", "statistics of a server's services"),
                            ("req_history", "request history of a server"),
                        ],
                        max_length=16,
                    ),
                ),
                ("source_id", models.IntegerField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                (
                    "segment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="ingest.segment",
                    ),
                ),
                (
                    "taken_by",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="displaced",
                        to="ingest.segment",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DirtyExports",
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
        migrations.CreateModel(
            name="Stream",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stream", models.UUIDField()),
                ("instance", models.UUIDField(null=True)),
                ("host", models.CharField(max_length=255)),
                ("started_at", models.DateTimeField()),
                ("latest_at", models.DateTimeField()),
                ("discarded_at", models.DateTimeField(null=True)),
                ("discarded_by", models.CharField(blank=True, max_length=150)),
                ("discard_reason", models.CharField(blank=True, max_length=200)),
                (
                    "source",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="streams",
                        to="site.source",
                    ),
                ),
            ],
            options={
                "ordering": ["-latest_at"],
            },
        ),
        migrations.CreateModel(
            name="Sender",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("rival", models.UUIDField(null=True)),
                ("rival_host", models.CharField(blank=True, max_length=255)),
                ("rival_since", models.DateTimeField(null=True)),
                ("rival_at", models.DateTimeField(null=True)),
                ("released", models.UUIDField(null=True)),
                ("released_at", models.DateTimeField(null=True)),
                ("refusals", models.BigIntegerField(default=0)),
                ("refused_at", models.DateTimeField(null=True)),
                ("refused_stream", models.UUIDField(null=True)),
                ("refusal", models.TextField(blank=True)),
                (
                    "source",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="sender",
                        to="site.source",
                    ),
                ),
                (
                    "stream",
                    models.ForeignKey(
                        null=True, on_delete=django.db.models.deletion.SET_NULL, to="ingest.stream"
                    ),
                ),
            ],
        ),
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
                "indexes": [models.Index(fields=["-end", "-id"], name="dirtyjob_latest")],
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
                "indexes": [models.Index(fields=["-end", "-id"], name="dirtyreads_latest")],
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
                "indexes": [models.Index(fields=["-end", "-id"], name="dirtytrace_latest")],
            },
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
        migrations.AddConstraint(
            model_name="ownerconflict",
            constraint=models.UniqueConstraint(
                fields=("job", "source"), name="owner_conflict", nulls_distinct=False
            ),
        ),
        migrations.AddIndex(
            model_name="laterows",
            index=models.Index(fields=["-noticed_at"], name="laterows_recent"),
        ),
        migrations.AddIndex(
            model_name="dirtyexports",
            index=models.Index(fields=["-end", "-id"], name="dirtyexports_latest"),
        ),
        migrations.AddIndex(
            model_name="dirtydeltas",
            index=models.Index(fields=["-end", "-id"], name="dirtydeltas_latest"),
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
        migrations.AddConstraint(
            model_name="stream",
            constraint=models.UniqueConstraint(fields=("source", "stream"), name="stream_identity"),
        ),
    ]
