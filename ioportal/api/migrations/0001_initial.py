import django.db.models.deletion
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
            name="Token",
            fields=[
                (
                    "id",
                    models.BigAutoField(
                        auto_created=True, primary_key=True, serialize=False, verbose_name="ID"
                    ),
                ),
                ("name", models.CharField(blank=True, max_length=128)),
                (
                    "scope",
                    models.CharField(
                        choices=[
                            ("ingest", "send batches of one source"),
                            ("metrics", "read the portal's metrics"),
                            ("bounces", "report bounced mails"),
                            ("read", "read what its user may see"),
                            ("write", "store PanDA jobs, mitigations and experiments"),
                        ],
                        max_length=8,
                    ),
                ),
                ("digest", models.CharField(max_length=64, unique=True)),
                ("created_at", models.DateTimeField(auto_now_add=True)),
                ("expires_at", models.DateTimeField(blank=True, null=True)),
                ("revoked_at", models.DateTimeField(blank=True, null=True)),
                ("last_used_at", models.DateTimeField(blank=True, null=True)),
                (
                    "maker",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="made_tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
                (
                    "source",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to="site.source",
                    ),
                ),
                (
                    "user",
                    models.ForeignKey(
                        blank=True,
                        null=True,
                        on_delete=django.db.models.deletion.CASCADE,
                        related_name="tokens",
                        to=settings.AUTH_USER_MODEL,
                    ),
                ),
            ],
            options={
                "constraints": [
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope", "ingest"), ("source__isnull", False)),
                            models.Q(
                                models.Q(("scope", "ingest"), _negated=True),
                                ("source__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="token_of_a_source",
                        violation_error_message="A token to send batches belongs to one source.",
                    ),
                    models.CheckConstraint(
                        condition=models.Q(
                            models.Q(("scope__in", ("read", "write")), ("user__isnull", False)),
                            models.Q(
                                models.Q(("scope__in", ("read", "write")), _negated=True),
                                ("user__isnull", True),
                            ),
                            _connector="OR",
                        ),
                        name="token_of_a_user",
                        violation_error_message="A token to read or write data belongs to one user.",
                    ),
                ],
            },
        ),
    ]
