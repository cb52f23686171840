"""Experiments in the browser: uploads, findings, sharing, attachments, and bad input."""

import json
from datetime import timedelta

import pytest
from django.core.files.uploadedfile import SimpleUploadedFile
from django.utils import timezone

from ioportal.experiments import uploads
from ioportal.experiments.models import Experiment, Run, Upload, UploadPart
from ioportal.ingest.models import Segment
from tests.experiments.pages.conftest import RUNS
from tests.web.reading import csv_of, json_of, words_of

PAGE = "/experiments/protocols/"


def test_an_uploaded_table_of_runs_is_compared_run_by_run(as_alice, send, latest):
    response = send(as_alice)

    assert latest().message == "12 lines, none rejected."
    state = words_of(as_alice.get(response["Location"]))
    assert "Show the experiment" in state
    page = words_of(as_alice.get(PAGE))
    assert "before: 1 of 6 runs hung." in page
    assert "after against before: Wall time fell 1.98\u00d7" in page
    facts = json_of(as_alice.get(f"{PAGE}?format=json"))
    assert [run["name"] for run in facts["runs"]] == [
        *("b1", "b2", "b3", "b4", "b5", "b6"),
        *("a1", "a2", "a3", "a4", "a5"),
    ]
    [row] = [
        row
        for row in csv_of(as_alice.get(f"{PAGE}exports/runs/metrics/?format=csv"))
        if (row["metric"], row["arm"]) == ("wall_s", "after")
    ]
    assert (row["runs"], float(row["median"])) == ("5", 51)
    assert float(row["ratio"]) == pytest.approx(51 / 101)


def test_a_file_is_loaded_once(as_alice, send, latest):
    send(as_alice)
    send(as_alice)

    assert latest().message == "Loaded before; nothing changed."
    assert Run.objects.count() == 11
    assert not UploadPart.objects.exists()


def test_a_run_with_other_values_is_refused_unless_it_is_replaced(as_alice, send, latest):
    other = RUNS.replace("before,b1,dcap,local,65,100", "before,b1,dcap,local,65,300")
    send(as_alice)
    send(as_alice, other)

    assert (
        "Run b1 has another value of metrics.wall_s already (100.0 and 300.0)" in latest().message
    )
    assert Run.objects.get(name="b1").metrics["wall_s"] == 100
    send(as_alice, other, replace="on")
    assert Run.objects.get(name="b1").metrics["wall_s"] == 300


def test_files_arrive_in_parts(as_alice, gzipped, monkeypatch, latest):
    monkeypatch.setattr(uploads, "PART_BYTES", 40)
    content = gzipped(RUNS)
    declared = json.dumps([["runs.csv.gz", len(content)]])
    form = {"experiment": "Protocols", "declared": declared}
    target = as_alice.post("/experiments/upload/", form).json()

    def send_part(number):
        part = content[40 * number : 40 * (number + 1)]
        return as_alice.post(
            f"{target['files'][0]}{number}/", part, content_type="application/octet-stream"
        )

    assert send_part(1).status_code == send_part(0).status_code == send_part(0).status_code == 200
    incomplete = as_alice.post(target["complete"])
    assert incomplete.status_code == 400
    assert "80 of" in incomplete.json()["errors"]["content"][0]
    for number in range(2, len(content) // 40 + 1):
        assert send_part(number).status_code == 200
    assert as_alice.post(target["complete"]).status_code == 200
    uploads.load_next(1)
    assert latest().state == Upload.State.LOADED
    assert Run.objects.count() == 11


@pytest.mark.parametrize(
    ("content", "reason"),
    [
        pytest.param(b"\x1f\x8b not gzip", "cannot be read to its end", id="a corrupt gzip file"),
        pytest.param(b"hello\nworld\n", "its format is not recognised", id="no known format"),
    ],
)
def test_an_unreadable_file_loads_nothing_and_says_why(as_alice, send, latest, content, reason):
    response = send(as_alice, content, name="notes.txt")

    assert latest().state == Upload.State.FAILED
    assert reason in words_of(as_alice.get(response["Location"]))
    assert not Segment.objects.exists()
    assert not Run.objects.exists()


def test_large_uploads_and_bombs_are_refused(as_alice, send, settings, gzipped, latest):
    settings.UPLOAD_BYTES = 1_000
    settings.UPLOAD_CONTENT_BYTES = 10_000
    too_large = send(as_alice, "x" * 1_001)

    assert too_large.status_code == 400
    assert "an upload has at most" in words_of(too_large)
    send(as_alice, gzipped("before,b1\n" * 10_000), format="runs")
    assert "its content is larger than permitted" in latest().message


def test_abandoned_uploads_are_deleted(as_alice):
    form = {"experiment": "Protocols", "declared": '[["a", 5]]'}
    as_alice.post("/experiments/upload/", form)

    uploads.discard_abandoned(timezone.now() + timedelta(days=2))
    assert not Upload.objects.exists()


def test_an_upload_whose_worker_dies_is_loaded_again_and_then_given_up(as_alice, send, latest):
    send(as_alice)
    Upload.objects.update(state=Upload.State.LOADING, attempts=1)
    uploads.load_next(1)
    assert latest().state == Upload.State.FAILED  # its content was deleted with the success
    Upload.objects.update(state=Upload.State.LOADING, attempts=3)
    uploads.load_next(1)
    assert "The worker stopped each time" in latest().message


def test_only_the_owner_staff_and_invited_users_see_an_experiment(
    as_alice, as_charlie, as_bob, as_staff, send
):
    send(as_alice)
    experiment = Experiment.objects.get()
    run = Run.objects.first()
    addresses = [PAGE, f"{PAGE}runs/{run.pk}/", f"{PAGE}exports/runs/list/?format=csv"]

    assert [as_charlie.get(url).status_code for url in addresses] == [404, 404, 404]
    assert [as_staff.get(url).status_code for url in addresses] == [200, 200, 200]
    link = f"/experiments/shared/{experiment.share_key}/"
    assert "Open the experiment" in as_charlie.get(link).content.decode()  # as a scanner does
    assert [as_charlie.get(url).status_code for url in addresses] == [404, 404, 404]
    as_charlie.post(link)
    assert [as_charlie.get(url).status_code for url in addresses] == [200, 200, 200]
    assert as_charlie.get(f"{PAGE}edit/").status_code == 404
    as_alice.post(f"{PAGE}edit/", {"new_link": "yes"})
    assert as_charlie.get(PAGE).status_code == 404
    Experiment.objects.update(project="PHY12")  # bob's
    assert (as_bob.get(PAGE).status_code, as_charlie.get(PAGE).status_code) == (200, 404)


def test_users_share_with_their_own_projects_only(as_alice, send):
    send(as_alice)
    form = {"name": "Protocols", "project": "PHY12"}

    assert "You are not a member" in words_of(as_alice.post(f"{PAGE}edit/", form))


def test_a_name_of_another_users_experiment_makes_a_new_one(as_alice, as_charlie, send):
    send(as_alice)
    send(as_charlie)

    assert sorted(Experiment.objects.values_list("slug", "owner__username")) == [
        ("protocols", "alice"),
        ("protocols-2", "charlie"),
    ]


def test_staff_name_the_experiment_of_another_user_unambiguously(as_alice, as_staff, send):
    send(as_alice)
    refused = send(as_staff, RUNS.replace("b1", "b7"))
    send(as_staff, RUNS.replace("b1", "b7"), experiment="protocols")

    assert "'protocols' (owner: alice). Enter the quoted short name" in words_of(refused)
    [experiment] = Experiment.objects.all()
    assert experiment.runs.filter(name__in=["b1", "b7"]).count() == 2


def test_attachments_are_downloads_only(as_alice, send):
    send(as_alice)
    run = Run.objects.first()
    page = b"<script>alert(1)</script>"
    attached = SimpleUploadedFile("<b>.html", page, content_type="text/html")
    as_alice.post(f"{PAGE}runs/{run.pk}/attach/", {"file": attached})
    [attachment] = run.attachments.all()
    response = as_alice.get(f"{PAGE}runs/{run.pk}/attachments/{attachment.pk}/")

    assert response.content == page
    assert response["Content-Type"] == "application/octet-stream"
    assert response["Content-Disposition"].startswith("attachment; ")
    assert response["X-Content-Type-Options"] == "nosniff"


def test_a_deleted_run_can_be_loaded_again(as_alice, send):
    send(as_alice)
    run = Run.objects.get(name="b1")
    as_alice.post(f"{PAGE}runs/{run.pk}/edit/", {"delete": "yes"})
    assert Run.objects.count() == 10

    send(as_alice)
    assert Run.objects.count() == 11


def test_labels_and_the_recipe_are_edited(as_alice, send):
    send(as_alice)
    run = Run.objects.get(name="b1")
    url = f"{PAGE}runs/{run.pk}/"
    labels = "protocol = dcap\nread-ahead = 32 kB"
    form = {"arm": "other", "labels": labels, "release": "3_3_6", "state": "failed"}
    as_alice.post(f"{url}edit/", form)

    facts = json_of(as_alice.get(f"{url}?format=json"))
    assert facts["labels"] == {"protocol": "dcap", "read-ahead": "32 kB"}
    assert (facts["recipe"], facts["state"]) == ({"release": "3_3_6"}, "failed")
    assert facts["arm"] == "other"
    unknown = as_alice.post(f"{url}edit/", form | {"job": "99"})
    assert "No job '99'." in words_of(unknown)
    assert "read-ahead 32 kB" in words_of(as_alice.get(url))


def test_too_few_runs_for_the_number_of_tests_are_pointed_out(as_alice, send):
    rows = [f"{arm},{arm}{n},{n + 9 * k},{n + 8 * k},{n + 7 * k}" for n in range(4)
            for arm, k in (("before", 1), ("after", 2))]  # fmt: skip
    send(as_alice, "\n".join(["arm,run,a_s,b_s,c_s", *rows]))

    advice = "3 tests of so few runs cannot confirm a change, however large it is: repeat each arm"
    assert f"{advice} at least 5 times." in words_of(as_alice.get(PAGE))


def test_arms_are_renamed_and_ordered(as_alice, send):
    send(as_alice)
    before, after = Experiment.objects.get().arms.all()
    form = {
        "arms": "yes",
        f"name_{before.pk}": "after",
        f"place_{before.pk}": 2,
        f"name_{after.pk}": "before",
        f"place_{after.pk}": 1,
    }
    as_alice.post(f"{PAGE}edit/", form)

    assert [arm.pk for arm in Experiment.objects.get().arms.all()] == [after.pk, before.pk]
    assert "after against before: Wall time rose 1.98" in words_of(as_alice.get(PAGE))
    same = as_alice.post(f"{PAGE}edit/", form | {f"name_{after.pk}": "after"})
    assert "Two arms have the same name." in words_of(same)


def test_an_upload_without_a_file_shows_the_form(as_alice):
    response = as_alice.post("/experiments/upload/", {"experiment": "x", "declared": "null"})

    assert response.status_code == 400
    assert "Select at least one file." in words_of(response)


def test_runs_of_different_set_ups_are_not_compared_as_a_whole(as_alice, send):
    send(as_alice, RUNS.replace("b1,dcap,local", "b1,dcap,remote"))

    page = words_of(as_alice.get(PAGE))
    assert "The runs of an arm differ in locality: arms are not compared as a whole." in page
    assert "Wall time fell" not in page
    assert "not compared" in page
    assert "reference" not in page


REPORT = """<FrameworkJobReport>{}<PerformanceReport><PerformanceSummary Metric="Timing">
<Metric Name="TotalJobTime" Value="10"/></PerformanceSummary></PerformanceReport>
</FrameworkJobReport>"""
MANY_EVENTS = (
    "<InputFile><InputType>primaryFiles</InputType><EventsRead>1e15</EventsRead></InputFile>"
)
STEP = '{"_id": "\\ud800", "fwjr": {"steps": {"cmsRun1": {"status": 0, "start": 5}}}}'


@pytest.mark.parametrize(
    ("name", "content"),
    [
        pytest.param("r.xml", REPORT.format(MANY_EVENTS * 20_000), id="more events than a number"),
        pytest.param("w.json", STEP, id="a lone surrogate"),
        pytest.param("p.json", '{"prmon": {"Version": "\\udfff"}, "Max": {"rss": 5}}', id="prmon"),
    ],
)
def test_extreme_files_are_loaded_or_refused_at_once(as_alice, send, latest, name, content):
    send(as_alice, content, name=name)

    assert latest().attempts == 1
    assert latest().message not in {"", uploads._FAULT}  # noqa: SLF001  (the reason of a fault)


def test_a_fault_fails_one_upload_and_the_next_is_loaded(as_alice, send, latest, monkeypatch):
    def fail(*_):
        raise RuntimeError("a fault")

    with monkeypatch.context() as faulty:
        faulty.setattr(uploads, "_load_files", fail)
        send(as_alice)
    assert (latest().state, latest().message) == ("failed", uploads._FAULT)  # noqa: SLF001
    send(as_alice)
    assert latest().state == Upload.State.LOADED


def test_unfinished_uploads_of_a_user_are_limited(as_alice, as_charlie):
    form = {"experiment": "Protocols", "declared": '[["a", 5]]'}
    for _ in range(20):
        assert as_alice.post("/experiments/upload/", form).status_code == 201

    refused = as_alice.post("/experiments/upload/", form)
    assert "You have 20 uploads that are not loaded yet" in refused.json()["errors"]["content"][0]
    assert as_charlie.post("/experiments/upload/", form).status_code == 201


def test_users_take_turns(as_alice, as_charlie):
    clients = (as_alice, as_alice, as_alice, as_charlie)
    for client in clients:
        files = [SimpleUploadedFile("runs.csv", RUNS.encode())]
        client.post("/experiments/upload/", {"experiment": "Protocols", "content": files})

    assert uploads.load_next(5) == 4

    loaded = Upload.objects.order_by("finished_at")
    assert [upload.owner.username for upload in loaded] == ["alice", "charlie", "alice", "alice"]


@pytest.mark.parametrize("declared", ["[" * 100_000 + "]" * 100_000, "[[1, " + "9" * 6_000 + "]]"])
def test_hostile_declarations_are_refused(as_alice, declared):
    form = {"experiment": "x", "declared": declared}

    assert as_alice.post("/experiments/upload/", form).status_code == 400


@pytest.mark.parametrize("value", ["1e300", "1e-300", "1e16"])
def test_numbers_that_no_page_can_draw_are_rejected(as_alice, send, latest, value):
    send(as_alice, f"arm,run,wall_s\na,1,{value}\na,2,5\n")

    assert "1 rejected" in latest().message
    assert as_alice.get(PAGE).status_code == 200


def test_a_clock_that_was_set_leaves_out_the_timeline(as_alice, send, latest):
    call = 'openat(AT_FDCWD, "/lustre/a", O_RDONLY) = 3 <0.1>'
    send(as_alice, f"1 1700000000.1 {call}\n1 999999999999.9 {call}\n", name="job.strace")

    assert latest().state == Upload.State.LOADED
    assert as_alice.get(PAGE).status_code == 200


@pytest.mark.parametrize("url", ["/experiments/shared/%00/", "/model/?experiment=%00"])
def test_null_characters_in_addresses(as_alice, url):
    assert as_alice.get(url).status_code in {200, 404}
