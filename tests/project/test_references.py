"""Names of modules in comments, docstrings and docs exist."""

import re
from collections.abc import Iterator
from pathlib import Path

from django.conf import settings

ROOT = settings.BASE_DIR
PACKAGES = ("bench", "chaos", "client", "collectors", "ioportal", "scripts", "simulator", "tests")
DOTTED = re.compile(r"`((?:[a-z_][a-z_0-9]*\.)+[A-Za-z_][A-Za-z_0-9]*)(?:\(\))?`")
PATH = re.compile(r"`([a-z_]+/[a-z_/0-9]+\.(?:py|sql|html|js|css|toml|sh))`")


def _module(parts: tuple[str, ...]) -> Path | None:
    path = ROOT.joinpath(*parts)
    return next((p for p in (path.with_suffix(".py"), path / "__init__.py") if p.is_file()), None)


def _exists(name: str, near: Path) -> bool:
    """Return whether a dotted name is a module or a name in it: absolute, or of a package above."""
    parts = tuple(name.split("."))
    starts = [(), *(p.parts for p in near.relative_to(ROOT).parents)]
    for start in starts:
        for length in range(len(parts), 0, -1):
            if module := _module((*start, *parts[:length])):
                rest = parts[length:]
                if not rest or re.search(rf"\b{rest[0]}\b", module.read_text()):
                    return True
    return False


def _is_ours(name: str, near: Path) -> bool:
    """Return whether a dotted name begins with a package of the project or a module beside it."""
    first, *_, last = name.split(".")
    if last in {"py", "yml", "env", "toml"}:  # a file
        return False
    if first in PACKAGES:
        return True
    above = [ROOT, *(ROOT.joinpath(p) for p in near.relative_to(ROOT).parents)]
    return any((folder / first).is_dir() or (folder / f"{first}.py").is_file() for folder in above)


def _texts() -> Iterator[Path]:
    yield from (ROOT / "docs").glob("*.md")
    for package in PACKAGES:
        for path in (ROOT / package).rglob("*.py"):
            if "migrations" not in path.parts:
                yield path


def test_names_in_backticks_exist():
    missing = []
    for path in _texts():
        text = path.read_text()
        names = (name for name in DOTTED.findall(text) if _is_ours(name, path))
        paths = (name for name in PATH.findall(text) if name.split("/")[0] in PACKAGES)
        missing += [f"{path}: {name}" for name in names if not _exists(name, path)]
        missing += [f"{path}: {name}" for name in paths if not (ROOT / name).is_file()]

    assert missing == []
