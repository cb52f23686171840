"""What other users put where the agent looks: links, pipes, and files that are not theirs."""

import os

import pytest

from collectors.agent.files.folders import FolderReader
from collectors.agent.files.journal import _opened_pipe
from collectors.agent.files.lines import LineReader
from collectors.agent.files.tail import LogTail
from collectors.agent.safe_open import Unsafe, open_found, read_secret
from collectors.agent.status import write
from collectors.batch import alps
from collectors.parsed import SourceUnavailable
from collectors.tables import LAUNCHES

ALICE, BOB = 1001, 1002
needs_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root can give files away")


@pytest.fixture
def secret(tmp_path):
    """A file that nobody else can read."""
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
    with open_found(path, f"{path.parent}/*") as file:
        return file.read()


def rejected(reader):
    """Return how many lines a reader would ship as rejects, and what it says of the others."""
    lines, place = 0, {}
    try:
        for reading in reader.read(place):
            lines += sum(batch.account.lines for batch in reading.batches)
    except SourceUnavailable as error:
        return lines, str(error)
    return lines, ""


def test_a_link_in_a_watched_folder_ships_nothing_of_what_it_leads_to(watched, secret):
    (watched / "1.log").symlink_to(secret)
    (watched / "2.log").write_text("its own line\n")
    reader = FolderReader(LAUNCHES, f"{watched}/*.log", 0, alps.parse)

    lines, said = rejected(reader)

    assert lines == 1
    assert said == (
        f"{watched}/1.log: 1.log is a symbolic link, which is not followed: configure the path "
        "that it leads to"
    )


def test_a_link_among_the_files_of_a_growing_log_is_skipped_and_said_once(watched, secret, caplog):
    (watched / "20260101").write_text("its own line\n")
    (watched / "20260102").symlink_to(secret)
    os.mkfifo(watched / "20260103")
    log = LogTail(f"{watched}/20*", settled_s=0)
    reader = LineReader(LAUNCHES, log, alps.parse)

    assert [rejected(reader)[0] for _ in range(2)] == [1, 1]
    assert [record.message for record in caplog.records] == ["file_skipped"] * 2
    reader.close()


def test_a_configured_path_that_is_a_link_is_refused_with_the_remedy(watched, secret):
    (watched / "messages").symlink_to(secret)
    log = LogTail(f"{watched}/messages")

    with pytest.raises(Unsafe, match="configure the path that it leads to"):
        log.find(None)


def test_links_are_followed_up_to_the_first_wildcard_only(tmp_path, watched):
    (watched / "a").mkdir()
    (watched / "a" / "log").write_text("text")
    (tmp_path / "configured").symlink_to(watched)
    (watched / "b").symlink_to(watched / "a")

    with open_found(tmp_path / "configured/a/log", f"{tmp_path}/configured/*/log") as file:
        assert file.read() == b"text"
    with pytest.raises(Unsafe, match="b is a symbolic link"):
        open_found(tmp_path / "configured/b/log", f"{tmp_path}/configured/*/log")


@pytest.mark.parametrize("make", [os.mkfifo, os.mkdir], ids=["pipe", "folder"])
def test_what_is_no_regular_file_is_refused_without_waiting(watched, make):
    make(watched / "x")

    with pytest.raises(Unsafe, match="is not a regular file"):
        opened(watched / "x")


def test_a_hard_link_in_a_folder_that_others_can_write_to_is_refused(watched, secret):
    (watched / "x").hardlink_to(secret)

    assert opened(watched / "x") == b"root:$6$secret\n"

    watched.chmod(0o775)
    with pytest.raises(Unsafe, match="has 2 hard links"):
        opened(watched / "x")


@needs_root
@pytest.mark.parametrize(
    ("folder", "mode", "file", "is_read"),
    [
        pytest.param(0, 0o755, BOB, True, id="root's folder: root has put it there"),
        pytest.param(0, 0o775, BOB, True, id="a folder of root's and a group, as /var/log"),
        pytest.param(ALICE, 0o755, ALICE, True, id="her own"),
        pytest.param(ALICE, 0o755, 0, True, id="the agent's own user"),
        pytest.param(ALICE, 0o755, BOB, False, id="another user's in hers"),
        pytest.param(0, 0o1777, 0, True, id="root's in /tmp, as Lustre dumps them"),
        pytest.param(0, 0o1777, BOB, False, id="another user's in /tmp"),
    ],
)
def test_a_file_belongs_to_the_user_who_can_write_to_its_folder(
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
        with pytest.raises(Unsafe, match=rf"belongs to uid {file}, and other users can write"):
            opened(path)


@needs_root
@pytest.mark.parametrize(
    ("folder", "mode", "is_read"),
    [
        pytest.param(ALICE, 0o755, False, id="moved to hers"),
        pytest.param(0, 0o777, False, id="moved to everybody's"),
        pytest.param(0, 0o1777, True, id="a dump of Lustre in /tmp"),
    ],
)
def test_a_private_file_of_root_in_a_folder_of_others_is_refused(
    tmp_path, watched, secret, folder, mode, is_read
):
    (watched / "inner").mkdir()  # root's own again: the folder above it counts
    os.chown(watched, folder, folder)
    watched.chmod(mode)
    path = secret.rename(watched / "inner" / "x")

    if is_read:
        assert opened(path) == b"root:$6$secret\n"
    else:
        with pytest.raises(Unsafe, match="is not readable for others"):
            open_found(path, f"{watched}/*/x")


@pytest.mark.parametrize("mode", [0o604, 0o640, 0o620, 0o666])
def test_a_secret_of_ones_own_that_others_can_read_is_refused(secret, mode):
    secret.chmod(mode)

    with pytest.raises(Unsafe, match=f"mode {mode:04o} lets other users read it: chmod 600 "):
        read_secret(secret)


@needs_root
@pytest.mark.parametrize(
    ("mode", "is_read"),
    [
        pytest.param(0o400, True, id="systemd"),
        pytest.param(0o440, True, id="systemd, with the mask of an access list"),
        pytest.param(0o640, True, id="of root, for the agent's group"),
        pytest.param(0o644, False, id="for everybody"),
        pytest.param(0o660, False, id="others can change it"),
    ],
)
def test_a_secret_of_another_owner_may_be_read_by_group(secret, mode, is_read):
    os.chown(secret, ALICE, ALICE)
    secret.chmod(mode)

    if is_read:
        assert read_secret(secret) == "root:$6$secret"
    else:
        with pytest.raises(Unsafe, match="chmod 600"):
            read_secret(secret)


def test_metrics_are_not_written_through_a_link(tmp_path, secret):
    (tmp_path / "metrics").mkdir()
    (tmp_path / "metrics" / ".agent.prom.unfinished").symlink_to(secret)

    write(tmp_path, tmp_path / "metrics" / "agent.prom", {})

    assert secret.read_text() == "root:$6$secret\n"
    assert (tmp_path / "metrics" / "agent.prom").is_file()


def test_a_pipe_is_a_pipe_and_no_link(tmp_path, secret):
    (tmp_path / "link").symlink_to(secret)

    for path in (tmp_path / "link", secret):
        with pytest.raises(OSError, match=r"Too many levels|is no named pipe"):
            _opened_pipe(path)
