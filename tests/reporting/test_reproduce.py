"""Computing a submission's scores again: honest ones hold, and forgeries do not."""

from __future__ import annotations

import numpy as np
import pytest
from support.contributions import (
    MODEL,
    TASKS,
    contribute,
    forge,
    submit,
    write_spec_tasks,
)
from support.small_tasks import write_task

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError, NotFoundError
from geneb.reporting.reproduce import reproduce
from geneb.stores.verify import verify_store

ROWS = 40


@pytest.fixture(scope="module")
def data(tmp_path_factory, demo_data):
    """Three tasks under the benchmark's names."""
    return write_spec_tasks(demo_data, tmp_path_factory.mktemp("data"), TASKS, ROWS)


@pytest.fixture(scope="module")
def honest(tmp_path_factory, data):
    """A contribution that nobody touched."""
    return contribute(tmp_path_factory.mktemp("honest"), data, TASKS)


@pytest.fixture
def spoilt(honest, tmp_path):
    """A copy of it, to be spoilt."""
    return honest.copy(tmp_path / "spoilt")


def check(contribution, data, *, tasks=TASKS, **options):
    return reproduce(
        contribution.submission, store=contribution.store, data=data, tasks=tasks, **options
    )


def problems(found):
    assert found.record is None
    return "\n".join(map(str, found.faults))


@pytest.fixture(scope="module")
def reproduced(honest, data):
    """The honest contribution, computed again."""
    return check(honest, data)


def test_an_honest_submission_is_reproduced_to_the_bit(reproduced):
    """Same versions, BLAS and threads: every score is equal."""
    found = reproduced
    assert (found.faults, found.differences, found.tasks) == ([], [], list(TASKS))
    assert (found.comparison.kind, found.comparison.task_tolerance) == ("exact", 0)
    assert found.record.level == "scores-sampled"
    assert list(found.record.tasks) == list(TASKS)
    assert found.record.tasks[TASKS[0]].rows == 2 * ROWS
    assert found.record.reembedding is None


def test_all_tasks_give_the_higher_level(honest, data, reproduced, monkeypatch):
    """Of a benchmark that has no others; the record is the same bytes but for the level."""
    spec = load_spec()
    tasks = spec.tasks[:3]
    small = spec.model_copy(
        update={"tasks": tasks, "task_count": 3, "categories": (tasks[0].category,)}
    )
    for module in ("reproduce", "score_comparison", "verification"):
        monkeypatch.setattr(f"geneb.reporting.{module}.load_spec", lambda: small)
    record = check(honest, data, tasks=()).record
    assert record.level == "scores-verified"
    text = record.to_json()
    assert text.replace("scores-verified", "scores-sampled") == reproduced.record.to_json()


def test_an_altered_score_is_found(spoilt, data):
    """In the last digit, where the comparison is exact."""
    document = spoilt.document
    scores = document["results"]["10shot"][TASKS[1]]
    scores["MCC"] = float(np.nextafter(scores["MCC"], 1))
    spoilt.rewrite(document)
    found = check(spoilt, data)
    assert f"10shot, {TASKS[1]}, MCC" in problems(found)
    assert len(found.differences) == 1


def test_other_versions_are_compared_within_a_tolerance(spoilt, data):
    """0.01 a task: what is within is written down, what is beyond is a fault."""
    spoilt.change_evidence(lambda evidence: evidence["versions"].update(numpy="1.0"))
    document = spoilt.document
    scores = document["results"]["full"]
    scores[TASKS[0]]["Acc"] -= 0.009
    spoilt.rewrite(document)
    found = check(spoilt, data)
    assert found.comparison.kind == "tolerance"
    assert "versions" in found.comparison.reason
    assert [(one.task, one.metric) for one in found.record.differences] == [(TASKS[0], "Acc")]

    scores[TASKS[1]]["Acc"] -= 0.011
    spoilt.rewrite(document)
    found = check(spoilt, data)
    assert len(found.faults) == 1
    assert f"full, {TASKS[1]}, Acc" in problems(found)


def test_without_evidence_there_is_a_tolerance(spoilt, data):
    """And the record says why."""
    spoilt.evidence.unlink()
    found = check(spoilt, data)
    assert found.record.comparison.kind == "tolerance"
    assert "no evidence" in found.record.comparison.reason


def test_an_altered_label_is_found_in_the_task_data(spoilt, data, tmp_path):
    """The store, its manifest, the scores and the evidence all fit each other."""

    def flip(content):
        labels = content.labels.copy()
        labels[5] = 1 - labels[5]
        return content.changed(labels=labels)

    forge(spoilt.store, TASKS[2], flip)
    assert verify_store(spoilt.store).faults == []
    forged = submit(tmp_path / "spoilt", spoilt.store)
    said = problems(check(forged, data))
    assert f"task {TASKS[2]}, train" in said
    assert "another label" in said
    assert f"1 of {ROWS} rows, first row 5" in said


def test_permuted_rows_are_found_in_the_task_data(spoilt, data, tmp_path):
    """Even with each row's own label and vector."""
    forge(spoilt.store, TASKS[0], lambda content: content.in_order(np.arange(ROWS)[::-1]))
    forged = submit(tmp_path / "spoilt", spoilt.store)
    said = problems(check(forged, data))
    assert "another sequence" in said
    assert "another order" in said


def test_a_missing_row_is_found_in_the_task_data(spoilt, data, tmp_path):
    """Rows that a model does badly on cannot be left out."""
    forge(spoilt.store, TASKS[0], lambda content: content.in_order(np.arange(ROWS - 1)))
    forged = submit(tmp_path / "spoilt", spoilt.store)
    assert "not as many rows" in problems(check(forged, data))


def test_other_task_data_are_found(honest, data, tmp_path):
    """Classes of another task under this task's name."""
    write_task(tmp_path / f"{TASKS[0]}.csv", [("ACGT", "7", "train"), ("ACGA", "8", "test")])
    found = reproduce(honest.submission, store=honest.store, data=tmp_path, tasks=TASKS[:1])
    assert "the classes are not the CSV's" in problems(found)


def hide_labels(content, *, how):
    """Put the labels into the embeddings."""
    vectors = content.embeddings.copy()
    generator = np.random.default_rng(1)
    if how == "plainly":
        vectors[:, 3] = content.labels
    else:
        noise = generator.normal(size=len(vectors)).astype(np.float32)
        vectors[:, 3] = noise
        vectors[:, 4] = content.labels * np.float32(0.5) - noise
    return content.changed(embeddings=vectors)


def test_hidden_labels_are_not_the_embeddings_of_the_evidence(spoilt, data):
    """A store that was changed after the submission, with a manifest that fits."""
    forge(spoilt.store, TASKS[0], lambda content: hide_labels(content, how="plainly"))
    assert verify_store(spoilt.store).faults == []
    said = problems(check(spoilt, data))
    assert "not the embeddings that were submitted" in said


def test_labels_hidden_in_a_column_are_found(spoilt, data, tmp_path):
    """Where scores and evidence were made from them too, and would confirm each other."""
    forge(spoilt.store, TASKS[0], lambda content: hide_labels(content, how="plainly"))
    forged = submit(tmp_path / "spoilt", spoilt.store)
    said = problems(check(forged, data))
    assert "tells the label of every row" in said
    assert "column 3" in said


def test_labels_hidden_well_never_earn_the_highest_level(spoilt, data, tmp_path):
    """A store cannot vouch for itself: only embedding rows again could find this."""
    forge(spoilt.store, TASKS[0], lambda content: hide_labels(content, how="well"))
    forged = submit(tmp_path / "spoilt", spoilt.store)
    found = check(forged, data)
    assert found.faults == []
    assert found.record.level != "verified"


def test_a_damaged_store_is_not_probed(spoilt, data):
    """A flipped bit in a block."""
    block = spoilt.store / "tasks" / TASKS[0] / "test" / "embeddings" / "c.0.0"
    content = bytearray(block.read_bytes())
    content[11] ^= 1
    block.write_bytes(content)
    found = check(spoilt, data)
    assert found.comparison is None
    assert TASKS[0] in problems(found)


def test_evidence_of_another_submission_is_refused(spoilt, data):
    """The evidence is bound to one file, byte for byte."""
    spoilt.submission.write_bytes(spoilt.submission.read_bytes() + b"\n")
    with pytest.raises(InputError, match="of another submission"):
        check(spoilt, data)


def test_another_model_s_store_is_refused(spoilt, data):
    """Nothing is compared."""
    document = spoilt.document
    document["model_id"] = "other"
    spoilt.rewrite(document)
    with pytest.raises(InputError, match=f"of another model(.|\n)*other(.|\n)*{MODEL}"):
        check(spoilt, data)


def test_an_incomplete_submission_is_refused_with_what_is_missing(spoilt, data):
    """Before the store is opened."""
    document = spoilt.document
    del document["results"]["1shot"][TASKS[0]]
    spoilt.rewrite(document)
    with pytest.raises(InputError, match=TASKS[0]):
        check(spoilt, data)


def test_tasks_that_the_store_lacks_are_named(honest, data, demo_data, tmp_path):
    """A contributor cannot choose what is compared."""
    four = write_spec_tasks(demo_data, tmp_path, load_spec().task_ids[:4], ROWS)
    with pytest.raises(InputError, match="lacks 1 of the 4 tasks"):
        check(honest, four, tasks=load_spec().task_ids[:4])
    with pytest.raises(NotFoundError, match=r"97|task"):
        check(honest, data, tasks=())


def test_a_sample_is_drawn(honest, data):
    """So many of the tasks, in the benchmark's order."""
    tasks = check(honest, data, sample=2).tasks
    assert len(tasks) == 2
    assert tasks == [task for task in TASKS if task in tasks]
    for wrong in (0, 4):
        with pytest.raises(InputError, match="from 1 to 3"):
            check(honest, data, sample=wrong)
