import datetime

import django.contrib.postgres.fields
import django.core.validators
import django.db.models.deletion
from django.db import migrations, models

import ioportal.site.job_id_pattern
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
                        help_text="The user name in accounting.", max_length=64, unique=True
                    ),
                ),
                ("full_name", models.CharField(blank=True, max_length=128)),
                (
                    "email",
                    models.EmailField(
                        blank=True, help_text="Address of the person or the team.", max_length=254
                    ),
                ),
                (
                    "projects",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=128),
                        blank=True,
                        default=list,
                        help_text="Separated by commas.",
                        size=None,
                    ),
                ),
                (
                    "uid",
                    models.BigIntegerField(
                        blank=True,
                        help_text="The numeric user id on the clusters. Job ids with a uid (jobid_name=%j:%u) are compared with it.",
                        null=True,
                        unique=True,
                        validators=[
                            django.core.validators.MinValueValidator(0),
                            django.core.validators.MaxValueValidator(4294967295),
                        ],
                    ),
                ),
                (
                    "team",
                    models.CharField(
                        blank=True,
                        help_text="The team that runs a service account. Empty for a person.",
                        max_length=128,
                    ),
                ),
                ("next_lookup_at", models.DateTimeField(editable=False, null=True)),
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
                        help_text="The zone of local times in accounting.",
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
                        help_text="No on a Cray: there PBS lists the MOM node, and ALPS the compute nodes.",
                    ),
                ),
                (
                    "cores_per_node",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Cores of a node as counted by accounting, if jobs share nodes. Node-hours are then computed from cores.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
                    ),
                ),
                (
                    "nid_network",
                    models.CharField(
                        blank=True,
                        help_text="NID rule, part 1: the network of this cluster's nodes, such as 'gni'.",
                        max_length=16,
                    ),
                ),
                (
                    "nid_node_format",
                    models.CharField(
                        blank=True,
                        help_text="NID rule, part 2: 'nid{number:05d}' maps 42@gni to node nid00042.",
                        max_length=64,
                        validators=[ioportal.site.models.infrastructure.validate_node_format],
                    ),
                ),
                (
                    "simulated",
                    models.BooleanField(
                        default=False, help_text="Its data is simulated; pages show a label."
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
                        violation_error_message="Set both parts of the NID rule, or neither.",
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
                        default="(?P<batch_id>[0-9]+)(\\[(?P<array_index>[0-9]+)\\])?(\\..*)?",
                        help_text="A regular expression that matches the whole job id of a batch job. Groups: batch_id, array_index, launch (an ALPS apid), uid, host. Other ids are process names.",
                        max_length=255,
                        validators=[ioportal.site.job_id_pattern.validate_job_id_pattern],
                    ),
                ),
                (
                    "simulated",
                    models.BooleanField(
                        default=False, help_text="Its data is simulated; pages show a label."
                    ),
                ),
                (
                    "clusters",
                    models.ManyToManyField(
                        help_text="Clusters that mount it.",
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
                    "forwards",
                    models.BooleanField(
                        default=False,
                        help_text="It forwards the I/O of other nodes: a DVS server, a gateway, an NFS server. Job ids in its requests cannot be verified.",
                    ),
                ),
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
                        choices=[("mds", "MDS"), ("oss", "OSS"), ("nfs", "NFS server")],
                        default="mds",
                        max_length=3,
                    ),
                ),
                (
                    "capacity_per_s",
                    models.PositiveIntegerField(
                        blank=True,
                        help_text="Metadata requests per second that an MDS can serve, by mdtest. Rules compare loads with it; if it is unknown, with 5,000.",
                        null=True,
                        validators=[django.core.validators.MinValueValidator(1)],
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
                        help_text="The expected time between two batches.",
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
                        help_text="For accounting.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.cluster",
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        blank=True,
                        help_text="For targets of several servers of one filesystem.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.filesystem",
                    ),
                ),
                (
                    "server",
                    models.ForeignKey(
                        blank=True,
                        help_text="The agent's host.",
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
                ("uid", models.BigIntegerField(null=True)),
                ("host", models.CharField(blank=True, max_length=64)),
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
                        help_text="For example 'atlas2-MDT0000'.", max_length=64, unique=True
                    ),
                ),
                ("kind", models.CharField(choices=[("mdt", "MDT"), ("ost", "OST")], max_length=3)),
                (
                    "job_cleanup_interval",
                    models.DurationField(
                        default=datetime.timedelta(seconds=600),
                        help_text="The Lustre parameter of this name, in seconds: counters of jobs that were idle for longer are dropped. Polls at most this far apart miss nothing.",
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
        migrations.CreateModel(
            name="Project",
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
                        help_text="The project in accounting.", max_length=128, unique=True
                    ),
                ),
                (
                    "contact",
                    models.CharField(blank=True, help_text="Name of the contact.", max_length=128),
                ),
                (
                    "email",
                    models.EmailField(
                        blank=True,
                        help_text="Address of the contact. Empty: the account's address.",
                        max_length=254,
                    ),
                ),
                (
                    "account",
                    models.ForeignKey(
                        blank=True,
                        help_text="The contact's account, if there is one.",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="+",
                        to="site.useraccount",
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
                name="source_single_scope",
                violation_error_message="Select one cluster, filesystem or server.",
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
        migrations.AddConstraint(
            model_name="project",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("email", ""), _negated=True),
                    ("account__isnull", False),
                    _connector="OR",
                ),
                name="project_has_contact",
                violation_error_message="A project needs the mail address of its contact, or the account.",
            ),
        ),
    ]
