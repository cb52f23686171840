"""The files of the simulated year, in the order in which they are loaded."""

from ioportal.demo import loading

FILES = (
    "alps/messages-202610",
    "job_stats/atlas2-MDT0000/20261002T120000Z.txt",
    "job_stats/atlas2-MDT0000/20261101T120000Z.txt",
    "late/pbs-20261007",
    "panda/2026-W45.json.gz",
    "pbs/202610",
    "pbs/202611",
    "rpctrace/atlas2-mds1.20261009T100000Z.log.zst",
    "rpctrace/atlas2-mds1.20261012T100000Z.log.zst",
    "rpctrace/golden.log",
    "sacct/rhea-2026-10",
)


def test_the_latest_month_is_loaded_first_and_jobs_before_counters(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "YEAR", tmp_path)
    for name in FILES:
        (tmp_path / name).parent.mkdir(parents=True, exist_ok=True)
        (tmp_path / name).write_text("x")

    steps = [
        [step.arguments[0], *(str(file.relative_to(tmp_path)) for file in step.files)]
        for step in loading.of_year()
    ]

    assert steps == [
        ["pbs", "pbs/202611"],
        ["panda", "panda/2026-W45.json.gz"],
        ["job_stats", "job_stats/atlas2-MDT0000/20261101T120000Z.txt"],
        ["alps", "alps/messages-202610"],
        ["pbs", "pbs/202610"],
        ["sacct", "sacct/rhea-2026-10"],
        [
            "rpctrace",
            "rpctrace/atlas2-mds1.20261009T100000Z.log.zst",
            "rpctrace/atlas2-mds1.20261012T100000Z.log.zst",
        ],
        ["job_stats", "job_stats/atlas2-MDT0000/20261002T120000Z.txt"],
        ["pbs", "late/pbs-20261007"],
        ["rpctrace", "rpctrace/golden.log"],
    ]


def test_reads_of_counters_are_loaded_in_parts_and_traces_together(tmp_path, monkeypatch):
    monkeypatch.setattr(loading, "YEAR", tmp_path)
    for folder in ("md_stats/atlas2-MDT0000", "rpctrace"):
        (tmp_path / folder).mkdir(parents=True)
        for n in range(150):
            (tmp_path / folder / f"20261101T10{n:04}Z.log").write_text("x")

    assert [len(step.files) for step in loading.of_year()] == [150, 100, 50]
