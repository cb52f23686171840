"""Change one place of a module at a time and count the changes that the tests detect.

usage: python -m scripts.mutants SEED SIZE [PATH...]

SIZE changes (mutants) are chosen at random from the modules below each PATH, long modules more
often. Each is tested, in a copy of the checkout, with the tests that import its module, with those
of its folder and with the type checker. Survivors are printed as diffs. Texts and lines with the
comment "pragma: no mutate" are not changed.

mutmut creates the mutants. Its own runner is not used: it forks, which the threads of polars do not
survive, and it leaves out what a module computes at import, such as expressions and constants.
"""

from __future__ import annotations

import ast
import os
import random
import subprocess
import sys
import tempfile
import time
import tomllib
from difflib import unified_diff
from functools import cache
from pathlib import Path
from shutil import copy2
from typing import TYPE_CHECKING, NamedTuple, cast

from libcst import BaseString
from mutmut.mutation.file_mutation import create_mutations, deep_replace

from scripts.checkout import CHECKOUT, Problem, exit_status, say

if TYPE_CHECKING:
    from collections.abc import Sequence

    from libcst import Module
    from mutmut.mutation.file_mutation import Mutation

PYTEST = (sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:cacheprovider")
MYPY = (sys.executable, "-m", "mypy")
SAME_EXAMPLES = "--hypothesis-seed=0"
AT_LEAST_S, TIMES = 20.0, 5.0  # of an unchanged test run until a mutant counts as hanging


class Mutant(NamedTuple):
    """A changed module."""

    module: Path
    before: str
    after: str

    @property
    def diff(self) -> str:
        lines = self.before.splitlines(), self.after.splitlines()
        return "\n".join(unified_diff(*lines, str(self.module), "", n=1, lineterm=""))


def run(seed: int, size: int, paths: Sequence[str]) -> None:
    with tempfile.TemporaryDirectory(prefix="ioportal-mutants-") as folder:
        copy_checkout(Path(folder))
        os.chdir(folder)
        mutants = sample(random.Random(seed), size, paths)  # noqa: S311  (a choice, not a secret)
        killed = 0
        for number, mutant in enumerate(mutants, 1):
            if is_detected(mutant):
                killed += 1
                print(f"{number:4} killed {mutant.module}", flush=True)
            else:
                print(f"{number:4} SURVIVED {mutant.module}\n{mutant.diff}\n", flush=True)
    say(f"{killed} of {len(mutants)} mutants killed ({killed / len(mutants):.0%}), seed {seed}")


def source_paths() -> list[str]:
    """Return the paths whose coverage is measured, too."""
    settings = tomllib.loads((CHECKOUT / "pyproject.toml").read_text())
    return cast("list[str]", settings["tool"]["coverage"]["run"]["source"])


def copy_checkout(folder: Path) -> None:
    for name in list_files():
        if (CHECKOUT / name).exists():
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
            copy2(CHECKOUT / name, folder / name)


def list_files(*paths: str) -> list[str]:
    command = ("git", "-C", str(CHECKOUT), "ls-files", *paths)
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.splitlines()


def sample(chance: random.Random, size: int, paths: Sequence[str]) -> list[Mutant]:
    """Return different mutants; `size` is small compared with all that are possible."""
    modules = [Path(name) for name in list_files(*paths) if name.endswith(".py")]
    lengths = [len(module.read_text().splitlines()) for module in modules]
    mutants: dict[Mutant, None] = {}
    while len(mutants) < size:
        [module] = chance.choices(modules, lengths)
        tree, mutations = mutations_of(module)
        if mutations:
            mutation = chance.choice(mutations)
            changed = cast(
                "Module", deep_replace(tree, mutation.original_node, mutation.mutated_node)
            )
            mutants[Mutant(module, tree.code, changed.code)] = None
    return list(mutants)


@cache
def mutations_of(module: Path) -> tuple[Module, list[Mutation]]:
    """Return a module and its mutations, except of strings: tests need not pin wordings."""
    tree, mutations, *_ = create_mutations(str(module), module.read_text())
    return tree, [each for each in mutations if not isinstance(each.original_node, BaseString)]


def is_detected(mutant: Mutant) -> bool:
    """Return whether the mutant fails in tests of its module or folder, or in the type checker."""
    suites = [(tests, seconds_unchanged(tests)) for tests in suites_of(mutant.module)]
    mutant.module.write_text(mutant.after)
    try:
        return any(fails(*suite) for suite in suites) or not has_valid_types(mutant.module)
    finally:
        mutant.module.write_text(mutant.before)


def fails(tests: tuple[str, ...], seconds: float) -> bool:
    """Return whether a test fails, or does not end."""
    try:
        return pytest(tests, AT_LEAST_S + TIMES * seconds).returncode != 0
    except subprocess.TimeoutExpired:
        return True


def has_valid_types(module: Path) -> bool:
    command = (*MYPY, str(module))
    return subprocess.run(command, capture_output=True, check=False).returncode == 0


@cache
def seconds_unchanged(tests: tuple[str, ...]) -> float:
    begun = time.monotonic()
    unchanged = pytest(tests)
    if unchanged.returncode:
        raise Problem(f"The tests fail without any change:\n{unchanged.stdout[-2_000:]}")
    return time.monotonic() - begun


def pytest(
    tests: tuple[str, ...], timeout_s: float | None = None
) -> subprocess.CompletedProcess[str]:
    command = (*PYTEST, SAME_EXAMPLES, *tests)
    return subprocess.run(command, capture_output=True, text=True, timeout=timeout_s, check=False)


@cache
def suites_of(module: Path) -> list[tuple[str, ...]]:
    """Return the test files that import a module, its own first, and the tests of its folder."""
    name = ".".join(module.with_suffix("").parts).removesuffix(".__init__")
    folder = Path("tests", *(part for part in module.parent.parts if part != "ioportal"))
    while not folder.exists():
        folder = folder.parent
    files = [
        path for path in Path("tests", folder.parts[1]).rglob("test_*.py") if name in imports(path)
    ]
    files.sort(key=lambda path: (path.stem != f"test_{module.stem}", path))
    return [suite for suite in (tuple(map(str, files)), (str(folder),)) if suite]


@cache
def imports(path: Path) -> set[str]:
    names: set[str] = set()
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.ImportFrom(module=str(module)):
                names |= {module, *(f"{module}.{alias.name}" for alias in node.names)}
            case ast.Import():
                names |= {alias.name for alias in node.names}
    return names


def main() -> None:
    match sys.argv[1:]:
        case [seed, size, *paths] if seed.isdecimal() and size.isdecimal():
            run(int(seed), int(size), paths or source_paths())
        case _:
            sys.exit(__doc__)


if __name__ == "__main__":
    sys.exit(exit_status(main))
