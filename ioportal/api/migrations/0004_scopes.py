from django.db import migrations, models
from django.db.models import Q

_OF_USERS = ("read", "write")
_RENAME = "UPDATE api_token SET scope = %s WHERE scope = %s"


class Migration(migrations.Migration):
    dependencies = [("api", "0003_own_jobs")]

    operations = [
        migrations.RemoveConstraint(model_name="token", name="token_of_a_user"),
        migrations.AlterField(
            model_name="token",
            name="scope",
            field=models.CharField(
                choices=[
                    ("ingest", "send batches of one source"),
                    ("metrics", "read the portal's metrics"),
                    ("bounces", "report bounced mails"),
                    ("read", "read what its user may see"),
                    ("write", "store PanDA jobs and mitigations"),
                ],
                max_length=8,
            ),
        ),
        migrations.RunSQL([(_RENAME, ["read", "own-jobs"])], [(_RENAME, ["own-jobs", "read"])]),
        migrations.AddConstraint(
            model_name="token",
            constraint=models.CheckConstraint(
                condition=Q(scope__in=_OF_USERS, user__isnull=False)
                | ~Q(scope__in=_OF_USERS) & Q(user__isnull=True),
                name="token_of_a_user",
                violation_error_message="A token to read or write data belongs to one user.",
            ),
        ),
    ]
