"""Collectors, analysis and charts run where no portal is installed."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys

package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
    importlib.import_module(module.name)
print(*sorted({"celery", "django", "psycopg"} & sys.modules.keys()))
"""
AGENT = Path(__file__).parents[2] / "requirements" / "agent.txt"
# Some packages use others where these happen to be: here they are not.
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


# In a process of its own, because an import in ioportal/__init__.py would break this unseen.
@pytest.mark.parametrize("package", ["collectors", "ioportal.analysis", "ioportal.charts"])
def test_importing_all_of_a_pure_package_loads_no_framework(package):
    loaded = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.split() == []


def test_an_agent_needs_nothing_but_what_its_lock_file_has():
    locked = re.findall(r"^([\w.-]+)==", AGENT.read_text(), re.MULTILINE)
    subprocess.run(
        [sys.executable, "-c", ONLY_WITH + IMPORT_ALL, "collectors", " ".join(locked)], check=True
    )
