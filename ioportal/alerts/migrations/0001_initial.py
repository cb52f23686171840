import datetime
import secrets
import uuid

import django.contrib.postgres.fields
import django.contrib.postgres.indexes
import django.core.validators
import django.db.models.deletion
import django.db.models.functions.text
from django.conf import settings
from django.db import migrations, models

import ioportal.alerts.decide
import ioportal.alerts.outcomes


class Migration(migrations.Migration):
    initial = True

    dependencies = [
        ("findings", "0001_initial"),
        ("site", "0001_initial"),
        migrations.swappable_dependency(settings.AUTH_USER_MODEL),
    ]

    operations = [
        migrations.CreateModel(
            name="BouncedAddress",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("address", models.EmailField(max_length=254, unique=True)),
                ("bounced_at", models.DateTimeField(auto_now_add=True)),
                ("reason", models.CharField(max_length=500)),
            ],
            options={
                "verbose_name_plural": "bounced addresses",
                "ordering": ["-bounced_at"],
            },
        ),
        migrations.CreateModel(
            name="MailPolicy",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "default_mode",
                    models.CharField(
                        choices=[
                            ("off", "off"),
                            ("approval", "approval"),
                            ("automatic", "automatic"),
                        ],
                        default=ioportal.alerts.decide.Mode["APPROVAL"],
                        max_length=16,
                    ),
                ),
                ("modes", models.JSONField(blank=True, default=dict)),
                ("wait", models.DurationField()),
                ("interval", models.DurationField()),
                ("repeat", models.DurationField()),
                ("quiet_from", models.PositiveSmallIntegerField(default=0)),
                ("quiet_until", models.PositiveSmallIntegerField(default=0)),
                ("on_weekends", models.BooleanField(default=True)),
                (
                    "holidays",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.DateField(), blank=True, default=list, size=None
                    ),
                ),
                ("daily_cap", models.PositiveSmallIntegerField()),
                ("hourly_brake", models.PositiveSmallIntegerField()),
                (
                    "excluded",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        size=None,
                    ),
                ),
                ("follow_up_after", models.DurationField(default=datetime.timedelta(days=7))),
                (
                    "digest_readers",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        help_text="User names of staff who get the daily digest, separated by commas. Their addresses are on the pages of users.",
                        size=None,
                    ),
                ),
                (
                    "project_digest_day",
                    models.PositiveSmallIntegerField(
                        blank=True,
                        choices=[
                            (0, "Monday"),
                            (1, "Tuesday"),
                            (2, "Wednesday"),
                            (3, "Thursday"),
                            (4, "Friday"),
                            (5, "Saturday"),
                            (6, "Sunday"),
                        ],
                        help_text="Day of the weekly digest to the contacts of projects. Empty: none.",
                        null=True,
                    ),
                ),
                (
                    "digest_hour",
                    models.PositiveSmallIntegerField(
                        default=7,
                        help_text="Hour from which digests are sent, in the zone of the portal.",
                        validators=[django.core.validators.MaxValueValidator(23)],
                    ),
                ),
                (
                    "copies_to",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.EmailField(max_length=120),
                        blank=True,
                        default=list,
                        help_text="Addresses, separated by commas, that get a copy of each mail about cases that was sent without approval.",
                        size=None,
                    ),
                ),
                ("reason", models.CharField(max_length=200)),
                ("set_by", models.CharField(editable=False, max_length=150)),
                ("set_at", models.DateTimeField(auto_now_add=True)),
            ],
            options={
                "verbose_name_plural": "mail policies",
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="Channel",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(max_length=64, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[("webhook", "webhook"), ("chat", "chat"), ("ticket", "ticket")],
                        max_length=16,
                    ),
                ),
                (
                    "address",
                    models.CharField(
                        help_text="URL that begins with https://, or for tickets a mail address",
                        max_length=500,
                    ),
                ),
                (
                    "secret",
                    models.CharField(
                        default=secrets.token_urlsafe,
                        help_text="Signs the requests of a webhook",
                        max_length=200,
                    ),
                ),
                (
                    "min_severity",
                    models.PositiveSmallIntegerField(
                        choices=[(2, "warning"), (3, "abuse")],
                        default=2,
                        verbose_name="minimum severity",
                    ),
                ),
                (
                    "rules",
                    django.contrib.postgres.fields.ArrayField(
                        base_field=models.CharField(max_length=64),
                        blank=True,
                        default=list,
                        help_text="Codes with commas; empty: all",
                        size=None,
                    ),
                ),
                ("enabled", models.BooleanField(default=True)),
                ("enabled_at", models.DateTimeField(editable=False, null=True)),
                (
                    "filesystem",
                    models.ForeignKey(
                        blank=True,
                        help_text="Empty: all",
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.filesystem",
                    ),
                ),
            ],
            options={
                "ordering": ["name"],
            },
        ),
        migrations.CreateModel(
            name="Notification",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("token", models.UUIDField(default=uuid.uuid4, editable=False, unique=True)),
                (
                    "kind",
                    models.CharField(
                        choices=[
                            ("cases", "cases"),
                            ("follow-up", "follow-up"),
                            ("digest", "digest"),
                            ("report", "report"),
                            ("copy", "copy"),
                            ("channel", "channel"),
                        ],
                        default="cases",
                        max_length=16,
                    ),
                ),
                ("key", models.CharField(blank=True, max_length=200)),
                ("recipient", models.CharField(blank=True, max_length=64)),
                ("address", models.EmailField(blank=True, max_length=254)),
                ("subject", models.CharField(max_length=200)),
                ("text", models.TextField()),
                ("html", models.TextField(blank=True)),
                ("reason", models.CharField(max_length=200)),
                (
                    "state",
                    models.CharField(
                        choices=[
                            ("draft", "draft"),
                            ("waiting", "waiting"),
                            ("sending", "sending"),
                            ("ending", "ending"),
                            ("sent", "sent"),
                            ("failed", "failed"),
                            ("uncertain", "uncertain"),
                            ("discarded", "discarded"),
                        ],
                        max_length=16,
                    ),
                ),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("requested_by", models.CharField(blank=True, max_length=150)),
                ("released_by", models.CharField(blank=True, max_length=150)),
                ("released_at", models.DateTimeField(null=True)),
                ("next_attempt_at", models.DateTimeField(null=True)),
                ("attempts", models.PositiveSmallIntegerField(default=0)),
                ("claim", models.UUIDField(null=True)),
                ("response", models.CharField(blank=True, max_length=500)),
                ("finished_at", models.DateTimeField(null=True)),
                (
                    "step",
                    models.CharField(
                        blank=True,
                        choices=[
                            ("", ""),
                            ("thanks", "thanks"),
                            ("green light", "green light"),
                            ("reminder", "reminder"),
                            ("escalation", "escalation"),
                        ],
                        max_length=16,
                    ),
                ),
                ("stepped_at", models.DateTimeField(null=True)),
                (
                    "channel",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.PROTECT,
                        related_name="notifications",
                        to="alerts.channel",
                    ),
                ),
                (
                    "filesystem",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="+",
                        to="site.filesystem",
                    ),
                ),
                (
                    "follows",
                    models.ForeignKey(
                        null=True,
                        on_delete=django.db.models.deletion.SET_NULL,
                        related_name="follow_ups",
                        to="alerts.notification",
                    ),
                ),
            ],
            options={
                "ordering": ["-created_at", "-pk"],
            },
        ),
        migrations.CreateModel(
            name="DeliveryAttempt",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("draft", "draft"),
                            ("waiting", "waiting"),
                            ("sending", "sending"),
                            ("ending", "ending"),
                            ("sent", "sent"),
                            ("failed", "failed"),
                            ("uncertain", "uncertain"),
                            ("discarded", "discarded"),
                        ],
                        max_length=16,
                    ),
                ),
                ("response", models.CharField(blank=True, max_length=500)),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="delivery_log",
                        to="alerts.notification",
                    ),
                ),
            ],
            options={
                "ordering": ["pk"],
            },
        ),
        migrations.CreateModel(
            name="Answer",
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
                            ("working", "I am on it"),
                            ("fixed", "It is fixed"),
                            ("wrong", "This is wrong"),
                        ],
                        max_length=16,
                    ),
                ),
                ("comment", models.TextField(blank=True, max_length=1000)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="answers",
                        to="alerts.notification",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
            },
        ),
        migrations.CreateModel(
            name="NotificationCase",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("value", models.FloatField()),
                ("rule_version", models.PositiveSmallIntegerField()),
                ("request", models.CharField(blank=True, max_length=600)),
                (
                    "outcome",
                    models.CharField(
                        choices=[
                            ("unknown", "unknown"),
                            ("improved", "improved"),
                            ("partly improved", "partly improved"),
                            ("unchanged", "unchanged"),
                            ("recurred", "recurred"),
                        ],
                        default=ioportal.alerts.outcomes.Outcome["UNKNOWN"],
                        max_length=16,
                    ),
                ),
                ("effect", models.TextField(blank=True)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="notifications",
                        to="findings.case",
                    ),
                ),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="cases",
                        to="alerts.notification",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="NotificationImage",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.SlugField(max_length=40)),
                ("png", models.BinaryField()),
                (
                    "notification",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="images",
                        to="alerts.notification",
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="Silence",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("recipient", models.CharField(blank=True, max_length=64)),
                ("rule", models.CharField(blank=True, max_length=64)),
                ("until", models.DateTimeField()),
                ("reason", models.CharField(max_length=200)),
                ("created_by", models.CharField(editable=False, max_length=150)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                (
                    "filesystem",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        to="site.filesystem",
                    ),
                ),
            ],
            options={
                "ordering": ["-until"],
            },
        ),
        migrations.CreateModel(
            name="Subscription",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "job_reports",
                    models.BooleanField(default=False, verbose_name="Report of each job that ends"),
                ),
                (
                    "min_node_hours",
                    models.FloatField(
                        default=10,
                        validators=[django.core.validators.MinValueValidator(0)],
                        verbose_name="Only for jobs of at least (node-hours)",
                    ),
                ),
                (
                    "daily_cap",
                    models.PositiveSmallIntegerField(
                        default=5,
                        validators=[
                            django.core.validators.MinValueValidator(1),
                            django.core.validators.MaxValueValidator(50),
                        ],
                        verbose_name="Reports in 24 hours, at most",
                    ),
                ),
                (
                    "weekly_summary",
                    models.BooleanField(
                        default=False, verbose_name="Summary of my jobs each Monday"
                    ),
                ),
                ("changed_at", models.DateTimeField(auto_now=True)),
                (
                    "user",
                    models.OneToOneField(
                        editable=False,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="subscription",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
        ),
        migrations.CreateModel(
            name="CaseDecision",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                (
                    "verdict",
                    models.CharField(
                        choices=[("mail", "mail"), ("later", "later"), ("withheld", "withheld")],
                        max_length=16,
                    ),
                ),
                ("reason", models.CharField(max_length=300)),
                ("at", models.DateTimeField(auto_now_add=True)),
                (
                    "case",
                    models.ForeignKey(
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="mail_decisions",
                        to="findings.case",
                    ),
                ),
            ],
            options={
                "ordering": ["-pk"],
                "indexes": [models.Index(fields=["case", "-id"], name="casedecision_latest")],
            },
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                condition=models.Q(("state", "waiting")),
                fields=["next_attempt_at", "id"],
                name="notification_due",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["recipient", "-created_at"], name="notification_recipient"),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["-created_at", "-id"], name="notification_recent"),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(fields=["state", "-created_at"], name="notification_state"),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                django.db.models.functions.text.Upper("address"), name="notification_address"
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=django.contrib.postgres.indexes.GinIndex(
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Upper("subject"), "gin_trgm_ops"
                ),
                django.contrib.postgres.indexes.OpClass(
                    django.db.models.functions.text.Upper("text"), "gin_trgm_ops"
                ),
                name="notification_words",
            ),
        ),
        migrations.AddIndex(
            model_name="notification",
            index=models.Index(
                condition=models.Q(("text", ""), _negated=True),
                fields=["finished_at"],
                name="notification_text",
            ),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.UniqueConstraint(
                condition=models.Q(("key", ""), _negated=True),
                fields=("key",),
                name="notification_key",
            ),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state", "waiting"), _negated=True),
                    ("next_attempt_at__isnull", False),
                    _connector="OR",
                ),
                name="notification_waiting_has_time",
            ),
        ),
        migrations.AddConstraint(
            model_name="notification",
            constraint=models.CheckConstraint(
                condition=models.Q(
                    models.Q(("state__in", ["sending", "ending"]), _negated=True),
                    ("claim__isnull", False),
                    _connector="OR",
                ),
                name="notification_sending_has_claim",
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationcase",
            constraint=models.UniqueConstraint(
                fields=("notification", "case"), name="notification_case"
            ),
        ),
        migrations.AddConstraint(
            model_name="notificationimage",
            constraint=models.UniqueConstraint(
                fields=("notification", "name"), name="notification_image"
            ),
        ),
    ]
