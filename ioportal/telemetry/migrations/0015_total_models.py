"""The totals as Django reads them; what is added up by 10 s is asked for by a level of its own."""

from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("telemetry", "0014_totals"),
    ]

    operations = [
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
                            (2, "an entry that began between two reads"),
                            (3, "an entry that idled, was dropped and began again"),
                            (4, "counters fell without a reason: operations may be missing"),
                            (5, "first read of the target: a total of unknown duration"),
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
            name="Total",
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
            name="TotalMinute",
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
            name="TotalTenMinutes",
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
        migrations.AlterField(
            model_name="touchedrpcs",
            name="level",
            field=models.SmallIntegerField(
                choices=[(0, "by 10 s"), (1, "by the minute"), (2, "by ten minutes")]
            ),
        ),
    ]
