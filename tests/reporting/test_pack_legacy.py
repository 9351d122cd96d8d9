"""Packing the published runner's result files."""

from __future__ import annotations

import hashlib
import json

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.results_folders import legacy_name, write_legacy

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.reporting.legacy import FileName, parse_name, read_legacy
from geneb.reporting.pack import Statement, pack, write_packed
from geneb.reporting.validate import validate_files

SPEC = load_spec()
SAID = Statement(display="Some model", params=12)
SOME = SPEC.task_ids[:2]
NT = "InstaDeepAI_nucleotide_transformer_downstream_tasks_enhancers"


def refused(folder, **kwargs):
    with pytest.raises(InputError) as caught:
        pack([folder], SAID, model_id="some-model", **kwargs)
    return str(caught.value)


@given(
    st.sampled_from(SPEC.task_ids),
    st.sampled_from(SPEC.regimes),
    st.from_regex(r"[A-Za-z][A-Za-z0-9_.-]{0,20}[A-Za-z0-9]", fullmatch=True),
)
@settings(deadline=None)
def test_names_are_taken_apart(task, regime, stem):
    """Underscores in all parts; the longest task id wins (`..enhancers_types`)."""
    found = parse_name(legacy_name(task, regime, stem), SPEC.task_ids)

    assert found == FileName(stem, task, "MyExtractor", regime)


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("results.json", "the name is not"),
        ("other_m_x_E.json", "the name is not"),
        ("results_m_x_E.txt", "the name is not"),
        ("results_m_no_such_task_E.json", "no task"),
        (f"results_m_{NT}.json", "no task"),
        (f"results_m_{NT}_E_k-5.json.bak", "the name is not"),
        (f"results_{NT}_E.json", "no task"),
        (f"results_m_{NT}__k-1.json", "no model or no extractor"),
        (f"results_m_{NT}_{NT}_E.json", "several tasks"),
        (f"results_m_{NT}x_E.json", "no task"),
    ],
)
def test_names_that_say_too_little(name, words):
    """Each with its reason."""
    with pytest.raises(ValueError, match=words):
        parse_name(name, SPEC.task_ids)


def test_a_complete_folder(tmp_path):
    """Means become scores, the rest evidence."""
    folder = write_legacy(tmp_path / "raw")
    [one] = pack([folder], SAID, model_id="some-model")
    [path] = write_packed([one], tmp_path)
    document, evidence = json.loads(one.submission), json.loads(one.evidence)
    file = folder / legacy_name(SOME[1], "10shot")
    raw = json.loads(file.read_text())

    reports = validate_files([path, tmp_path / "some-model.evidence.json"])
    assert [(report.faults, report.warnings) for report in reports] == [([], [])] * 2
    assert document["results"]["10shot"][SOME[1]] == {
        "MCC": raw["mcc"]["mean"],
        "Acc": raw["accuracy"]["mean"],
        "F1": raw["f1_score"]["mean"],
    }
    assert evidence["source"] == "legacy"
    assert evidence["tasks"][SOME[1]]["10shot"] == {
        "file": file.name,
        "sha256": hashlib.sha256(file.read_bytes()).hexdigest(),
        "std": {"MCC": 0.01, "Acc": 0.01, "F1": 0.01},
    }
    assert any("legacy" in note for note in one.notes)


def test_an_incomplete_folder(tmp_path):
    """Refused with what is missing, or partial."""
    folder = write_legacy(tmp_path, SOME)

    assert "full: 98 tasks are missing" in refused(folder)
    [one] = pack([folder], SAID, model_id="some-model", partial=True)
    assert not one.complete


def test_all_files_that_cannot_be_used_are_listed(tmp_path):
    """Unknown, broken, doubled and of another model, at once."""
    folder = write_legacy(tmp_path, SOME)
    (folder / "results_m_no_such_task_E.json").write_text("{}")
    (folder / "notes.json").write_text("{}")
    (folder / legacy_name(SOME[0], "full")).write_text("{}")
    (folder / legacy_name(SOME[1], "full")).write_text('{"mcc": {"mean": NaN}}')
    (folder / legacy_name(SOME[0], "1shot", "other")).write_text("{}")
    message = refused(folder, partial=True)

    for words in (
        "results_m_no_such_task_E.json: no task",
        "notes.json: the name is not",
        f"{legacy_name(SOME[0], 'full')}: this is not a result file",
        f"{legacy_name(SOME[1], 'full')}: this is not JSON",
        f"{SOME[0]}, 1shot stands twice",
        "several models",
    ):
        assert words in message


@pytest.mark.parametrize("value", [1.5, -2, "0.5", None, True, 10**400])
def test_values_that_are_no_scores(tmp_path, value):
    """Refused by the file, or by the range of the metric."""
    folder = write_legacy(tmp_path, SOME)
    file = folder / legacy_name(SOME[0], "full")
    raw = json.loads(file.read_text())
    raw["accuracy"]["mean"] = value
    file.write_text(json.dumps(raw))

    message = refused(folder, partial=True)
    assert "accuracy.mean" in message or f"$.results.full.{SOME[0]}.Acc" in message


def test_the_model_has_to_be_named(tmp_path):
    """The files do not say how it is to be called."""
    with pytest.raises(InputError, match="--model-id"):
        pack([write_legacy(tmp_path, SOME)], SAID)


def test_a_link_among_the_files(tmp_path):
    """Is not followed."""
    folder = write_legacy(tmp_path / "raw", SOME)
    (tmp_path / "secret.json").write_text('{"secret": 1}')
    (folder / legacy_name(SPEC.task_ids[5], "full")).symlink_to(tmp_path / "secret.json")

    message = refused(folder, partial=True)
    assert "a symbolic link" in message
    assert "secret" not in message


def test_a_standard_deviation_may_be_unknown(tmp_path):
    """One file without it."""
    folder = write_legacy(tmp_path, SOME[:1])
    file = folder / legacy_name(SOME[0], "full")
    file.write_text(json.dumps({name: {"mean": 0.5} for name in ("mcc", "accuracy", "f1_score")}))

    assert read_legacy(folder).files[SOME[0]]["full"].std == {"MCC": None, "Acc": None, "F1": None}
