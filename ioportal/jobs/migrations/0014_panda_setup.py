from django.db import migrations, models


class Migration(migrations.Migration):
    dependencies = [
        ("jobs", "0013_user_accounts"),
    ]

    operations = [
        migrations.AddField(
            model_name="workloadjob",
            name="setup_s",
            field=models.FloatField(null=True),
        ),
    ]
