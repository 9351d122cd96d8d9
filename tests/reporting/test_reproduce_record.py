"""Verification records: what they must hold to, and how scores are compared."""

from __future__ import annotations

import json
from types import SimpleNamespace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.submissions import submission

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.reporting.pinned import telling_columns
from geneb.reporting.score_comparison import (
    MACRO_TOLERANCE,
    TASK_TOLERANCE,
    beyond_tolerance,
    choose_comparison,
    score_differences,
)
from geneb.reporting.verification import VerificationRecord, find_record, read_record, write_record

SPEC = load_spec()
HERE = SimpleNamespace(protocol="geneb-lr-1", backend="sklearn", versions={"numpy": "2"}, blas=[])


def record(level="scores-verified", tasks=SPEC.task_ids, **changes):
    """A record that holds, as a JSON value."""
    return {
        "format": "geneb-verification-1",
        "model_id": "some-model",
        "level": level,
        "submission_sha256": "a" * 64,
        "store_fingerprint": "b" * 64,
        "protocol": "geneb-lr-1",
        "comparison": {
            "kind": "tolerance",
            "reason": "other versions",
            "task_tolerance": 0.01,
            "macro_tolerance": 0.002,
        },
        "environment": {
            "backend": "sklearn",
            "versions": {"numpy": "2.0"},
            "blas": [{"internal_api": "openblas", "num_threads": 2}],
            "processor": "some processor",
        },
        "tasks": {
            task: {"csv_sha256": "c" * 64, "manifest_sha256": "d" * 64, "rows": 10}
            for task in tasks
        },
        "differences": [],
        "reembedding": None,
        **changes,
    }


def write(folder, value, name="some-model"):
    path = folder / f"{name}.json"
    path.write_text(json.dumps(value), encoding="utf-8")
    return path


REEMBEDDING = {
    "record_sha256": "e" * 64,
    "store_fingerprint": "b" * 64,
    "seed": 17,
    "rows": 500,
    "tolerance": 1e-5,
    "largest_difference": 1e-6,
}
DIFFERENCE = {
    "regime": "full",
    "task": SPEC.task_ids[0],
    "metric": "MCC",
    "submitted": 0.5,
    "reproduced": 0.505,
}


def test_a_record_reads_back(tmp_path):
    """To the same bytes."""
    found = read_record(write(tmp_path, record(differences=[DIFFERENCE])))
    path = write_record(tmp_path / "new", found)
    assert read_record(path) == found
    assert path.read_text(encoding="utf-8") == found.to_json()
    assert find_record(tmp_path / "nowhere", "some-model") is None


@pytest.mark.parametrize(
    ("value", "words"),
    [
        (record(level="verified"), "needs rows that were embedded again"),
        (record(tasks=SPEC.task_ids[1:]), "needs all tasks; 1 are missing"),
        (
            record(
                level="verified",
                reembedding={**REEMBEDDING, "largest_difference": 0.1},
            ),
            "above the tolerance",
        ),
        (
            record(
                level="verified",
                reembedding={**REEMBEDDING, "store_fingerprint": "0" * 64},
            ),
            "for another store",
        ),
        (record(differences=[{**DIFFERENCE, "reproduced": 0.52}]), "beyond the tolerance"),
        (
            record(differences=[{**DIFFERENCE, "task": None, "reproduced": 0.503}]),
            "beyond the tolerance",
        ),
        (
            record(comparison={**record()["comparison"], "task_tolerance": 0.5}),
            "comparison.task_tolerance",
        ),
        (
            record(comparison={**record()["comparison"], "macro_tolerance": 0.01}),
            "comparison.macro_tolerance",
        ),
        (record(comparison={**record()["comparison"], "kind": "exact"}), "no tolerance"),
        (record(protocol="other"), "the protocol must be geneb-lr-1"),
        (record(level="official"), "level"),
        (record(extra=1), "extra"),
        (record(submission_sha256="A" * 64), "submission_sha256"),
        (record(tasks=[], level="scores-sampled"), "tasks"),
        (record(differences=[{**DIFFERENCE, "submitted": True}]), "submitted"),
        ([], "the whole"),
    ],
)
def test_a_record_that_does_not_hold_is_refused(value, words, tmp_path):
    """Levels are earned, differences are within the tolerance, nothing unknown is passed on."""
    with pytest.raises(InputError, match=words):
        read_record(write(tmp_path, value))


def test_room_for_rows_that_were_embedded_again(tmp_path):
    """Then, and only then, a record is of the highest level."""
    value = record(level="verified", reembedding=REEMBEDDING)
    assert read_record(write(tmp_path, value)).level == "verified"


def test_a_record_under_another_name_is_refused(tmp_path):
    """It would raise another model."""
    with pytest.raises(InputError, match="belongs to another model"):
        read_record(write(tmp_path, record(), name="other"))


def test_a_higher_record_is_not_lost(tmp_path):
    """A record of the same file is replaced by one of the same level or above only."""
    high, low = record(), record(level="scores-sampled")
    write_record(tmp_path, VerificationRecord.model_validate(high))
    with pytest.raises(InputError, match="higher level"):
        write_record(tmp_path, VerificationRecord.model_validate(low))
    other = VerificationRecord.model_validate({**low, "submission_sha256": "f" * 64})
    write_record(tmp_path, other)
    assert find_record(tmp_path, "some-model") == other


@pytest.mark.parametrize("field", ["protocol", "backend", "versions", "blas"])
def test_scores_are_compared_exactly_only_where_nothing_differs(field):
    """Versions, BLAS with kernel and threads, backend, protocol."""
    assert choose_comparison(HERE, HERE).kind == "exact"
    stated = SimpleNamespace(**{**vars(HERE), field: "other"})
    found = choose_comparison(stated, HERE)
    assert (found.task_tolerance, found.macro_tolerance) == (TASK_TOLERANCE, MACRO_TOLERANCE)
    assert found.reason == f"other {field} than in the evidence"
    assert choose_comparison(None, HERE).kind == "tolerance"


def test_macro_has_a_tolerance_of_its_own():
    """Each task is within 0.01, all of them in one direction are not within 0.002 together."""
    ours = submission("some-model", start=0.4)["results"]
    theirs = submission("some-model", start=0.405)["results"]
    comparison = choose_comparison(None, HERE)
    found = score_differences(theirs, ours, SPEC.task_ids)
    faults = list(beyond_tolerance(found, comparison))
    assert len(found) == 3 * 101
    assert {fault.where for fault in faults} == {f"{one}, macro, MCC" for one in SPEC.regimes}
    assert score_differences(theirs, ours, SPEC.task_ids[:50])[0].task is not None
    assert len(score_differences(theirs, ours, SPEC.task_ids[:50])) == 150
    assert score_differences(ours, ours, SPEC.task_ids) == []


def test_a_column_that_tells_every_label_is_found():
    """Whatever its values are, and in all splits together; one row amiss, and it tells nothing."""
    generator = np.random.default_rng(0)
    labels = np.arange(60) % 3
    vectors = generator.normal(size=(60, 5)).astype(np.float32)
    assert telling_columns([(vectors, labels)], 3).tolist() == []
    vectors[:, 2] = np.array([7.0, -2.0, 0.5], dtype=np.float32)[labels] + 0.1 * vectors[:, 1]
    parts = [(vectors[:40], labels[:40]), (vectors[40:], labels[40:])]
    assert telling_columns(parts, 3).tolist() == [2]
    vectors[59, 2] = 7.0
    assert telling_columns(parts, 3).tolist() == []


def test_one_class_tells_nothing():
    """There is nothing to tell apart."""
    vectors = np.ones((4, 2), dtype=np.float32)
    assert telling_columns([(vectors, np.zeros(4, dtype=np.int64))], 2).tolist() == []


@settings(deadline=None, max_examples=60)
@given(
    st.lists(
        st.tuples(st.integers(0, 2), st.sampled_from([-1.0, 0.0, 0.5, 2.0])),
        min_size=2,
        max_size=8,
    )
)
def test_telling_is_being_separable(rows):
    """Against the definition: sorted by value, each class stands in one piece, without ties."""
    labels = np.array([label for label, _ in rows])
    values = np.array([[value] for _, value in rows], dtype=np.float32)
    by_value: dict[float, set[int]] = {}
    for label, value in rows:
        by_value.setdefault(value, set()).add(label)
    order = [next(iter(by_value[value])) for value in sorted(by_value)]
    pieces = [label for place, label in enumerate(order) if place == 0 or order[place - 1] != label]
    separable = (
        all(len(found) == 1 for found in by_value.values())
        and len(set(pieces)) == len(pieces)
        and len(set(labels.tolist())) > 1
    )
    assert (telling_columns([(values, labels)], 3).tolist() == [0]) == separable
