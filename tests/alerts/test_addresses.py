"""Addresses that are looked up for owners of cases and contacts of projects."""

from ioportal.alerts import planning, tasks
from ioportal.alerts.models import Notification
from ioportal.findings.models import Case
from ioportal.site.models import Project, UserAccount


def directory(settings, tmp_path):
    """Make a command that knows everybody."""
    program = tmp_path / "directory"
    program.write_text('#!/bin/sh\necho "mail: $1@directory.org"\necho "cn: User $1"\n')
    program.chmod(0o755)
    settings.ADDRESS_COMMAND = [str(program)]


def test_an_owner_without_an_address_is_mailed_after_a_look_up(
    storm, automatic, settings, tmp_path
):
    UserAccount.objects.all().delete()
    assert planning.plan() == 0
    directory(settings, tmp_path)

    tasks.look_up_addresses()

    assert planning.plan() == 1
    mail = Notification.objects.get()
    assert mail.address == "alice@directory.org"
    assert "Hello User alice," in mail.text


def test_only_owners_of_open_cases_and_contacts_are_looked_up(storm, settings, tmp_path):
    UserAccount.objects.update(email="")
    dora, _ = UserAccount.objects.bulk_create([UserAccount(name="dora"), UserAccount(name="eve")])
    Project.objects.create(name="PHY12", account=dora)
    Case.objects.update(state=Case.State.MUTED, muted_until=storm.until)
    directory(settings, tmp_path)

    tasks.look_up_addresses()

    known = UserAccount.objects.exclude(email="")
    assert list(known.values_list("name", flat=True)) == ["dora"]
