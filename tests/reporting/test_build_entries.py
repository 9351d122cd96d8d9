"""Who stands in the leaderboard: what is refused, and who decides what is said of a model."""

from __future__ import annotations

import hashlib
import json

import pytest
from support.submissions import submission, write_submission

from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.errors import InputError, NotFoundError
from geneb.reporting.entries import entries_of, read_leaderboard

SPEC = load_spec()
TASK = SPEC.task_ids[0]


@pytest.fixture
def folder(tmp_path):
    """A folder with one good submission."""
    path = tmp_path / "submissions"
    path.mkdir()
    write_submission(path, submission("good"))
    return path


def entry(folder, model_id, verifications=None):
    found = read_leaderboard(folder, verifications)
    return next(one for one in found.entries if one.model_id == model_id), found.notes


def record(folder, path, level="scores-verified"):
    """Write a record of a submission's file."""
    folder.mkdir(exist_ok=True)
    tasks = SPEC.task_ids if level != "scores-sampled" else SPEC.task_ids[:2]
    reembedding = {
        "record_sha256": "e" * 64,
        "store_fingerprint": "b" * 64,
        "seed": 1,
        "rows": 10,
        "tolerance": 1e-5,
        "largest_difference": 0.0,
    }
    value = {
        "model_id": path.stem,
        "level": level,
        "submission_sha256": hashlib.sha256(path.read_bytes()).hexdigest(),
        "store_fingerprint": "b" * 64,
        "protocol": "geneb-lr-1",
        "comparison": {
            "kind": "exact",
            "reason": None,
            "task_tolerance": 0.0,
            "macro_tolerance": 0.0,
        },
        "environment": {"backend": "sklearn", "versions": {}, "blas": [], "processor": "p"},
        "tasks": {
            task: {"csv_sha256": "c" * 64, "manifest_sha256": "d" * 64, "rows": 1} for task in tasks
        },
        "differences": [],
        "reembedding": reembedding if level == "verified" else None,
    }
    found = folder / path.name
    found.write_text(json.dumps(value), encoding="utf-8")
    return found


def test_all_that_is_wrong_is_named(folder):
    """Every file, every fault, with its JSON path; nothing is built."""
    incomplete = submission("incomplete")
    del incomplete["results"]["full"][TASK]
    del incomplete["results"]["1shot"]
    write_submission(folder, incomplete)
    wrong = submission("wrong")
    wrong["results"]["full"][TASK]["MCC"] = 1.2
    wrong["results"]["10shot"]["no-such-task"] = {"MCC": 0.1, "Acc": 0.1, "F1": 0.1}
    write_submission(folder, wrong)
    write_submission(folder, submission("renamed"), "other-name")
    (folder / "broken.json").write_text("{", encoding="utf-8")
    with pytest.raises(InputError) as caught:
        read_leaderboard(folder)
    lines = caught.value.found.split("\n")
    for name, part in (
        ("incomplete.json", TASK),
        ("incomplete.json", "1shot"),
        ("wrong.json", "MCC"),
        ("wrong.json", "no-such-task"),
        ("other-name.json", "model_id"),
        ("broken.json", "JSON"),
    ):
        assert any(name in line and part in line for line in lines), (name, part, lines)
    assert "good" not in caught.value.found


def test_links_are_not_followed(folder, tmp_path):
    """A submission is a file."""
    write_submission(tmp_path, submission("linked"))
    (folder / "linked.json").symlink_to(tmp_path / "linked.json")
    with pytest.raises(InputError, match=r"linked\.json"):
        read_leaderboard(folder)


def test_an_ending_in_capitals_is_refused_not_passed_over(folder):
    """Nobody wonders where a submission has gone."""
    write_submission(folder, submission("loud")).rename(folder / "loud.JSON")
    with pytest.raises(InputError, match=r"loud\.JSON, \$\.model_id"):
        read_leaderboard(folder)


def test_names_that_differ_in_case_are_refused(folder):
    """Some file systems keep one of them only."""
    write_submission(folder, submission("GOOD"))
    if len(list(folder.iterdir())) == 1:
        pytest.skip("this file system is one of them")
    with pytest.raises(InputError, match="two files are of one model"):
        read_leaderboard(folder)


def test_no_folder_and_no_submissions(tmp_path):
    """Each has its message."""
    with pytest.raises(NotFoundError, match="no such folder"):
        read_leaderboard(tmp_path / "nowhere")
    with pytest.raises(NotFoundError, match="no submissions"):
        read_leaderboard(tmp_path)


def test_evidence_of_nobody_and_hidden_files_are_passed_over(folder):
    """They lie beside submissions."""
    (folder / "other.evidence.json").write_text("{}", encoding="utf-8")
    (folder / ".hidden.json").write_text("{", encoding="utf-8")
    assert [one.model_id for one in read_leaderboard(folder).entries] == ["good"]


def test_evidence_that_is_wrong_keeps_its_submission_out(folder):
    """It says what the scores were made with, which decides whether they belong here."""
    (folder / "good.evidence.json").write_text("{}", encoding="utf-8")
    with pytest.raises(InputError, match=r"good\.evidence\.json, \$"):
        read_leaderboard(folder)


@pytest.mark.parametrize("claim", ["official", "verified"])
def test_a_contributor_cannot_give_the_maintainers_words(folder, claim):
    """Whoever they say that they are."""
    document = submission("cheat")
    document["meta"] |= {"provenance": claim, "submitted_by": "GENEB authors"}
    write_submission(folder, document)
    with pytest.raises(InputError, match=r"cheat\.json, \$\.meta\.provenance"):
        read_leaderboard(folder)


def test_what_was_looked_up_wins_over_what_is_claimed(folder):
    """Name, size and provenance of a model that is published."""
    document = submission("GROVER")
    document["meta"] |= {"display": "Best of all", "params": 1, "submitted_by": "GENEB authors"}
    document["meta"] |= {"provenance": "self-reported", "zero_shot": True}
    write_submission(folder, document)
    found, _ = entry(folder, "GROVER")
    facts = load_model_meta().find("GROVER")
    assert (found.display, found.params, found.provenance, found.official) == (
        facts.display,
        facts.params,
        "official",
        True,
    )
    assert found.zero_shot is True  # nobody else knows


def test_official_scores_cannot_be_replaced_by_others(folder):
    """Another's scores of the same model need another id."""
    document = submission("GROVER")
    document["meta"]["submitted_by"] = "somebody"
    write_submission(folder, document)
    with pytest.raises(InputError, match=r"GROVER\.json, \$\.meta\.submitted_by"):
        read_leaderboard(folder)


def test_an_unknown_model_says_who_it_is(folder):
    """Nobody else does; its scores are self-reported."""
    found, _ = entry(folder, "good")
    assert (found.display, found.params, found.provenance) == ("Good", 1000, "self-reported")
    document = submission("good")
    document["meta"]["params"] = None
    write_submission(folder, document)
    with pytest.raises(InputError, match=r"good\.json, \$\.meta\.params"):
        read_leaderboard(folder)


@pytest.mark.parametrize(
    ("level", "provenance"),
    [
        ("scores-sampled", "self-reported"),
        ("scores-verified", "scores-verified"),
        ("verified", "verified"),
    ],
)
def test_a_record_raises_the_provenance(folder, tmp_path, level, provenance):
    """A sample of tasks does not."""
    record(tmp_path / "records", folder / "good.json", level)
    found, notes = entry(folder, "good", tmp_path / "records")
    assert (found.provenance, found.official, notes) == (provenance, False, ())


def test_a_record_is_void_once_the_file_has_changed(folder, tmp_path):
    """By one byte; and it is said."""
    record(tmp_path / "records", folder / "good.json")
    with (folder / "good.json").open("a", encoding="utf-8") as stream:
        stream.write("\n")
    found, notes = entry(folder, "good", tmp_path / "records")
    assert found.provenance == "self-reported"
    assert notes == ("good: its verification record is of another version of the file",)


def test_a_record_of_one_submission_is_not_another_s(folder, tmp_path):
    """Neither under its name nor under the other's; what is not used is said."""
    records = tmp_path / "records"
    path = record(records, folder / "good.json")
    write_submission(folder, submission("other"))
    path.rename(records / "other.json")
    with pytest.raises(InputError, match="belongs to another model"):
        read_leaderboard(folder, records)
    value = json.loads((records / "other.json").read_text(encoding="utf-8"))
    value["model_id"] = "other"
    (records / "other.json").write_text(json.dumps(value), encoding="utf-8")
    found, notes = entry(folder, "other", records)
    assert found.provenance == "self-reported"
    assert notes == ("other: its verification record is of another version of the file",)


def test_a_record_without_a_submission_is_told(folder, tmp_path):
    """It may have been meant for one that was renamed."""
    records = tmp_path / "records"
    record(records, folder / "good.json")
    document = submission("gone")
    record(records, write_submission(tmp_path, document))
    _, notes = entry(folder, "good", records)
    assert notes == ("gone.json: there is no submission that this verification record is of",)


def test_no_folder_of_records(folder, tmp_path):
    """A folder that was named is there; none is none."""
    with pytest.raises(NotFoundError, match="no such folder of verification records"):
        read_leaderboard(folder, tmp_path / "nowhere")
    assert read_leaderboard(folder, None).notes == ()


def test_one_name_for_two_models_is_told(folder):
    """In any case of letters: a maintainer decides who is taken for whom."""
    document = submission("other")
    document["meta"]["display"] = "GOOD"
    write_submission(folder, document)
    assert read_leaderboard(folder).notes == ("good and other are both shown as Good",)


def test_a_record_never_lowers(folder, tmp_path):
    """Official stays official."""
    document = submission("GROVER")
    document["meta"]["submitted_by"] = "GENEB authors"
    path = write_submission(folder, document)
    record(tmp_path / "records", path)
    assert entry(folder, "GROVER", tmp_path / "records")[0].provenance == "official"


def test_a_record_that_does_not_hold_stops_the_build(folder, tmp_path):
    """It is named."""
    path = record(tmp_path / "records", folder / "good.json")
    value = json.loads(path.read_text(encoding="utf-8"))
    path.write_text(json.dumps({**value, "level": "verified"}), encoding="utf-8")
    with pytest.raises(InputError, match="not a valid verification record"):
        read_leaderboard(folder, tmp_path / "records")


def test_a_look_at_a_file_takes_nothing_in(tmp_path):
    """Size and name as in the leaderboard, but the scores are not official by lying there."""
    paths = []
    for name in ("GROVER", "unknown"):
        document = submission(name)
        del document["results"]["full"][TASK]
        paths.append(write_submission(tmp_path, document))
    known, unknown = entries_of(paths)
    assert (known.params, known.provenance) == (87101793, "self-reported")
    assert (unknown.display, unknown.params) == ("Unknown", 1000)
