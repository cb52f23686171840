"""Links, pipes and foreign files that other users place in the agent's folders."""

import os

import pytest

from collectors.agent.files.folders import FolderReader
from collectors.agent.files.journal import _opened_pipe
from collectors.agent.files.lines import LineReader
from collectors.agent.files.tail import LogTail
from collectors.agent.safe_open import UnsafeFile, open_matching, read_secret
from collectors.agent.status import write
from collectors.batch import alps
from collectors.parsed import SourceUnavailable
from collectors.tables import LAUNCHES

ALICE, BOB = 1001, 1002
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def secret(tmp_path):
    """A file that other users cannot read."""
    path = tmp_path / "secret"
    path.touch(mode=0o600)
    path.write_text("root:$6$secret\n")
    return path


@pytest.fixture
def watched(tmp_path):
    folder = tmp_path / "watched"
    folder.mkdir(mode=0o755)
    return folder


def opened(path):
    with open_matching(path, f"{path.parent}/*") as file:
        return file.read()


def rejected(reader):
    """Return the number of lines that a reader ships as rejects, and its error."""
    lines = 0
    try:
        for reading in reader.read({}):
            lines += sum(batch.account.lines for batch in reading.batches)
    except SourceUnavailable as error:
        return lines, str(error)
    return lines, ""


def test_the_target_of_a_link_in_a_folder_is_not_shipped(watched, secret):
    (watched / "1.log").symlink_to(secret)
    (watched / "2.log").write_text("its own line\n")
    reader = FolderReader(LAUNCHES, f"{watched}/*.log", 0, alps.parse)

    lines, error = rejected(reader)

    assert lines == 1
    assert error == (
        f"{watched}/1.log: 1.log is a symbolic link, which is not followed: configure the path "
        "of its target"
    )


def test_a_link_among_the_files_of_a_log_is_skipped_and_logged_once(watched, secret, caplog):
    (watched / "20260101").write_text("its own line\n")
    (watched / "20260102").symlink_to(secret)
    os.mkfifo(watched / "20260103")
    log = LogTail(f"{watched}/20*", settled_s=0)
    reader = LineReader(LAUNCHES, log, alps.parse)

    assert [rejected(reader)[0] for _ in range(2)] == [1, 1]
    assert [record.message for record in caplog.records] == ["file_skipped"] * 2
    reader.close()


def test_a_configured_path_that_is_a_link_is_refused_with_a_remedy(watched, secret):
    (watched / "messages").symlink_to(secret)
    log = LogTail(f"{watched}/messages")

    with pytest.raises(UnsafeFile, match="configure the path of its target"):
        log.find(None)


def test_links_after_the_first_wildcard_are_refused(tmp_path, watched):
    (watched / "a").mkdir()
    (watched / "a" / "log").write_text("text")
    (tmp_path / "configured").symlink_to(watched)
    (watched / "b").symlink_to(watched / "a")

    with open_matching(tmp_path / "configured/a/log", f"{tmp_path}/configured/*/log") as file:
        assert file.read() == b"text"
    with pytest.raises(UnsafeFile, match="b is a symbolic link"):
        open_matching(tmp_path / "configured/b/log", f"{tmp_path}/configured/*/log")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_a_special_file_is_refused_without_blocking(watched, make):
    make(watched / "x")

    with pytest.raises(UnsafeFile, match="is not a regular file"):
        opened(watched / "x")


def test_a_hard_link_in_a_folder_writable_by_others_is_refused(watched, secret):
    (watched / "x").hardlink_to(secret)

    assert opened(watched / "x") == b"root:$6$secret\n"

    watched.chmod(0o775)
    with pytest.raises(UnsafeFile, match="has 2 hard links"):
        opened(watched / "x")


@needs_root
@pytest.mark.parametrize(
    ("folder", "mode", "file", "is_read"),
    [
        pytest.param(0, 0o755, BOB, True, id="a folder of root"),
        pytest.param(
            0, 0o775, BOB, True, id="a folder of root and a trusted group, such as /var/log"
        ),
        pytest.param(ALICE, 0o755, ALICE, True, id="a file of the folder's owner"),
        pytest.param(ALICE, 0o755, 0, True, id="the agent's own user"),
        pytest.param(ALICE, 0o755, BOB, False, id="another user's file in the folder"),
        pytest.param(0, 0o1777, 0, True, id="root's file in /tmp, such as a Lustre dump"),
        pytest.param(0, 0o1777, BOB, False, id="another user's file in /tmp"),
    ],
)
def test_the_owner_of_a_file_must_be_able_to_write_to_its_folder(
    watched, folder, mode, file, is_read
):
    path = watched / "x"
    path.write_text("text")
    os.chown(path, file, file)
    os.chown(watched, folder, folder)
    watched.chmod(mode)

    if is_read:
        assert opened(path) == b"text"
    else:
        with pytest.raises(UnsafeFile, match=rf"belongs to uid {file}, and other users can write"):
            opened(path)


@needs_root
@pytest.mark.parametrize(
    ("folder", "mode", "is_read"),
    [
        pytest.param(ALICE, 0o755, False, id="moved to a user's folder"),
        pytest.param(0, 0o777, False, id="moved to a public folder"),
        pytest.param(0, 0o1777, True, id="a Lustre dump in /tmp"),
    ],
)
def test_a_private_file_of_root_in_a_shared_folder_is_refused(
    tmp_path, watched, secret, folder, mode, is_read
):
    (watched / "inner").mkdir()  # of root: the folder above matters
    os.chown(watched, folder, folder)
    watched.chmod(mode)
    path = secret.rename(watched / "inner" / "x")

    if is_read:
        assert opened(path) == b"root:$6$secret\n"
    else:
        with pytest.raises(UnsafeFile, match="is not readable for others"):
            open_matching(path, f"{watched}/*/x")


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o666])
def test_a_secret_readable_by_other_users_is_refused(secret, mode):
    secret.chmod(mode)

    with pytest.raises(UnsafeFile, match=f"mode {mode:04o} lets other users read it: chmod 600 "):
        read_secret(secret)


@needs_root
@pytest.mark.parametrize(
    ("mode", "is_read"),
    [
        pytest.param(0o400, True, id="systemd"),
        pytest.param(0o440, True, id="systemd, with an access list"),
        pytest.param(0o640, True, id="root, for the agent's group"),
        pytest.param(0o644, False, id="public"),
        pytest.param(0o660, False, id="writable by group"),
    ],
)
def test_a_secret_of_another_owner_may_be_read_by_group(secret, mode, is_read):
    os.chown(secret, ALICE, ALICE)
    secret.chmod(mode)

    if is_read:
        assert read_secret(secret) == "root:$6$secret"
    else:
        with pytest.raises(UnsafeFile, match="chmod 600"):
            read_secret(secret)


def test_metrics_are_not_written_through_a_link(tmp_path, secret):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / ".agent.prom.unfinished").symlink_to(secret)

    write(tmp_path, tmp_path / "metrics" / "agent.prom", {})

    assert secret.read_text() == "root:$6$secret\n"
    assert (tmp_path / "metrics" / "agent.prom").is_file()


def test_only_a_named_pipe_is_opened_as_a_pipe(tmp_path, secret):
    (tmp_path / "link").symlink_to(secret)

    for path in (tmp_path / "link", secret):
        with pytest.raises(OSError, match=r"Too many levels|is not a named pipe"):
            _opened_pipe(path)
