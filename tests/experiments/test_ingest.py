"""Files of experiments loaded by the command: samples, several files of a run, replacement."""

from pathlib import Path

import pytest
from django.core.management.base import CommandError

from ioportal.experiments.models import Experiment, PairTransfer, ProcessSample, Run, SystemCall
from ioportal.ingest.models import Segment

FIXTURES = Path(__file__).parents[1] / "fixtures"
SAMPLES = Path(__file__).parents[3] / "shared" / "samples"


@pytest.fixture
def load(call):
    """Load files into the experiment "Tests"."""

    def load_into(form, *files, **options):
        named = [f"--{name}={text}" for name, text in options.items()]
        return call("ingest", form, *files, "--experiment=Tests", *named)

    return load_into


def sample_files():
    """Yield the format and the path of each sample of an experiment."""
    for folder in ("cmssw_fjr", "strace", "ior", "prmon"):
        for path in sorted((SAMPLES / folder).glob("*")):
            form = "prmon_json" if (folder, path.suffix) == ("prmon", ".json") else folder
            yield form, path


@pytest.mark.skipif(not SAMPLES.exists(), reason="shared samples are not present")
def test_published_files_load_and_reconcile(load, reconcile):
    files = list(sample_files())
    for form, path in files:
        load(form, path, run=path.name)

    assert len(files) == 25
    assert Segment.objects.filter(accepted=0).count() == 0
    assert reconcile() == f"{len(files)} segments reconcile."


def test_a_file_of_many_rows_is_loaded_once(load, reconcile):
    series, samples = FIXTURES / "pair_series/series.csv", FIXTURES / "prmon/prmon.txt"
    for _ in range(2):
        load("pair_series", series)
        load("prmon", samples)

    assert PairTransfer.objects.count() == 4 == Segment.objects.get(format="pair_series").accepted
    assert ProcessSample.objects.count() == len(samples.read_text().splitlines()) - 1
    assert reconcile() == "2 segments reconcile."


def test_files_of_strace_ff_are_one_run(load, reconcile, tmp_path):
    files = [tmp_path / "job.1", tmp_path / "job.2"]
    for number, file in enumerate(files):
        file.write_text(f'openat(AT_FDCWD, "/lustre/{number}", O_RDONLY) = 3\n' * 2)
    with pytest.raises(CommandError, match="Give --run"):
        load("strace", *files)
    load("strace", *files, run="job")

    run = Run.objects.get()
    assert sorted(run.system_calls.values_list("path", "count")) == [
        ("/lustre/0", 2),
        ("/lustre/1", 2),
    ]
    with pytest.raises(CommandError, match="Run job of Tests has such data already"):
        load("strace", FIXTURES / "strace/stderr.txt", run="job")
    load("strace", *files, FIXTURES / "strace/stderr.txt", "--replace", run="job")
    assert SystemCall.objects.filter(path="/lustre/0").get().count == 2
    assert reconcile() == "3 segments reconcile."


def test_a_refused_file_leaves_nothing(load, tmp_path):
    table = tmp_path / "runs.csv"
    table.write_text("run,wall_s\n1,5\n")
    load("runs", table)
    (tmp_path / "other.csv").write_text("run,wall_s\n2,6\n1,7\n")

    with pytest.raises(CommandError, match=r"another value of metrics\.wall_s already"):
        load("runs", tmp_path / "other.csv")
    assert list(Run.objects.values_list("name", "metrics")) == [("1", {"wall_s": 5})]
    assert Segment.objects.count() == 1


def test_runs_without_an_experiment_are_refused(call):
    with pytest.raises(CommandError, match="Give --experiment"):
        call("ingest", "runs", FIXTURES / "runs/scaling.csv")

    assert not Experiment.objects.exists()
