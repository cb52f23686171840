import django.contrib.postgres.indexes
import django.db.models.deletion
import django.db.models.functions.text
from django.contrib.postgres.operations import TrigramExtension
from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0008_job_cleanup_interval"),
    ]

    operations = [
        TrigramExtension(),
        migrations.AlterField(
            model_name="job",
            name="cluster",
            field=models.ForeignKey(
                db_index=False,
                on_delete=django.db.models.deletion.CASCADE,
                related_name="jobs",
                to="jobs.cluster",
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
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                fields=["quality", "job"],
                name="statistics_quality",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("cpu_efficiency__isnull", False)),
                fields=["cpu_efficiency", "job"],
                name="statistics_cpu_efficiency",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("read_bytes_per_node__isnull", False)),
                fields=["read_bytes_per_node", "job"],
                name="statistics_read_bytes_per_node",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("write_bytes_per_node__isnull", False)),
                fields=["write_bytes_per_node", "job"],
                name="tatistics_write_bytes_per_node",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("mean_read_bytes__isnull", False)),
                fields=["mean_read_bytes", "job"],
                name="statistics_mean_read_bytes",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("mean_write_bytes__isnull", False)),
                fields=["mean_write_bytes", "job"],
                name="statistics_mean_write_bytes",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("closes__isnull", False)),
                fields=["closes", "job"],
                name="statistics_closes",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("metadata_operations_per_node__isnull", False)),
                fields=["metadata_operations_per_node", "job"],
                name="s_metadata_operations_per_node",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("metadata_rate__isnull", False)),
                fields=["metadata_rate", "job"],
                name="statistics_metadata_rate",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("startup_share__isnull", False)),
                fields=["startup_share", "job"],
                name="statistics_startup_share",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("largest_target_share__isnull", False)),
                fields=["largest_target_share", "job"],
                name="tatistics_largest_target_share",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("metadata_rpc_rate__isnull", False)),
                fields=["metadata_rpc_rate", "job"],
                name="statistics_metadata_rpc_rate",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("mean_service_us__isnull", False)),
                fields=["mean_service_us", "job"],
                name="statistics_mean_service_us",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("max_service_us__isnull", False)),
                fields=["max_service_us", "job"],
                name="statistics_max_service_us",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("mean_queue_us__isnull", False)),
                fields=["mean_queue_us", "job"],
                name="statistics_mean_queue_us",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_mknod__isnull", False)),
                fields=["count_mknod", "job"],
                name="statistics_count_mknod",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_link__isnull", False)),
                fields=["count_link", "job"],
                name="statistics_count_link",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_unlink__isnull", False)),
                fields=["count_unlink", "job"],
                name="statistics_count_unlink",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_mkdir__isnull", False)),
                fields=["count_mkdir", "job"],
                name="statistics_count_mkdir",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_rmdir__isnull", False)),
                fields=["count_rmdir", "job"],
                name="statistics_count_rmdir",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_rename__isnull", False)),
                fields=["count_rename", "job"],
                name="statistics_count_rename",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_getattr__isnull", False)),
                fields=["count_getattr", "job"],
                name="statistics_count_getattr",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_setattr__isnull", False)),
                fields=["count_setattr", "job"],
                name="statistics_count_setattr",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_getxattr__isnull", False)),
                fields=["count_getxattr", "job"],
                name="statistics_count_getxattr",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_setxattr__isnull", False)),
                fields=["count_setxattr", "job"],
                name="statistics_count_setxattr",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_statfs__isnull", False)),
                fields=["count_statfs", "job"],
                name="statistics_count_statfs",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_sync__isnull", False)),
                fields=["count_sync", "job"],
                name="statistics_count_sync",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_migrate__isnull", False)),
                fields=["count_migrate", "job"],
                name="statistics_count_migrate",
            ),
        ),
        migrations.AddIndex(
            model_name="jobstatistics",
            index=models.Index(
                condition=models.Q(("count_readpage__isnull", False)),
                fields=["count_readpage", "job"],
                name="statistics_count_readpage",
            ),
        ),
    ]
