"""The roll-ups as Django reads them, and pending rows; what is charged already is to be rolled up."""

import django.contrib.postgres.fields
from django.db import migrations, models

ASK = """
INSERT INTO telemetry_touchedrpcs (level, server_id, start, "end", job_ids, nid_ids, source_job_ids)
SELECT 1, source_id, start, "end" + interval '10 seconds', '{}', '{}', '{}'
FROM telemetry_coverage WHERE source = 'rpctrace';
INSERT INTO telemetry_touchedio (filesystem_id, target_id, start, "end", source_job_ids)
SELECT filesystem_id, target_id, min(start), max("end"), '{}'
FROM telemetry_iowindow GROUP BY filesystem_id, target_id;
"""


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0009_roll_ups"),
    ]

    operations = [
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
                            (2, "an entry that began between two reads"),
                            (3, "an entry that idled, was dropped and began again"),
                            (4, "counters fell without a reason: operations may be missing"),
                            (5, "first read of the target: a total of unknown duration"),
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
            name="TouchedIo",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
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
            name="TouchedRpcs",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("start", models.DateTimeField()),
                ("end", models.DateTimeField()),
                (
                    "level",
                    models.SmallIntegerField(choices=[(1, "by the minute"), (2, "by ten minutes")]),
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
            name="Dropped",
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
                "indexes": [models.Index(fields=["table", "start"], name="dropped_table")],
            },
        ),
        migrations.RunSQL(ASK, migrations.RunSQL.noop),
    ]
