"""The exact path for strace logs: any line, read by itself.

Source: docs/formats.md, "strace"; strace(1), versions 4.5 to 6.
"""

import re
from typing import NamedTuple

from collectors.experiments.strace_records import (
    CALL_CHARACTERS,
    COMPLETE,
    EXITED,
    OTHER,
    PATH_AFTER_FOLDER,
    PATH_CHARACTERS,
    PATH_FIRST,
    RESUMED,
    SUPERSEDED,
    UNFINISHED,
)

PREFIX = (
    r"^ *(?:\[pid +(?P<bracketed>[0-9]{1,7})\] +|(?P<pid>[0-9]{1,7}) +)?"
    r"(?:(?P<clock>[0-9]{1,12}\.[0-9]{1,9}|[0-9]{9,12}"
    r"|[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]{1,9})?) )?"
)
CALL = rf"[a-z_][a-z0-9_]{{0,{CALL_CHARACTERS - 1}}}"
DURATION = r" <(?P<duration>[0-9]{1,7}(?:\.[0-9]{1,9})?)>"

_PREFIX = re.compile(PREFIX + r" *(?:\(\+ +[0-9.]+\) )?")  # with -r and -t, the second is relative
_CALL = re.compile(rf"(?P<call>{CALL})\(")
_RESUMED = re.compile(rf"<\.\.\. (?P<call>{CALL}) resumed> ?,? ?")
INTERRUPTION = "<unfinished ...>"
_NO_RESULT = "= ?"
_SUPERSEDED = re.compile(r"\+\+\+ superseded by execve in pid (?P<pid>[0-9]{1,7}) \+\+\+$")
# The last are the frames of a stack (-k).
_NO_CALL = ("+++ ", "--- ", "strace: ", "[ Process PID=", "Process ", "> ")

_RESULT = re.compile(r"\) += (?=[-?0-9])")
_RESULT_CHARACTERS = 12_000  # at the end of a line: a result with the path of its descriptor
_DURATION = re.compile(DURATION + "$")
_VALUE = re.compile(r"(?:-?[0-9]{1,20}|0x[0-9a-f]{1,16}|\?)(?![^ <])")
_ERROR = re.compile(r" (?P<error>E[A-Z0-9]{1,31})(?: \(.*\))?$", re.DOTALL)
_LARGEST_VALUE = 2**31

_STRING = r'"(?P<path>[^"\\]*(?:\\.[^"\\]*)*)"'
_PATH = re.compile(_STRING, re.DOTALL)
_FOLDER = re.compile(
    r"(?:(?P<cwd>AT_FDCWD)|-?[0-9]{1,10})(?:<(?P<base>[^<>\"\\]*(?:\\.[^<>\"\\]*)*)>)?"
    r"(?:\(deleted\))?(?:, |$)"
)
_ESCAPE = re.compile(rb"\\(?:x([0-9a-fA-F]{2})|([0-7]{1,3})|(.))", re.DOTALL)
_LETTERS = {
    b"n": b"\n",
    b"t": b"\t",
    b"r": b"\r",
    b"v": b"\v",
    b"f": b"\f",
    b"a": b"\a",
    b"b": b"\b",
}


class Unreadable(Exception):  # noqa: N818  (a state of the line, not a fault of ours)
    """A line that is not one of strace's; the message is the reason."""


class Record(NamedTuple):
    """What a line says; see `strace_records.RECORDS`."""

    kind: int
    pid: int
    clock: str | None
    call: str = ""
    base: str | None = None
    in_cwd: bool = False
    path: str | None = None
    error: str = ""
    value: int | None = None
    duration_ns: float | None = None


def read_exactly(line: str) -> Record:
    """Read one line.

    Args:
        line: without its newline, no NUL.

    Returns:
        Its record.

    Raises:
        Unreadable: it is none of strace's lines, or truncated.
    """
    pid, clock, text = _without_prefix(line)
    if text.startswith(_NO_CALL) or not text.strip():
        return _without_call(text, pid, clock)
    resumed = _RESUMED.match(text)
    start = resumed or _CALL.match(text)
    if start is None:
        raise Unreadable("no system call: expected NAME(ARGUMENTS) = RESULT")
    call, rest = start["call"], text[start.end() :]
    result = _result(rest)
    if result is None:
        return _unfinished(call, rest, pid, clock, is_start=resumed is None)
    arguments, value, error, duration_ns = result
    base, in_cwd, path = None, False, None
    if resumed is None or call == "getcwd":
        base, in_cwd, path = _place(call, arguments)
    kind = COMPLETE if resumed is None else RESUMED
    return Record(kind, pid, clock, call, base, in_cwd, path, error, value, duration_ns)


def _without_prefix(line: str) -> tuple[int, str | None, str]:
    """Return pid, time and the rest of a line."""
    prefix = _PREFIX.match(line)
    if prefix is None:  # impossible: every part is optional
        return 0, None, line
    return int(prefix["bracketed"] or prefix["pid"] or 0), prefix["clock"], line[prefix.end() :]


def _without_call(text: str, pid: int, clock: str | None) -> Record:
    superseded = _SUPERSEDED.match(text)
    if superseded:
        return Record(SUPERSEDED, pid, clock, value=int(superseded["pid"]))
    return Record(EXITED if text.startswith("+++ ") else OTHER, pid, clock)


def _unfinished(call: str, rest: str, pid: int, clock: str | None, *, is_start: bool) -> Record:
    """Return the record of a call without a result."""
    arguments, mark, end = rest.rpartition(INTERRUPTION)
    if mark and not end and is_start:
        return Record(UNFINISHED, pid, clock, call, *_place(call, arguments))
    ended = end if mark else rest[rest.rfind(")") :]
    if _NO_RESULT in ended:
        return Record(OTHER, pid, clock, call)
    raise Unreadable("the line is truncated: no result")


def _result(rest: str) -> tuple[str, int | None, str, float | None] | None:
    """Return arguments, value, error and duration of a call that returned."""
    tail_start = max(len(rest) - _RESULT_CHARACTERS, 0)
    tail = rest[tail_start:]
    marks = list(_RESULT.finditer(tail))
    if not marks:
        return None
    duration = _DURATION.search(tail, max(len(tail) - 24, 0))
    end = duration.start() if duration else len(tail)
    value = _VALUE.match(tail, marks[-1].end())
    if value is None:
        return None
    description = tail[value.end() : end]
    error = _error(value[0], description)
    if error is None:
        return None
    return (
        rest[: tail_start + marks[-1].start()],
        _number(value[0]),
        error,
        round(float(duration["duration"]) * 1e9) if duration else None,
    )


def _error(value: str, description: str) -> str | None:
    """Return the error of a result, "" if there is none; None: the result is not readable."""
    named = _ERROR.match(description)
    if named or value == "?":
        return named["error"] if named else None
    is_complete = not description or (
        description.startswith(("<", " (")) and description.endswith((">", ")"))
    )
    if not is_complete:
        return None
    return "?" if value.startswith("-") else ""


def _number(value: str) -> int | None:
    number = int(value) if value.isdigit() else _LARGEST_VALUE
    return number if number < _LARGEST_VALUE else None


def _place(call: str, arguments: str) -> tuple[str | None, bool, str | None]:
    """Return folder, whether it is the working directory, and path of a call."""
    if call in PATH_FIRST:
        path = _PATH.match(arguments)
        return None, False, _decoded(path["path"]) or None if path else None
    if call not in PATH_AFTER_FOLDER and call != "fchdir":
        return None, False, None
    folder = _FOLDER.match(arguments)
    if folder is None:
        return "", False, None
    in_cwd = folder["cwd"] is not None
    base = _decoded(folder["base"] or "")
    if not base.startswith("/"):  # such as a pipe
        base = ""
    path = _PATH.match(arguments, folder.end()) if call != "fchdir" else None
    decoded = _decoded(path["path"]) or None if path else None  # "": the call is about `folder`
    return base if base or not in_cwd else None, in_cwd, decoded


def _decoded(string: str) -> str:
    """Return a path without C escapes; bytes that are not UTF-8 and NUL become U+FFFD."""
    if "\\" in string:
        escaped = _ESCAPE.sub(_character, string.encode())
        string = escaped.decode(errors="replace").replace("\0", "\ufffd")
    if len(string) > PATH_CHARACTERS:
        raise Unreadable(f"path longer than {PATH_CHARACTERS:,} characters")
    return string


def _character(escape: re.Match[bytes]) -> bytes:
    hexadecimal, octal, letter = escape.groups()
    if hexadecimal:
        return bytes([int(hexadecimal, 16)])
    if octal:
        return bytes([int(octal, 8) & 0xFF])
    return _LETTERS.get(letter, letter)
