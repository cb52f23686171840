"""Invalid settings stop the start with a remedy."""

import re
from pathlib import Path

import pytest
from django.core.exceptions import ImproperlyConfigured

from ioportal.core import env
from ioportal.core.stages import STAGES


@pytest.mark.parametrize(
    ("url", "expected"),
    [
        pytest.param(
            "smtp://mail:1025",
            {"EMAIL_HOST": "mail", "EMAIL_PORT": 1025, "EMAIL_USE_SSL": False},
            id="without TLS",
        ),
        pytest.param(
            "smtps://io%40example.org:s%2Fcret@mail.example.org",
            {
                "EMAIL_PORT": 465,
                "EMAIL_USE_SSL": True,
                "EMAIL_HOST_USER": "io@example.org",
                "EMAIL_HOST_PASSWORD": "s/cret",
            },
            id="TLS from the start",
        ),
        pytest.param(
            "smtp+starttls://mail",
            {"EMAIL_PORT": 587, "EMAIL_USE_TLS": True, "EMAIL_USE_SSL": False},
            id="TLS after connecting",
        ),
    ],
)
def test_a_mail_server_is_set_by_one_address(monkeypatch, url, expected):
    monkeypatch.setenv("SMTP", url)

    assert env.mail("SMTP", "").items() >= expected.items()


def test_the_password_of_the_mail_server_can_be_in_a_file(monkeypatch, tmp_path):
    (tmp_path / "password").write_text("s3cret\n")
    monkeypatch.setenv("SMTP", "smtps://io@mail")
    monkeypatch.setenv("SMTP_PASSWORD_FILE", str(tmp_path / "password"))

    assert (
        env.mail("SMTP", "")["EMAIL_HOST_PASSWORD"] == (tmp_path / "password").read_text().strip()
    )


@pytest.mark.parametrize("url", ["mail:25", "http://mail", "smtp://mail:99999", ""])
def test_an_invalid_mail_server_is_refused(monkeypatch, url):
    monkeypatch.setenv("SMTP", url)

    with pytest.raises(ImproperlyConfigured, match="smtp://host:port"):
        env.mail("SMTP", "")


def test_sizes_have_a_unit(monkeypatch):
    monkeypatch.setenv("FREE", "500MB")

    assert env.size("FREE", "4GB") == 500_000_000
    assert env.size("NOT_SET", "4GB") == 4_000_000_000


@pytest.mark.parametrize("size", ["4", "GB", "4 GB", "-1GB", "4GiB"])
def test_an_invalid_size_is_refused(monkeypatch, size):
    monkeypatch.setenv("FREE", size)

    with pytest.raises(ImproperlyConfigured, match="Set a whole number and MB, GB or TB"):
        env.size("FREE", "4GB")


def test_a_mailbox_has_a_url(monkeypatch):
    assert env.mailbox("NOT_SET") is None

    monkeypatch.setenv("IMAP", "imaps://io%40x:se%2Fcret@mail.example.org/Bounces")
    mailbox = env.mailbox("IMAP")
    assert mailbox == env.Mailbox(
        "mail.example.org", 993, "io@x", "se/cret", "Bounces", has_starttls=False
    )
    assert "cret" not in repr(mailbox)
    monkeypatch.setenv("IMAP", "imap+starttls://io@mail")
    assert env.mailbox("IMAP") == env.Mailbox("mail", 143, "io", "", "INBOX", has_starttls=True)
    monkeypatch.setenv("IMAP", "imap://io@mail")
    with pytest.raises(ImproperlyConfigured, match="is not the URL of a mailbox"):
        env.mailbox("IMAP")


def test_a_file_must_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("FILE", __file__)
    assert env.file("FILE") == __file__
    assert env.file("NOT_SET") == ""

    monkeypatch.setenv("FILE", str(tmp_path))
    with pytest.raises(ImproperlyConfigured, match="is not a file on this host"):
        env.file("FILE")


def test_folders_must_exist(monkeypatch, tmp_path):
    monkeypatch.setenv("FOLDERS", f"{tmp_path}, /proc")
    assert env.folders("FOLDERS") == [str(tmp_path), "/proc"]
    assert env.folders("NOT_SET") == []

    monkeypatch.setenv("FOLDERS", f"{tmp_path}/none")
    with pytest.raises(ImproperlyConfigured, match="none is not a folder on this host"):
        env.folders("FOLDERS")


def test_the_docs_list_the_stages_in_their_order():
    docs = (Path(__file__).parents[2] / "docs/architecture.md").read_text()

    listed = re.findall(r"^\| ([a-z-]+) \|.* worker \|$", docs, re.MULTILINE)

    assert [(name, STAGES[number].rpartition(".")[2]) for number, name in enumerate(listed)] == [
        ("attribution", "attribute_pending"),
        ("observation", "observe"),
        ("roll-up", "roll_up"),
        ("statistics", "refresh_statistics"),
        ("evaluation", "evaluate"),
    ]
