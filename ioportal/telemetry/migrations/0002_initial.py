import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.db.models.functions.datetime
from django.db import migrations, models


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("telemetry", "0001_hypertables"),
    ]

    operations = [
        migrations.CreateModel(
            name="AttributedRpc",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("source_job_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
                (
                    "method",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job id in the source"),
                            (2, "only job on the node"),
                            (3, "only job on the node of the process"),
                            (0, "no job"),
                        ]
                    ),
                ),
                ("segment_id", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="ImpactWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "principal_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("principal_id", models.BigIntegerField()),
                ("impact_us", models.BigIntegerField()),
                ("service_us", models.BigIntegerField()),
                ("work_us", models.BigIntegerField()),
                ("others_us", models.BigIntegerField()),
                ("others_usual_us", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="IoTenMinutes",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "bucket",
                        "target_id",
                        "source_job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("bucket", models.DateTimeField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("filesystem_id", models.IntegerField()),
                ("target_id", models.IntegerField()),
                ("source_job_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                (
                    "basis",
                    models.SmallIntegerField(
                        choices=[
                            (1, "difference of two reads"),
                            (2, "entry created between two reads"),
                            (3, "entry dropped while idle and created again"),
                            (4, "unexplained decrease of counters: operations may be missing"),
                            (5, "first read of the target: total of unknown duration"),
                        ]
                    ),
                ),
                ("metadata_operations", models.BigIntegerField()),
                ("open", models.BigIntegerField(null=True)),
                ("close", models.BigIntegerField(null=True)),
                ("mknod", models.BigIntegerField(null=True)),
                ("link", models.BigIntegerField(null=True)),
                ("unlink", models.BigIntegerField(null=True)),
                ("mkdir", models.BigIntegerField(null=True)),
                ("rmdir", models.BigIntegerField(null=True)),
                ("rename", models.BigIntegerField(null=True)),
                ("getattr", models.BigIntegerField(null=True)),
                ("setattr", models.BigIntegerField(null=True)),
                ("getxattr", models.BigIntegerField(null=True)),
                ("setxattr", models.BigIntegerField(null=True)),
                ("statfs", models.BigIntegerField(null=True)),
                ("sync", models.BigIntegerField(null=True)),
                ("migrate", models.BigIntegerField(null=True)),
                ("readpage", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField(null=True)),
                ("write", models.BigIntegerField(null=True)),
                ("punch", models.BigIntegerField(null=True)),
                ("fallocate", models.BigIntegerField(null=True)),
                ("destroy", models.BigIntegerField(null=True)),
                ("create", models.BigIntegerField(null=True)),
                ("get_info", models.BigIntegerField(null=True)),
                ("set_info", models.BigIntegerField(null=True)),
                ("quotactl", models.BigIntegerField(null=True)),
                ("prealloc", models.BigIntegerField(null=True)),
                ("samedir_rename", models.BigIntegerField(null=True)),
                ("crossdir_rename", models.BigIntegerField(null=True)),
                ("parallel_rename_file", models.BigIntegerField(null=True)),
                ("parallel_rename_dir", models.BigIntegerField(null=True)),
                ("rename_trylocks", models.BigIntegerField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="IoTotal",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "target_id",
                        "end",
                        "basis",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("filesystem_id", models.IntegerField()),
                ("target_id", models.IntegerField()),
                (
                    "basis",
                    models.SmallIntegerField(
                        choices=[
                            (1, "difference of two reads"),
                            (2, "entry created between two reads"),
                            (3, "entry dropped while idle and created again"),
                            (4, "unexplained decrease of counters: operations may be missing"),
                            (5, "first read of the target: total of unknown duration"),
                        ]
                    ),
                ),
                ("metadata_operations", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="IoWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "target_id",
                        "source_job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("filesystem_id", models.IntegerField()),
                ("target_id", models.IntegerField()),
                ("source_job_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                (
                    "basis",
                    models.SmallIntegerField(
                        choices=[
                            (1, "difference of two reads"),
                            (2, "entry created between two reads"),
                            (3, "entry dropped while idle and created again"),
                            (4, "unexplained decrease of counters: operations may be missing"),
                            (5, "first read of the target: total of unknown duration"),
                        ]
                    ),
                ),
                ("open", models.BigIntegerField(null=True)),
                ("close", models.BigIntegerField(null=True)),
                ("mknod", models.BigIntegerField(null=True)),
                ("link", models.BigIntegerField(null=True)),
                ("unlink", models.BigIntegerField(null=True)),
                ("mkdir", models.BigIntegerField(null=True)),
                ("rmdir", models.BigIntegerField(null=True)),
                ("rename", models.BigIntegerField(null=True)),
                ("getattr", models.BigIntegerField(null=True)),
                ("setattr", models.BigIntegerField(null=True)),
                ("getxattr", models.BigIntegerField(null=True)),
                ("setxattr", models.BigIntegerField(null=True)),
                ("statfs", models.BigIntegerField(null=True)),
                ("sync", models.BigIntegerField(null=True)),
                ("migrate", models.BigIntegerField(null=True)),
                ("readpage", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField(null=True)),
                ("write", models.BigIntegerField(null=True)),
                ("punch", models.BigIntegerField(null=True)),
                ("fallocate", models.BigIntegerField(null=True)),
                ("destroy", models.BigIntegerField(null=True)),
                ("create", models.BigIntegerField(null=True)),
                ("get_info", models.BigIntegerField(null=True)),
                ("set_info", models.BigIntegerField(null=True)),
                ("quotactl", models.BigIntegerField(null=True)),
                ("prealloc", models.BigIntegerField(null=True)),
                ("samedir_rename", models.BigIntegerField(null=True)),
                ("crossdir_rename", models.BigIntegerField(null=True)),
                ("parallel_rename_file", models.BigIntegerField(null=True)),
                ("parallel_rename_dir", models.BigIntegerField(null=True)),
                ("rename_trylocks", models.BigIntegerField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="JobDelta",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "end",
                        "target_id",
                        "source_job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("filesystem_id", models.IntegerField()),
                ("target_id", models.IntegerField()),
                ("source_job_id", models.IntegerField()),
                ("basis", models.SmallIntegerField()),
                ("open", models.BigIntegerField(null=True)),
                ("close", models.BigIntegerField(null=True)),
                ("mknod", models.BigIntegerField(null=True)),
                ("link", models.BigIntegerField(null=True)),
                ("unlink", models.BigIntegerField(null=True)),
                ("mkdir", models.BigIntegerField(null=True)),
                ("rmdir", models.BigIntegerField(null=True)),
                ("rename", models.BigIntegerField(null=True)),
                ("getattr", models.BigIntegerField(null=True)),
                ("setattr", models.BigIntegerField(null=True)),
                ("getxattr", models.BigIntegerField(null=True)),
                ("setxattr", models.BigIntegerField(null=True)),
                ("statfs", models.BigIntegerField(null=True)),
                ("sync", models.BigIntegerField(null=True)),
                ("migrate", models.BigIntegerField(null=True)),
                ("readpage", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField(null=True)),
                ("write", models.BigIntegerField(null=True)),
                ("punch", models.BigIntegerField(null=True)),
                ("fallocate", models.BigIntegerField(null=True)),
                ("destroy", models.BigIntegerField(null=True)),
                ("create", models.BigIntegerField(null=True)),
                ("get_info", models.BigIntegerField(null=True)),
                ("set_info", models.BigIntegerField(null=True)),
                ("quotactl", models.BigIntegerField(null=True)),
                ("prealloc", models.BigIntegerField(null=True)),
                ("samedir_rename", models.BigIntegerField(null=True)),
                ("crossdir_rename", models.BigIntegerField(null=True)),
                ("parallel_rename_file", models.BigIntegerField(null=True)),
                ("parallel_rename_dir", models.BigIntegerField(null=True)),
                ("rename_trylocks", models.BigIntegerField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="JobSnapshot",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "taken_at",
                        "target_id",
                        "source_job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("target_id", models.IntegerField()),
                ("source_job_id", models.IntegerField()),
                ("snapshot_at", models.DateTimeField(null=True)),
                ("entry_started_at", models.DateTimeField(null=True)),
                ("open", models.BigIntegerField(null=True)),
                ("close", models.BigIntegerField(null=True)),
                ("mknod", models.BigIntegerField(null=True)),
                ("link", models.BigIntegerField(null=True)),
                ("unlink", models.BigIntegerField(null=True)),
                ("mkdir", models.BigIntegerField(null=True)),
                ("rmdir", models.BigIntegerField(null=True)),
                ("rename", models.BigIntegerField(null=True)),
                ("getattr", models.BigIntegerField(null=True)),
                ("setattr", models.BigIntegerField(null=True)),
                ("getxattr", models.BigIntegerField(null=True)),
                ("setxattr", models.BigIntegerField(null=True)),
                ("statfs", models.BigIntegerField(null=True)),
                ("sync", models.BigIntegerField(null=True)),
                ("migrate", models.BigIntegerField(null=True)),
                ("readpage", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField(null=True)),
                ("write", models.BigIntegerField(null=True)),
                ("punch", models.BigIntegerField(null=True)),
                ("fallocate", models.BigIntegerField(null=True)),
                ("destroy", models.BigIntegerField(null=True)),
                ("create", models.BigIntegerField(null=True)),
                ("get_info", models.BigIntegerField(null=True)),
                ("set_info", models.BigIntegerField(null=True)),
                ("quotactl", models.BigIntegerField(null=True)),
                ("prealloc", models.BigIntegerField(null=True)),
                ("samedir_rename", models.BigIntegerField(null=True)),
                ("crossdir_rename", models.BigIntegerField(null=True)),
                ("parallel_rename_file", models.BigIntegerField(null=True)),
                ("parallel_rename_dir", models.BigIntegerField(null=True)),
                ("rename_trylocks", models.BigIntegerField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="LoadMinute",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("source_job_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="LoadTenMinutes",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("source_job_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="LoadWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("source_job_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RequestWindow",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "start",
                        "nid_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("server_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
                ("count", models.BigIntegerField()),
                ("first", models.DateTimeField()),
                ("last", models.DateTimeField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RpcMinute",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("source_job_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RpcTenMinutes",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "kind",
                        "job_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                (
                    "kind",
                    models.SmallIntegerField(
                        choices=[
                            (1, "job"),
                            (2, "process"),
                            (3, "host"),
                            (4, "pending"),
                            (5, "ambiguous"),
                            (6, "unattributed"),
                        ]
                    ),
                ),
                ("job_id", models.BigIntegerField()),
                ("source_job_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RpcTotal",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "service_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RpcTotalMinute",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "service_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RpcTotalTenMinutes",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "start",
                        "server_id",
                        "service_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("server_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="RpcWindow",
            fields=[
                ("count", models.BigIntegerField()),
                ("timed", models.BigIntegerField()),
                ("service_us_sum", models.BigIntegerField()),
                ("service_us_min", models.BigIntegerField()),
                ("service_us_max", models.BigIntegerField()),
                ("queue_us_min", models.BigIntegerField()),
                ("queue_us_max", models.BigIntegerField()),
                ("total_us_sum", models.BigIntegerField()),
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "start",
                        "nid_id",
                        "opcode",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("server_id", models.IntegerField()),
                ("nid_id", models.IntegerField()),
                ("source_job_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("opcode", models.SmallIntegerField()),
                ("first", models.DateTimeField()),
                ("last", models.DateTimeField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="ServiceSnapshot",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "taken_at",
                        "service_id",
                        "counter_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("server_id", models.IntegerField()),
                ("service_id", models.IntegerField()),
                ("counter_id", models.IntegerField()),
                (
                    "unit",
                    models.SmallIntegerField(
                        choices=[
                            (1, "reqs"),
                            (2, "usec"),
                            (3, "sec"),
                            (4, "bufs"),
                            (5, "bytes"),
                            (6, "pages"),
                            (7, "regs"),
                        ]
                    ),
                ),
                ("snapshot_at", models.DateTimeField(null=True)),
                ("counted_since", models.DateTimeField(null=True)),
                ("samples", models.BigIntegerField()),
                ("min", models.BigIntegerField()),
                ("max", models.BigIntegerField()),
                ("sum", models.BigIntegerField()),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="TargetDelta",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "end",
                        "target_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("target_id", models.IntegerField()),
                ("basis", models.SmallIntegerField()),
                ("open", models.BigIntegerField(null=True)),
                ("close", models.BigIntegerField(null=True)),
                ("mknod", models.BigIntegerField(null=True)),
                ("link", models.BigIntegerField(null=True)),
                ("unlink", models.BigIntegerField(null=True)),
                ("mkdir", models.BigIntegerField(null=True)),
                ("rmdir", models.BigIntegerField(null=True)),
                ("rename", models.BigIntegerField(null=True)),
                ("getattr", models.BigIntegerField(null=True)),
                ("setattr", models.BigIntegerField(null=True)),
                ("getxattr", models.BigIntegerField(null=True)),
                ("setxattr", models.BigIntegerField(null=True)),
                ("statfs", models.BigIntegerField(null=True)),
                ("sync", models.BigIntegerField(null=True)),
                ("migrate", models.BigIntegerField(null=True)),
                ("readpage", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField(null=True)),
                ("write", models.BigIntegerField(null=True)),
                ("punch", models.BigIntegerField(null=True)),
                ("fallocate", models.BigIntegerField(null=True)),
                ("destroy", models.BigIntegerField(null=True)),
                ("create", models.BigIntegerField(null=True)),
                ("get_info", models.BigIntegerField(null=True)),
                ("set_info", models.BigIntegerField(null=True)),
                ("quotactl", models.BigIntegerField(null=True)),
                ("prealloc", models.BigIntegerField(null=True)),
                ("samedir_rename", models.BigIntegerField(null=True)),
                ("crossdir_rename", models.BigIntegerField(null=True)),
                ("parallel_rename_file", models.BigIntegerField(null=True)),
                ("parallel_rename_dir", models.BigIntegerField(null=True)),
                ("rename_trylocks", models.BigIntegerField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="TargetSnapshot",
            fields=[
                (
                    "pk",
                    models.CompositePrimaryKey(
                        "segment_id",
                        "taken_at",
                        "target_id",
                        blank=True,
                        editable=False,
                        primary_key=True,
                        serialize=False,
                    ),
                ),
                ("taken_at", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
                ("target_id", models.IntegerField()),
                ("snapshot_at", models.DateTimeField(null=True)),
                ("open", models.BigIntegerField(null=True)),
                ("close", models.BigIntegerField(null=True)),
                ("mknod", models.BigIntegerField(null=True)),
                ("link", models.BigIntegerField(null=True)),
                ("unlink", models.BigIntegerField(null=True)),
                ("mkdir", models.BigIntegerField(null=True)),
                ("rmdir", models.BigIntegerField(null=True)),
                ("rename", models.BigIntegerField(null=True)),
                ("getattr", models.BigIntegerField(null=True)),
                ("setattr", models.BigIntegerField(null=True)),
                ("getxattr", models.BigIntegerField(null=True)),
                ("setxattr", models.BigIntegerField(null=True)),
                ("statfs", models.BigIntegerField(null=True)),
                ("sync", models.BigIntegerField(null=True)),
                ("migrate", models.BigIntegerField(null=True)),
                ("readpage", models.BigIntegerField(null=True)),
                ("read", models.BigIntegerField(null=True)),
                ("write", models.BigIntegerField(null=True)),
                ("punch", models.BigIntegerField(null=True)),
                ("fallocate", models.BigIntegerField(null=True)),
                ("destroy", models.BigIntegerField(null=True)),
                ("create", models.BigIntegerField(null=True)),
                ("get_info", models.BigIntegerField(null=True)),
                ("set_info", models.BigIntegerField(null=True)),
                ("quotactl", models.BigIntegerField(null=True)),
                ("prealloc", models.BigIntegerField(null=True)),
                ("samedir_rename", models.BigIntegerField(null=True)),
                ("crossdir_rename", models.BigIntegerField(null=True)),
                ("parallel_rename_file", models.BigIntegerField(null=True)),
                ("parallel_rename_dir", models.BigIntegerField(null=True)),
                ("rename_trylocks", models.BigIntegerField(null=True)),
                ("read_bytes", models.BigIntegerField(null=True)),
                ("write_bytes", models.BigIntegerField(null=True)),
            ],
            options={
                "managed": False,
            },
        ),
        migrations.CreateModel(
            name="DirtyImpact",
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
                ("server_id", models.IntegerField(null=True)),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="DirtyIo",
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
                ("filesystem_id", models.IntegerField(null=True)),
                ("target_id", models.IntegerField(null=True)),
                (
                    "source_job_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="DirtyRpcs",
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
                (
                    "level",
                    models.SmallIntegerField(
                        choices=[(0, "by 10 s"), (1, "by minute"), (2, "by ten minutes")]
                    ),
                ),
                ("server_id", models.IntegerField(null=True)),
                (
                    "job_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.BigIntegerField(), default=list, size=None
                    ),
                ),
                (
                    "nid_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
                (
                    "source_job_ids",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.IntegerField(), default=list, size=None
                    ),
                ),
            ],
            options={
                "abstract": False,
            },
        ),
        migrations.CreateModel(
            name="StageFailure",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("stage", models.CharField(max_length=63, unique=True)),
                ("since", models.DateTimeField(auto_now_add=True)),
                ("failed_at", models.DateTimeField()),
                ("runs", models.IntegerField(default=1)),
                ("error", models.TextField()),
                ("sqlstate", models.CharField(blank=True, max_length=5)),
            ],
        ),
        migrations.CreateModel(
            name="BaselinePeriod",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("server_id", models.IntegerField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("traced_from", models.DateTimeField()),
                ("computed_at", models.DateTimeField(null=True)),
            ],
            options={
                "constraints": [
                    models.UniqueConstraint(fields=("server_id", "end"), name="baselineperiod")
                ],
            },
        ),
        migrations.CreateModel(
            name="Coverage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "source",
                    models.CharField(
                        choices=[
                            ("rpctrace", "RPC trace of a server"),
                            ("job_stats", "job_stats of a target"),
                            ("md_stats", "md_stats of a target"),
                            ("mds_stats", "statistics of a server's services"),
                            ("req_history", "request history of a server"),
                        ],
                        max_length=16,
                    ),
                ),
                ("source_id", models.IntegerField()),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                ("segment_id", models.BigIntegerField()),
            ],
            options={
                "indexes": [
                    models.Index(fields=["source", "source_id", "start"], name="coverage_source"),
                    django.contrib.postgres.indexes.GistIndex(
                        models.F("source_id"),
                        models.Func("start", "end", models.Value("[]"), function="tstzrange"),
                        name="coverage_during",
                    ),
                    models.Index(fields=["segment_id"], name="coverage_segment"),
                ],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(("end__gte", models.F("start"))),
                        name="coverage_ends_after_start",
                    )
                ],
            },
        ),
        migrations.CreateModel(
            name="RetentionLog",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("table", models.CharField(max_length=63)),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
            ],
            options={
                "indexes": [models.Index(fields=["table", "start"], name="retentionlog_table")],
            },
        ),
    ]
