import uuid

import django.db.models.deletion
from django.conf import settings
from django.db import migrations, models

import ioportal.experiments.models.experiment


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("jobs", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="Experiment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                ("slug", models.SlugField(editable=False, max_length=90, unique=True)),
                ("description", models.TextField(blank=True)),
                ("project", models.CharField(blank=True, max_length=128)),
                (
                    "is_public",
                    models.BooleanField(default=False, verbose_name="visible to all users"),
                ),
                (
                    "share_key",
                    models.CharField(
                        default=ioportal.experiments.models.experiment.share_key,
                        editable=False,
                        max_length=32,
                        unique=True,
                    ),
                ),
                ("settings", models.JSONField(default=dict)),
                ("simulated", models.BooleanField(default=False)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="experiments",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "readers",
                    models.ManyToManyField(
                        blank=True, related_name="+", to=settings.AUTH_USER_MODEL
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="Arm",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("position", models.IntegerField(default=0)),
                (
                    "experiment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="arms",
                        to="experiments.experiment",
                    ),
                ),
            ],
            options={
                "ordering": ["position", "pk"],
            },
        ),
        migrations.CreateModel(
            name="Run",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=120)),
                (
                    "state",
                    models.CharField(
                        blank=True,
                        choices=[("finished", "finished"), ("failed", "failed"), ("hung", "hung")],
                        max_length=8,
                    ),
                ),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("scale", models.FloatField(blank=True, null=True)),
                ("events", models.BigIntegerField(blank=True, null=True)),
                ("labels", models.JSONField(blank=True, default=dict)),
                ("metrics", models.JSONField(blank=True, default=dict)),
                ("steps", models.JSONField(blank=True, default=list)),
                ("counters", models.JSONField(blank=True, default=list)),
                ("markers", models.JSONField(blank=True, default=list)),
                ("recipe", models.JSONField(blank=True, default=dict)),
                ("notes", models.TextField(blank=True)),
                ("panda_id", models.BigIntegerField(blank=True, null=True)),
                (
                    "arm",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="experiments.arm",
                    ),
                ),
                (
                    "experiment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="runs",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="runs",
                        to="jobs.job",
                    ),
                ),
            ],
            options={
                "ordering": ["arm", "scale", "pk"],
            },
        ),
        migrations.CreateModel(
            name="ProcessSample",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField()),
                ("elapsed_s", models.FloatField()),
                ("pss_bytes", models.FloatField(null=True)),
                ("rss_bytes", models.FloatField(null=True)),
                ("swap_bytes", models.FloatField(null=True)),
                ("vmem_bytes", models.FloatField(null=True)),
                ("nprocs", models.FloatField(null=True)),
                ("nthreads", models.FloatField(null=True)),
                ("utime_s", models.FloatField(null=True)),
                ("stime_s", models.FloatField(null=True)),
                ("rchar_bytes", models.FloatField(null=True)),
                ("wchar_bytes", models.FloatField(null=True)),
                ("read_bytes", models.FloatField(null=True)),
                ("write_bytes", models.FloatField(null=True)),
                ("rx_bytes", models.FloatField(null=True)),
                ("tx_bytes", models.FloatField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="process_samples",
                        to="experiments.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="PairTransfer",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("start_s", models.FloatField()),
                ("client", models.CharField(max_length=64)),
                ("target", models.CharField(max_length=64)),
                ("bytes", models.BigIntegerField()),
                ("duration_s", models.FloatField()),
                ("x", models.FloatField(null=True)),
                ("y", models.FloatField(null=True)),
                ("z", models.FloatField(null=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="pair_transfers",
                        to="experiments.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Attachment",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=200)),
                ("content", models.BinaryField()),
                ("size_bytes", models.BigIntegerField()),
                ("added_at", models.DateTimeField(auto_now_add=True)),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="attachments",
                        to="experiments.run",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="SystemCall",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("call", models.CharField(max_length=32)),
                ("path", models.TextField(null=True)),
                ("error", models.CharField(blank=True, max_length=32)),
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("duration_s", models.FloatField()),
                ("first_line", models.BigIntegerField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="system_calls",
                        to="experiments.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="SystemCallWindow",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("second", models.BigIntegerField()),
                ("call", models.CharField(max_length=32)),
                ("failed", models.BooleanField()),
                ("count", models.BigIntegerField()),
                ("duration_s", models.FloatField()),
                (
                    "run",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="system_call_windows",
                        to="experiments.run",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Upload",
            fields=[
                (
                    "id",
                    models.UUIDField(
                        default=uuid.uuid4, editable=False, primary_key=True, serialize=False
                    ),
                ),
                ("format", models.CharField(blank=True, max_length=16)),
                ("arm", models.CharField(blank=True, max_length=80)),
                ("run", models.CharField(blank=True, max_length=120)),
                ("replace", models.BooleanField(default=False)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("receiving", "receiving"),
                            ("pending", "waiting for a worker"),
                            ("loading", "loading"),
                            ("loaded", "loaded"),
                            ("failed", "failed"),
                        ],
                        default="receiving",
                        max_length=10,
                    ),
                ),
                ("message", models.TextField(blank=True)),
                ("lines", models.BigIntegerField(default=0)),
                ("attempts", models.IntegerField(default=0)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "experiment",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uploads",
                        to="experiments.experiment",
                    ),
                ),
                (
                    "owner",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="uploads",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="UploadFile",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                ("size_bytes", models.BigIntegerField()),
                (
                    "upload",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="files",
                        to="experiments.upload",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="UploadPart",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("number", models.IntegerField()),
                ("content", models.BinaryField()),
                (
                    "file",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="parts",
                        to="experiments.uploadfile",
                    ),
                ),
            ],
            options={
                "ordering": ["number"],
            },
        ),
        migrations.AddConstraint(
            model_name="arm",
            constraint=models.UniqueConstraint(fields=("experiment", "name"), name="arm_identity"),
        ),
        migrations.AddConstraint(
            model_name="run",
            constraint=models.UniqueConstraint(fields=("experiment", "name"), name="run_identity"),
        ),
        migrations.AddIndex(
            model_name="upload",
            index=models.Index(fields=["state", "created_at"], name="upload_state"),
        ),
        migrations.AddConstraint(
            model_name="uploadpart",
            constraint=models.UniqueConstraint(
                fields=("file", "number"), name="upload_part_identity"
            ),
        ),
    ]
