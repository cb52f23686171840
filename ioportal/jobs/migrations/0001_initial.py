import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.datetime
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("site", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="CacheEntry",
            fields=[
                ("cache_key", models.CharField(max_length=255, primary_key=True, serialize=False)),
                ("value", models.TextField()),
                ("expires", models.DateTimeField(db_index=True)),
            ],
        ),
        migrations.CreateModel(
            name="Job",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("batch_id", models.CharField(max_length=64)),
                ("array_index", models.CharField(blank=True, max_length=64)),
                ("submitted_at", models.DateTimeField()),
                ("started_at", models.DateTimeField(blank=True, null=True)),
                ("ended_at", models.DateTimeField(blank=True, null=True)),
                ("name", models.CharField(blank=True, max_length=255)),
                ("owner", models.CharField(blank=True, max_length=64)),
                ("project", models.CharField(blank=True, max_length=128)),
                ("queue", models.CharField(blank=True, max_length=128)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("pending", "pending"),
                            ("running", "running"),
                            ("suspended", "suspended"),
                            ("requeued", "requeued"),
                            ("completed", "completed"),
                            ("failed", "failed"),
                            ("cancelled", "cancelled"),
                            ("timeout", "timed out"),
                            ("node_fail", "node failed"),
                            ("preempted", "preempted"),
                            ("out_of_memory", "out of memory"),
                            ("unknown", "unknown"),
                        ],
                        max_length=16,
                    ),
                ),
                ("exit_status", models.IntegerField(blank=True, null=True)),
                ("exit_signal", models.IntegerField(blank=True, null=True)),
                ("recorded_node_count", models.IntegerField(default=0, editable=False)),
                ("node_count", models.IntegerField(default=0)),
                ("core_count", models.IntegerField(default=0)),
                ("cpu_s", models.FloatField(blank=True, null=True)),
                ("time_limit_s", models.BigIntegerField(blank=True, null=True)),
                ("nodes", models.TextField(blank=True)),
                ("precedence", models.CharField(max_length=128)),
                ("quality", models.CharField(editable=False, max_length=8, null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        db_index=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="jobs",
                        to="site.cluster",
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        db_index=False,
                        editable=False,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="site.source",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="DirtyEvidence",
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
                ("job_id", models.BigIntegerField()),
                (
                    "until",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                ("since", models.DateTimeField(null=True)),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["-until", "-id"], name="dirtyevidence_latest")],
            },
        ),
        migrations.CreateModel(
            name="DirtyStatistics",
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
                ("job_id", models.BigIntegerField()),
                (
                    "until",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
            ],
            options={
                "abstract": False,
                "indexes": [models.Index(fields=["-until", "-id"], name="dirtystatistics_latest")],
            },
        ),
        migrations.CreateModel(
            name="Allocation",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "node",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="allocations",
                        to="site.node",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="allocations",
                        to="jobs.job",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Launch",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64)),
                ("batch_id", models.CharField(blank=True, max_length=64)),
                ("array_index", models.CharField(blank=True, max_length=64)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("node_count", models.IntegerField(default=0)),
                ("nodes", models.TextField(blank=True)),
                ("command", models.TextField(blank=True)),
                ("exit_status", models.IntegerField(null=True)),
                ("exit_signal", models.IntegerField(null=True)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="launches",
                        to="site.cluster",
                    ),
                ),
                (
                    "job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="launches",
                        to="jobs.job",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Population",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=80)),
                ("slug", models.SlugField(editable=False, max_length=90, unique=True)),
                ("query", models.TextField(blank=True)),
                ("is_shared", models.BooleanField(default=False, verbose_name="shared")),
                (
                    "owner",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="populations",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "ordering": ["name", "pk"],
            },
        ),
        migrations.CreateModel(
            name="WorkloadJob",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("panda_id", models.BigIntegerField()),
                ("task_id", models.BigIntegerField(null=True)),
                ("attempt", models.IntegerField(null=True)),
                ("reported_batch_id", models.CharField(max_length=240)),
                ("batch_id", models.CharField(max_length=64)),
                ("array_index", models.CharField(max_length=64)),
                ("site", models.CharField(max_length=128)),
                ("host", models.CharField(max_length=255)),
                ("state", models.CharField(max_length=32)),
                ("error", models.CharField(max_length=255)),
                ("user", models.CharField(max_length=128)),
                ("transformation", models.CharField(max_length=255)),
                ("created_at", models.DateTimeField(null=True)),
                ("started_at", models.DateTimeField(null=True)),
                ("ended_at", models.DateTimeField(null=True)),
                ("modified_at", models.DateTimeField(null=True)),
                ("core_count", models.IntegerField(null=True)),
                ("cpu_s", models.FloatField(null=True)),
                ("setup_s", models.FloatField(null=True)),
                ("get_job_s", models.FloatField(null=True)),
                ("stage_in_s", models.FloatField(null=True)),
                ("payload_s", models.FloatField(null=True)),
                ("stage_out_s", models.FloatField(null=True)),
                ("event_count", models.BigIntegerField(null=True)),
                ("max_pss_bytes", models.BigIntegerField(null=True)),
                ("max_swap_bytes", models.BigIntegerField(null=True)),
                ("transfer_type", models.CharField(db_default="", max_length=32)),
                ("precedence", models.CharField(max_length=128)),
                (
                    "changed_at",
                    models.DateTimeField(db_default=django.db.models.functions.datetime.Now()),
                ),
                (
                    "batch_job",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="jobs.job",
                    ),
                ),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="workload_jobs",
                        to="site.cluster",
                    ),
                ),
                ("jobs", models.ManyToManyField(related_name="workload_jobs", to="jobs.job")),
            ],
        ),
        migrations.CreateModel(
            name="JobStatistics",
            fields=[
                (
                    "job",
                    models.OneToOneField(
                        on_delete=django.db.models.deletion.CASCADE,
                        primary_key=True,
                        related_name="statistics",
                        serialize=False,
                        to="jobs.job",
                    ),
                ),
                ("computed_at", models.DateTimeField()),
                ("duration_s", models.FloatField(null=True)),
                ("node_count", models.IntegerField(null=True)),
                ("cpu_efficiency", models.FloatField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
                ("read_bytes_per_node", models.FloatField(null=True)),
                ("write_bytes_per_node", models.FloatField(null=True)),
                ("mean_read_bytes", models.FloatField(null=True)),
                ("mean_write_bytes", models.FloatField(null=True)),
                ("metadata_operations", models.BigIntegerField(null=True)),
                ("opens", models.BigIntegerField(null=True)),
                ("closes", models.BigIntegerField(null=True)),
                ("open_close_ratio", models.FloatField(null=True)),
                ("metadata_operations_per_node", models.FloatField(null=True)),
                ("metadata_rate", models.FloatField(null=True)),
                ("mean_operation_us", models.FloatField(null=True)),
                ("peak_metadata_rate", models.FloatField(null=True)),
                ("peak_resolution_s", models.FloatField(null=True)),
                ("peak_is_capped", models.BooleanField(default=False)),
                ("startup_share", models.FloatField(null=True)),
                ("largest_target_share", models.FloatField(null=True)),
                ("metadata_rpcs", models.BigIntegerField(null=True)),
                ("lock_enqueues", models.BigIntegerField(null=True)),
                ("counted_enqueues", models.BigIntegerField(null=True)),
                ("metadata_rpc_rate", models.FloatField(null=True)),
                ("mean_service_us", models.FloatField(null=True)),
                ("max_service_us", models.BigIntegerField(null=True)),
                ("mean_queue_us", models.FloatField(null=True)),
                (
                    "quality",
                    models.CharField(
                        choices=[("good", "good"), ("partial", "partial"), ("poor", "poor")],
                        max_length=8,
                    ),
                ),
                ("quality_reasons", models.JSONField(default=list)),
                (
                    "bytes_quality",
                    models.CharField(
                        choices=[("good", "good"), ("partial", "partial"), ("poor", "poor")],
                        max_length=8,
                        null=True,
                    ),
                ),
                ("bytes_reasons", models.JSONField(default=list)),
                ("covered_share", models.FloatField(default=0)),
                ("ambiguous_share", models.FloatField(default=0)),
                ("contradicted_share", models.FloatField(default=0)),
                ("resets", models.IntegerField(default=0)),
                ("count_open", models.BigIntegerField(null=True)),
                ("mean_open_us", models.FloatField(null=True)),
                ("count_close", models.BigIntegerField(null=True)),
                ("mean_close_us", models.FloatField(null=True)),
                ("count_mknod", models.BigIntegerField(null=True)),
                ("mean_mknod_us", models.FloatField(null=True)),
                ("count_link", models.BigIntegerField(null=True)),
                ("mean_link_us", models.FloatField(null=True)),
                ("count_unlink", models.BigIntegerField(null=True)),
                ("mean_unlink_us", models.FloatField(null=True)),
                ("count_mkdir", models.BigIntegerField(null=True)),
                ("mean_mkdir_us", models.FloatField(null=True)),
                ("count_rmdir", models.BigIntegerField(null=True)),
                ("mean_rmdir_us", models.FloatField(null=True)),
                ("count_rename", models.BigIntegerField(null=True)),
                ("mean_rename_us", models.FloatField(null=True)),
                ("count_getattr", models.BigIntegerField(null=True)),
                ("mean_getattr_us", models.FloatField(null=True)),
                ("count_setattr", models.BigIntegerField(null=True)),
                ("mean_setattr_us", models.FloatField(null=True)),
                ("count_getxattr", models.BigIntegerField(null=True)),
                ("mean_getxattr_us", models.FloatField(null=True)),
                ("count_setxattr", models.BigIntegerField(null=True)),
                ("mean_setxattr_us", models.FloatField(null=True)),
                ("count_statfs", models.BigIntegerField(null=True)),
                ("mean_statfs_us", models.FloatField(null=True)),
                ("count_sync", models.BigIntegerField(null=True)),
                ("mean_sync_us", models.FloatField(null=True)),
                ("count_migrate", models.BigIntegerField(null=True)),
                ("mean_migrate_us", models.FloatField(null=True)),
                ("count_readpage", models.BigIntegerField(null=True)),
                ("mean_readpage_us", models.FloatField(null=True)),
            ],
            options={
                "indexes": [
                    models.Index(
                        condition=models.Q(("duration_s__isnull", False)),
                        fields=["duration_s", "job"],
                        name="statistics_duration_s",
                    ),
                    models.Index(
                        condition=models.Q(("cpu_efficiency__isnull", False)),
                        fields=["cpu_efficiency", "job"],
                        name="statistics_cpu_efficiency",
                    ),
                    models.Index(
                        condition=models.Q(("read_bytes__isnull", False)),
                        fields=["read_bytes", "job"],
                        name="statistics_read_bytes",
                    ),
                    models.Index(
                        condition=models.Q(("write_bytes__isnull", False)),
                        fields=["write_bytes", "job"],
                        name="statistics_write_bytes",
                    ),
                    models.Index(
                        condition=models.Q(("read_bytes_per_node__isnull", False)),
                        fields=["read_bytes_per_node", "job"],
                        name="statistics_read_bytes_per_node",
                    ),
                    models.Index(
                        condition=models.Q(("write_bytes_per_node__isnull", False)),
                        fields=["write_bytes_per_node", "job"],
                        name="tatistics_write_bytes_per_node",
                    ),
                    models.Index(
                        condition=models.Q(("mean_read_bytes__isnull", False)),
                        fields=["mean_read_bytes", "job"],
                        name="statistics_mean_read_bytes",
                    ),
                    models.Index(
                        condition=models.Q(("mean_write_bytes__isnull", False)),
                        fields=["mean_write_bytes", "job"],
                        name="statistics_mean_write_bytes",
                    ),
                    models.Index(
                        condition=models.Q(("metadata_operations__isnull", False)),
                        fields=["metadata_operations", "job"],
                        name="statistics_metadata_operations",
                    ),
                    models.Index(
                        condition=models.Q(("opens__isnull", False)),
                        fields=["opens", "job"],
                        name="statistics_opens",
                    ),
                    models.Index(
                        condition=models.Q(("closes__isnull", False)),
                        fields=["closes", "job"],
                        name="statistics_closes",
                    ),
                    models.Index(
                        condition=models.Q(("open_close_ratio__isnull", False)),
                        fields=["open_close_ratio", "job"],
                        name="statistics_open_close_ratio",
                    ),
                    models.Index(
                        condition=models.Q(("metadata_operations_per_node__isnull", False)),
                        fields=["metadata_operations_per_node", "job"],
                        name="s_metadata_operations_per_node",
                    ),
                    models.Index(
                        condition=models.Q(("metadata_rate__isnull", False)),
                        fields=["metadata_rate", "job"],
                        name="statistics_metadata_rate",
                    ),
                    models.Index(
                        condition=models.Q(("mean_operation_us__isnull", False)),
                        fields=["mean_operation_us", "job"],
                        name="statistics_mean_operation_us",
                    ),
                    models.Index(
                        condition=models.Q(("peak_metadata_rate__isnull", False)),
                        fields=["peak_metadata_rate", "job"],
                        name="statistics_peak_metadata_rate",
                    ),
                    models.Index(
                        condition=models.Q(("startup_share__isnull", False)),
                        fields=["startup_share", "job"],
                        name="statistics_startup_share",
                    ),
                    models.Index(
                        condition=models.Q(("largest_target_share__isnull", False)),
                        fields=["largest_target_share", "job"],
                        name="tatistics_largest_target_share",
                    ),
                    models.Index(
                        condition=models.Q(("metadata_rpcs__isnull", False)),
                        fields=["metadata_rpcs", "job"],
                        name="statistics_metadata_rpcs",
                    ),
                    models.Index(
                        condition=models.Q(("lock_enqueues__isnull", False)),
                        fields=["lock_enqueues", "job"],
                        name="statistics_lock_enqueues",
                    ),
                    models.Index(
                        condition=models.Q(("metadata_rpc_rate__isnull", False)),
                        fields=["metadata_rpc_rate", "job"],
                        name="statistics_metadata_rpc_rate",
                    ),
                    models.Index(
                        condition=models.Q(("mean_service_us__isnull", False)),
                        fields=["mean_service_us", "job"],
                        name="statistics_mean_service_us",
                    ),
                    models.Index(
                        condition=models.Q(("max_service_us__isnull", False)),
                        fields=["max_service_us", "job"],
                        name="statistics_max_service_us",
                    ),
                    models.Index(
                        condition=models.Q(("mean_queue_us__isnull", False)),
                        fields=["mean_queue_us", "job"],
                        name="statistics_mean_queue_us",
                    ),
                    models.Index(
                        condition=models.Q(("count_mknod__isnull", False)),
                        fields=["count_mknod", "job"],
                        name="statistics_count_mknod",
                    ),
                    models.Index(
                        condition=models.Q(("count_link__isnull", False)),
                        fields=["count_link", "job"],
                        name="statistics_count_link",
                    ),
                    models.Index(
                        condition=models.Q(("count_unlink__isnull", False)),
                        fields=["count_unlink", "job"],
                        name="statistics_count_unlink",
                    ),
                    models.Index(
                        condition=models.Q(("count_mkdir__isnull", False)),
                        fields=["count_mkdir", "job"],
                        name="statistics_count_mkdir",
                    ),
                    models.Index(
                        condition=models.Q(("count_rmdir__isnull", False)),
                        fields=["count_rmdir", "job"],
                        name="statistics_count_rmdir",
                    ),
                    models.Index(
                        condition=models.Q(("count_rename__isnull", False)),
                        fields=["count_rename", "job"],
                        name="statistics_count_rename",
                    ),
                    models.Index(
                        condition=models.Q(("count_getattr__isnull", False)),
                        fields=["count_getattr", "job"],
                        name="statistics_count_getattr",
                    ),
                    models.Index(
                        condition=models.Q(("count_setattr__isnull", False)),
                        fields=["count_setattr", "job"],
                        name="statistics_count_setattr",
                    ),
                    models.Index(
                        condition=models.Q(("count_getxattr__isnull", False)),
                        fields=["count_getxattr", "job"],
                        name="statistics_count_getxattr",
                    ),
                    models.Index(
                        condition=models.Q(("count_setxattr__isnull", False)),
                        fields=["count_setxattr", "job"],
                        name="statistics_count_setxattr",
                    ),
                    models.Index(
                        condition=models.Q(("count_statfs__isnull", False)),
                        fields=["count_statfs", "job"],
                        name="statistics_count_statfs",
                    ),
                    models.Index(
                        condition=models.Q(("count_sync__isnull", False)),
                        fields=["count_sync", "job"],
                        name="statistics_count_sync",
                    ),
                    models.Index(
                        condition=models.Q(("count_migrate__isnull", False)),
                        fields=["count_migrate", "job"],
                        name="statistics_count_migrate",
                    ),
                    models.Index(
                        condition=models.Q(("count_readpage__isnull", False)),
                        fields=["count_readpage", "job"],
                        name="statistics_count_readpage",
                    ),
                    models.Index(fields=["computed_at"], name="statistics_computed_at"),
                ],
            },
        ),
        migrations.AddIndex(
            model_name="job",
            index=django.contrib.postgres.indexes.GistIndex(
                models.Func("started_at", "ended_at", function="tstzrange"), name="job_during"
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["batch_id", "cluster"], name="job_batch_id"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                fields=["-started_at", "-id"],
                include=(
                    "cluster",
                    "name",
                    "owner",
                    "project",
                    "queue",
                    "state",
                    "quality",
                    "ended_at",
                    "node_count",
                ),
                name="job_recent",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["cluster", "-started_at"], name="job_cluster_recent"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["name", "-started_at"], name="job_name_recent"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["owner", "-started_at"], name="job_owner_recent"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["project", "-started_at"], name="job_project_recent"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["queue", "-started_at"], name="job_queue_recent"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["state", "-started_at"], name="job_state_recent"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["node_count", "started_at"], name="job_node_count"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["submitted_at", "started_at"], name="job_submitted"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["ended_at", "started_at"], name="job_ended"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(fields=["quality", "started_at"], name="job_quality"),
        ),
        migrations.AddIndex(
            model_name="job",
            index=models.Index(
                condition=models.Q(("ended_at", models.F("started_at"))),
                fields=["started_at"],
                name="job_instant",
            ),
        ),
        migrations.AddIndex(
            model_name="job",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Upper("name"), "gin_trgm_ops"
                ),
                name="job_name_part",
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.UniqueConstraint(
                fields=("cluster", "batch_id", "array_index", "submitted_at"), name="job_identity"
            ),
        ),
        migrations.AddConstraint(
            model_name="job",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ended_at", None), ("ended_at__gte", models.F("started_at")), _connector="OR"
                ),
                name="job_ends_after_start",
            ),
        ),
        migrations.AddConstraint(
            model_name="allocation",
            constraint=models.UniqueConstraint(fields=("job", "node"), name="allocation_identity"),
        ),
        migrations.AddIndex(
            model_name="launch",
            index=models.Index(fields=["name"], name="launch_name"),
        ),
        migrations.AddIndex(
            model_name="launch",
            index=models.Index(fields=["cluster", "batch_id", "array_index"], name="launch_batch"),
        ),
        migrations.AddConstraint(
            model_name="launch",
            constraint=models.UniqueConstraint(
                fields=("cluster", "name", "batch_id", "array_index"), name="launch_identity"
            ),
        ),
        migrations.AddIndex(
            model_name="workloadjob",
            index=models.Index(fields=["batch_id", "cluster"], name="workload_job_batch"),
        ),
        migrations.AddIndex(
            model_name="workloadjob",
            index=models.Index(fields=["task_id"], name="workload_job_task"),
        ),
        migrations.AddIndex(
            model_name="workloadjob",
            index=models.Index(fields=["reported_batch_id"], name="workload_job_reported_batch"),
        ),
        migrations.AddIndex(
            model_name="workloadjob",
            index=models.Index(fields=["-modified_at"], name="workload_job_modified"),
        ),
        migrations.AddIndex(
            model_name="workloadjob",
            index=models.Index(fields=["changed_at"], name="workload_job_changed"),
        ),
        migrations.AddConstraint(
            model_name="workloadjob",
            constraint=models.UniqueConstraint(
                fields=("panda_id", "cluster"), name="workload_job_identity"
            ),
        ),
        migrations.AddConstraint(
            model_name="workloadjob",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    ("ended_at", None),
                    ("started_at", None),
                    ("ended_at__gte", models.F("started_at")),
                    _connector="OR",
                ),
                name="workload_job_ends_after_start",
            ),
        ),
    ]
