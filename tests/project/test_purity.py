"""Collectors, rules, analysis and charts run without a portal; imports have no circles."""

import re
import subprocess
import sys
from graphlib import TopologicalSorter
from pathlib import Path

import grimp
import pytest
from django.apps import apps

IMPORT_ALL = """
import importlib, pkgutil, sys

package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(getattr(package, "__path__", []), f"{package.__name__}."):
    if module.name not in sys.argv[3:]:
        importlib.import_module(module.name)
print(*sorted({"celery", "django", "psycopg"} & sys.modules.keys()))
"""
PROJECT = Path(__file__).parents[2]
AGENT = PROJECT / "requirements" / "agent.txt"
COMPILED = ("collectors.lustre.job_stats_plain",)  # imported only where numba is installed
# Some packages import others if these are installed: here they are not.
ONLY_WITH = """
import importlib.metadata, importlib.util, sys

class NotInstalled:
    def find_spec(self, name, path=None, target=None):
        if name in missing:
            raise ModuleNotFoundError(name)

locked = set(sys.argv[2].split())
missing = {
    module
    for module, providers in importlib.metadata.packages_distributions().items()
    if not locked.intersection(provider.lower() for provider in providers)
}
sys.meta_path.insert(0, NotInstalled())
"""


# In a separate process, because an import in ioportal/__init__.py would otherwise be hidden.
@pytest.mark.parametrize(
    "package",
    [
        "collectors",
        "ioportal.alerts.decide",
        "ioportal.alerts.outcomes",
        "ioportal.metrics",
        "ioportal.rules",
        *sorted(
            ".".join(folder.relative_to(PROJECT).parts)
            for room in ("analysis", "charts")
            for folder in PROJECT.glob(f"ioportal/*/{room}")
        ),
    ],
)
def test_a_pure_package_imports_no_framework(package):
    loaded = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.split() == []


def test_an_agent_needs_only_the_packages_of_its_lock_file():
    locked = re.findall(r"^([\w.-]+)==", AGENT.read_text(), re.MULTILINE)
    subprocess.run(
        [sys.executable, "-c", ONLY_WITH + IMPORT_ALL, "collectors", " ".join(locked), *COMPILED],
        check=True,
    )


def test_the_client_needs_only_httpx():
    requirements = (
        "httpx httpcore h11 anyio certifi idna sniffio typing-extensions typing_extensions"
    )
    # In its folder, where the portal's packages are not importable.
    subprocess.run(
        [sys.executable, "-c", ONLY_WITH + IMPORT_ALL, "ioportal_client", requirements],
        cwd=PROJECT / "client",
        check=True,
    )


def test_the_label_of_an_app_is_the_name_of_its_folder():
    ours = [app for app in apps.get_app_configs() if app.name.startswith("ioportal.")]

    assert [app.label for app in ours] == [app.name.rpartition(".")[2] for app in ours]


def test_no_files_import_each_other():
    """Not even for type hints."""
    graph = grimp.build_graph("bench", "collectors", "ioportal", "simulator", cache_dir=None)
    imported = {name: graph.find_modules_directly_imported_by(name) for name in graph.modules}

    TopologicalSorter(imported).prepare()  # raises CycleError

    assert "ioportal.urls" in imported
