"""Collectors, analysis and charts run where no portal is installed."""

import subprocess
import sys

import pytest

IMPORT_ALL = """
import importlib, pkgutil, sys

package = importlib.import_module(sys.argv[1])
for module in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
    importlib.import_module(module.name)
print(*sorted({"celery", "django", "psycopg"} & sys.modules.keys()))
"""


# In a process of its own, because an import in ioportal/__init__.py would break this unseen.
@pytest.mark.parametrize("package", ["collectors", "ioportal.analysis", "ioportal.charts"])
def test_importing_all_of_a_pure_package_loads_no_framework(package):
    loaded = subprocess.run(
        [sys.executable, "-c", IMPORT_ALL, package], capture_output=True, text=True, check=True
    )

    assert loaded.stdout.split() == []
