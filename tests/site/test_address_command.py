"""Addresses that a command of the site prints: real programs."""

from datetime import timedelta
from time import monotonic

import pytest
from django.utils import timezone

from ioportal.site import address_command
from ioportal.site.address_command import CommandFailed, Person, look_up, look_up_next
from ioportal.site.models import UserAccount

ANSWER = "dn: uid=alice\nmail: alice@example.org\nmail: second@example.org\ncn: Alice Ames\n"


@pytest.fixture
def program(settings, tmp_path):
    """Make a shell script the command."""

    def write(script):
        path = tmp_path / "addresses"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        settings.ADDRESS_COMMAND = [str(path), "--directory=people"]

    return write


@pytest.fixture
def prints(program, tmp_path):
    """Make the command print a text, and count its runs."""

    def write(text):
        (tmp_path / "answer").write_text(text)
        program(f'echo "$@" >> {tmp_path}/runs; cat {tmp_path}/answer')

    return write


@pytest.fixture
def runs(tmp_path):
    """Return the arguments of each run."""
    return lambda: (tmp_path / "runs").read_text().splitlines()


def account(name="alice"):
    return UserAccount.objects.get(name=name)


def later(name="alice"):
    """Let the time pass after which an address is looked up again."""
    UserAccount.objects.filter(name=name).update(next_lookup_at=timezone.now())


@pytest.mark.parametrize(
    ("text", "person"),
    [
        (ANSWER, Person("alice@example.org", "Alice Ames")),
        ("MAIL:alice@example.org\r\nname: A\r\n", Person("alice@example.org", "A")),
        ("mail:: YWxpY2VAZXhhbXBsZS5vcmc=\ncn:: w4Vzc2E=\n", Person("alice@example.org", "Åssa")),
        ("mail: alice@exam\n ple.org\n", Person("alice@example.org", "")),
        ("", Person("", "")),
        ("mail: nowhere\ncn: \x1b[31mA\n", Person("", "\\x1b[31mA")),
        ("mail: ålice@example.org\n", Person("", "")),
        ("mail: a@b.org\x00\nmail:: %%%\n", Person("", "")),
        (f"mail: {'a' * 60}@{'b.' * 120}org\n", Person("", "")),
    ],
)
def test_answers_are_lines_as_in_ldif(prints, text, person):
    prints(text)

    assert look_up("alice") == person


def test_the_name_is_the_last_argument(prints, runs):
    prints(ANSWER)
    look_up("alice")

    assert runs() == ["--directory=people alice"]


@pytest.mark.parametrize(
    ("script", "message"),
    [
        ("exit 3", "Exit status 3"),
        ("yes", "more than 65,536 bytes"),
        ("sleep 60 & sleep 60", "longer than 0 s"),
        ("exec 1>&-; sleep 60", "longer than 0 s"),
    ],
)
def test_a_command_that_fails_is_ended(program, monkeypatch, script, message):
    monkeypatch.setattr(address_command, "_TIMEOUT_S", 0.3)
    program(script)

    with pytest.raises(CommandFailed, match=message):
        look_up("alice")


def test_a_missing_command_is_a_failure(settings):
    settings.ADDRESS_COMMAND = ["/nonexistent"]

    with pytest.raises(CommandFailed, match="No such file"):
        look_up("alice")


def test_the_command_gets_no_passwords(program, monkeypatch):
    monkeypatch.setenv("IOPORTAL_SECRET_KEY", "secret")
    program('echo "cn: $IOPORTAL_SECRET_KEY"')

    assert look_up("alice").full_name == ""


def test_an_address_is_looked_up_once_a_day(db, prints, runs):
    prints(ANSWER)

    assert look_up_next(["alice"]) == 1
    assert (account().email, account().full_name) == ("alice@example.org", "Alice Ames")
    assert look_up_next(["alice"]) == 0

    later()
    prints("mail: ames@example.org\n")

    assert look_up_next(["alice"]) == 1
    assert account().email == "ames@example.org"
    assert len(runs()) == 2
    assert timezone.now() < account().next_lookup_at <= timezone.now() + timedelta(days=1)


def test_that_a_user_is_unknown_is_remembered(db, prints, runs):
    prints(ANSWER)
    look_up_next(["alice"])
    later()
    prints("")

    assert [look_up_next(["alice"]) for _ in range(3)] == [1, 0, 0]
    assert account().email == ""


def test_registered_addresses_are_never_changed(db, prints, call, tmp_path):
    UserAccount.objects.create(name="alice", email="own@example.org")
    prints(ANSWER)
    assert look_up_next(["alice"]) == 0

    look_up_next(["bob"])
    later("bob")
    users = tmp_path / "users.csv"
    users.write_text("name,email\nbob,bob@example.org\n")
    call("register", users, "--table", "users")

    assert look_up_next(["bob"]) == 0
    assert account("bob").email == "bob@example.org"


def test_a_registered_name_is_kept(db, prints):
    UserAccount.objects.create(name="alice", full_name="Dr. Ames")
    prints(ANSWER)
    look_up_next(["alice"])

    assert (account().full_name, account().email) == ("Dr. Ames", "alice@example.org")


def test_a_failure_keeps_the_address_and_is_tried_again_soon(db, prints, program):
    prints(ANSWER)
    look_up_next(["alice"])
    later()
    program("exit 1")

    assert look_up_next(["alice", "bob"]) == 1
    assert account().email == "alice@example.org"
    assert account().next_lookup_at < timezone.now() + timedelta(minutes=11)
    assert look_up_next(["alice", "bob"]) == 1  # bob
    assert look_up_next(["alice", "bob"]) == 0


@pytest.mark.parametrize(
    "name", ["-rf", "a b", "a;id", "$(id)", "a*)(uid=*", "", "a\nb", "é", "x" * 65, "../x"]
)
def test_hostile_names_are_never_looked_up(db, prints, name):
    prints(ANSWER)

    assert look_up_next([name]) == 0
    assert not UserAccount.objects.exists()


def test_without_a_command_nothing_is_looked_up(db, settings):
    settings.ADDRESS_COMMAND = []

    assert look_up_next(["alice"]) == 0


def test_a_child_that_continues_is_not_waited_for(program, monkeypatch):
    monkeypatch.setattr(address_command, "_TIMEOUT_S", 5.0)
    program("setsid sleep 20 & echo mail: alice@example.org")
    begun = monotonic()

    assert look_up("alice") == Person("alice@example.org", "")
    assert monotonic() - begun < 4
