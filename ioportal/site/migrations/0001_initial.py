import datetime

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import ioportal.site.models.infrastructure
import ioportal.site.models.source


class Migration(migrations.Migration):
    initial = True

    dependencies = []

    operations = [
        migrations.CreateModel(
            name="Counter",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="Service",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=32, unique=True)),
            ],
        ),
        migrations.CreateModel(
            name="UserAccount",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="As accounting names it.", max_length=64, unique=True
                    ),
                ),
                ("full_name", models.CharField(blank=True, max_length=128)),
                (
                    "email",
                    models.EmailField(
                        blank=True, help_text="Of the person, or of the team.", max_length=254
                    ),
                ),
                (
                    "projects",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        blank=True,
                        default=list,
                        help_text="With commas between.",
                        size=None,
                    ),
                ),
                (
                    "team",
                    models.CharField(
                        blank=True,
                        help_text="Of a service account: who runs it. A person's own account has none.",
                        max_length=128,
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Cluster",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(unique=True)),
                (
                    "time_zone",
                    models.CharField(
                        help_text="Accounting headers carry local times without a zone.",
                        max_length=64,
                        validators=[ioportal.site.models.infrastructure.validate_time_zone],
                    ),
                ),
                (
                    "batch_system",
                    models.CharField(
                        choices=[
                            ("slurm", "Slurm"),
                            ("pbs", "PBS or Torque"),
                            ("htcondor", "HTCondor"),
                            ("lsf", "LSF"),
                            ("sge", "Grid Engine"),
                        ],
                        max_length=8,
                    ),
                ),
                (
                    "exec_hosts_are_compute_nodes",
                    models.BooleanField(
                        default=True,
                        help_text="No on a Cray: PBS names the MOM node there, ALPS the compute nodes.",
                    ),
                ),
                (
                    "cores_per_node",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Where jobs share nodes: cores of a node, as accounting counts them. Node-hours are then allocated by cores.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "nid_network",
                    models.CharField(
                        blank=True,
                        help_text="A NID rule, first half: NIDs of this network (such as 'gni') are its nodes.",
                        max_length=16,
                    ),
                ),
                (
                    "nid_node_format",
                    models.CharField(
                        blank=True,
                        help_text="A NID rule, second half: 'nid{number:05d}' makes 42@gni the node nid00042.",
                        max_length=64,
                        validators=[ioportal.site.models.infrastructure.validate_node_format],
                    ),
                ),
                (
                    "simulated",
                    models.BooleanField(
                        default=False, help_text="Its data is made up; pages say so."
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("nid_network", ""), ("nid_node_format", "")),
                            models.Q(
                                models.Q(("nid_network", ""), _negated=True),
                                models.Q(("nid_node_format", ""), _negated=True),
                            ),
                            _connector="OR",
                        ),
                        name="cluster_nid_rule_whole",
                        violation_error_message="Give both halves of the NID rule, or neither.",
                    ),
                    models.UniqueConstraint(
                        condition=models.Q(("nid_network", ""), _negated=True),
                        fields=("nid_network",),
                        name="cluster_nid_network",
                        violation_error_message="Another cluster has this NID network already.",
                    ),
                ],
            },
        ),
        migrations.CreateModel(
            name="Filesystem",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(unique=True)),
                (
                    "job_id_pattern",
                    models.CharField(
                        default="(?P<batch_id>\\d+)(\\[(?P<array_index>\\d+)\\])?(\\..*)?",
                        help_text="What a job id of a batch job looks like, whole; groups: batch_id, array_index, launch (an ALPS apid). Anything else is a process name.",
                        max_length=255,
                        validators=[ioportal.site.models.infrastructure.validate_job_id_pattern],
                    ),
                ),
                (
                    "simulated",
                    models.BooleanField(
                        default=False, help_text="Its data is made up; pages say so."
                    ),
                ),
                (
                    "clusters",
                    models.ManyToManyField(
                        help_text="Whose jobs its job ids name.",
                        related_name="filesystems",
                        to="site.cluster",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Node",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255)),
                (
                    "cluster",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="nodes",
                        to="site.cluster",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Nid",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.CharField(max_length=128, unique=True)),
                ("registered", models.BooleanField(default=False, editable=False)),
                (
                    "node",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="nids",
                        to="site.node",
                    ),
                ),
            ],
            options={
                "verbose_name": "NID",
            },
        ),
        migrations.CreateModel(
            name="Server",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=255, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("mds", "MDS"), ("oss", "OSS")], default="mds", max_length=3
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="servers",
                        to="site.filesystem",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="ServerVersion",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("version", models.CharField(max_length=32)),
                ("since", models.DateTimeField()),
                (
                    "server",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="versions",
                        to="site.server",
                    ),
                ),
            ],
            options={
                "ordering": ["server", "since"],
            },
        ),
        migrations.CreateModel(
            name="Source",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(help_text="As in 'mds1-rpctrace'.", unique=True)),
                (
                    "format",
                    models.CharField(
                        max_length=16, validators=[ioportal.site.models.source.validate_format]
                    ),
                ),
                (
                    "poll_interval_s",
                    models.PositiveIntegerField(
                        default=60,
                        help_text="How often a batch is to be expected.",
                        validators=[django.core.validators.MinValueValidator(1)],
                        verbose_name="poll interval (s)",
                    ),
                ),
                (
                    "last_batch_at",
                    models.DateTimeField(editable=False, null=True, verbose_name="last batch"),
                ),
                ("spool_batches", models.BigIntegerField(editable=False, null=True)),
                ("spool_bytes", models.BigIntegerField(editable=False, null=True)),
                ("spool_oldest_at", models.DateTimeField(editable=False, null=True)),
                ("clock_offset_s", models.FloatField(editable=False, null=True)),
                ("agent_version", models.CharField(blank=True, editable=False, max_length=64)),
                ("agent_host", models.CharField(blank=True, editable=False, max_length=255)),
                (
                    "cluster",
                    models.ForeignKey(
                        blank=True,
                        help_text="Whose accounting it sends.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.cluster",
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        blank=True,
                        help_text="What all its targets are of, where they are of several servers.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.filesystem",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        blank=True,
                        help_text="The host that it runs on.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.server",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="SourceJobId",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("text", models.CharField(max_length=255)),
                ("batch_id", models.CharField(blank=True, max_length=64)),
                ("array_index", models.CharField(blank=True, max_length=64)),
                ("launch", models.CharField(blank=True, max_length=64)),
                (
                    "filesystem",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE, to="site.filesystem"
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Target",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "name",
                    models.CharField(
                        help_text="As in 'atlas2-MDT0000'.", max_length=64, unique=True
                    ),
                ),
                ("kind", models.CharField(choices=[("mdt", "MDT"), ("ost", "OST")], max_length=3)),
                (
                    "job_cleanup_interval",
                    models.DurationField(
                        default=datetime.timedelta(seconds=600),
                        help_text="Its parameter of that name, in seconds: it drops counters of jobs that idled so long. Reads no further apart than this miss nothing.",
                        validators=[
                            django.core.validators.MinValueValidator(datetime.timedelta(seconds=1)),
                            django.core.validators.MaxValueValidator(datetime.timedelta(days=3650)),
                        ],
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="targets",
                        to="site.filesystem",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="targets",
                        to="site.server",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.AddConstraint(
            model_name="node",
            constraint=models.UniqueConstraint(fields=("cluster", "name"), name="node_identity"),
        ),
        migrations.AddConstraint(
            model_name="serverversion",
            constraint=models.UniqueConstraint(fields=("server", "since"), name="server_version"),
        ),
        migrations.AddConstraint(
            model_name="source",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(
                        ("cluster__isnull", False),
                        ("filesystem__isnull", True),
                        ("server__isnull", True),
                    ),
                    models.Q(
                        ("cluster__isnull", True),
                        ("filesystem__isnull", False),
                        ("server__isnull", True),
                    ),
                    models.Q(
                        ("cluster__isnull", True),
                        ("filesystem__isnull", True),
                        ("server__isnull", False),
                    ),
                    _connector="OR",
                ),
                name="source_speaks_for_one_thing",
                violation_error_message="A source speaks for one cluster, filesystem or server.",
            ),
        ),
        migrations.AddIndex(
            model_name="sourcejobid",
            index=models.Index(fields=["batch_id"], name="source_job_id_batch"),
        ),
        migrations.AddIndex(
            model_name="sourcejobid",
            index=models.Index(fields=["launch"], name="source_job_id_launch"),
        ),
        migrations.AddConstraint(
            model_name="sourcejobid",
            constraint=models.UniqueConstraint(
                fields=("filesystem", "text"), name="source_job_id_identity"
            ),
        ),
    ]
