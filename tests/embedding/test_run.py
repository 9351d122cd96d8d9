"""``geneb.embed``: what it writes, what it keeps, what it refuses."""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict
from pathlib import Path

import numpy as np
import pytest
from support.small_tasks import (
    beside,
    blocks_of,
    content,
    demo_rows,
    differing,
    write_small_tasks,
    write_task,
)

import geneb
from geneb.embedding.canary import canary_sequences
from geneb.errors import InputError, StoreError, WorkError
from geneb.extractors.kmer import KmerExtractor
from geneb.extractors.options import ModelOptions
from geneb.stores.verify import verify_store


@pytest.fixture
def data(demo_data, tmp_path) -> Path:
    """Three small tasks that share rows; a test may change them."""
    return write_small_tasks(demo_data, tmp_path / "data")


@pytest.fixture
def odd(root) -> str:
    """Extractor files of somebody's own."""
    return str(root / "tests" / "support" / "odd_extractors.py")


def sequences_of(path: Path, split: str) -> list[str]:
    with path.open(newline="", encoding="utf-8") as stream:
        return [row["text"] for row in csv.DictReader(stream) if row["split"] == split]


def test_rows_stand_as_in_the_csv(data, tmp_path):
    """Vectors, labels and classes in file order, duplicates included; the store is sealed."""
    summary = geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", available=True)

    store = geneb.open_store(tmp_path / "k.zarr")
    assert store.sealed
    assert summary.unsealed is None
    assert summary.embedded == store.task_ids() == ["mixed", "shared", "three"]
    for name in store.task_ids():
        task = store.task(name)
        for split in task.splits:
            sequences = sequences_of(data / f"{name}.csv", split)
            np.testing.assert_array_equal(KmerExtractor(3).embed(sequences), task.embeddings(split))
    labels = [int(label) for _, label, split in rows_of(data / "three.csv") if split == "test"]
    assert store.task("three").classes == ["0", "1", "2"]
    assert labels == store.task("three").labels("test").tolist()


def rows_of(path: Path) -> list[tuple[str, str, str]]:
    with path.open(newline="", encoding="utf-8") as stream:
        return [(row["text"], row["label"], row["split"]) for row in csv.DictReader(stream)]


def test_the_summary_adds_up(data, tmp_path):
    """Rows computed are the distinct ones, over all tasks; tokens are their letters."""
    summary = geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", available=True)

    rows = [row for path in sorted(data.glob("*.csv")) for row in rows_of(path)]
    distinct = {sequence for sequence, _, _ in rows}
    assert summary.rows_computed == len(distinct) < len(rows)
    assert summary.rows_computed + summary.rows_copied == len(rows)
    assert summary.tokens == sum(map(len, distinct))
    assert summary.dim == 64
    assert summary.blocks == 6
    assert not summary.stopped


def test_again_there_is_nothing_to_do(data, tmp_path):
    """Complete tasks are kept, no run is recorded, no byte changes."""
    store = tmp_path / "k.zarr"
    geneb.embed("kmer3", data=data, store=store, available=True)
    before = {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}

    summary = geneb.embed("kmer3", data=data, store=store, available=True)

    assert summary.complete == ["mixed", "shared", "three"]
    assert (summary.embedded, summary.rows_computed, summary.unsealed) == ([], 0, None)
    assert before == {path: path.read_bytes() for path in store.rglob("*") if path.is_file()}
    assert beside(store) == []


def test_no_sequence_is_embedded_twice(real_data, odd, tmp_path, monkeypatch):
    """Over real tasks that overlap, each distinct sequence meets the model once."""
    log = tmp_path / "log.txt"
    monkeypatch.setenv("EMBEDDED_LOG", str(log))
    tasks = ["leannmlindsey_GUE_prom_core_all", "leannmlindsey_GUE_prom_core_tata"]
    options = {"data": real_data / "tasks", "store": tmp_path / "counted.zarr"}

    first = geneb.embed(f"{odd}:Counting", tasks=tasks[1:], **options)
    both = geneb.embed(f"{odd}:Counting", tasks=tasks, **options)

    seen = Counter(log.read_text(encoding="utf-8").splitlines())
    # A run begins with the canary, each of its sequences alone and then in company.
    seen -= Counter(dict.fromkeys(canary_sequences(), 4))
    rows = [
        sequence
        for task in tasks
        for sequence, _, _ in rows_of(real_data / "tasks" / f"{task}.csv")
    ]
    assert seen == Counter(set(rows))
    assert first.rows_computed + both.rows_computed == len(seen)
    assert both.rows_copied > 4000


def stop_when_asked(number: int) -> Callable[[], bool]:
    """Say yes once, to the question of this number, counted from 0."""
    asked = itertools.count()
    return lambda: next(asked) == number


def test_stopped_anywhere_and_resumed_it_is_the_same(data, tmp_path):
    """A run asked to stop ends after whole blocks, and the next one goes on from there."""
    options = {"data": data, "tasks": ["mixed", "shared"]}
    with blocks_of(10 << 10):
        blocks = geneb.embed("kmer3", store=tmp_path / "whole.zarr", **options).blocks
        whole = content(tmp_path / "whole.zarr")
        for number in itertools.count():
            store = tmp_path / f"stopped{number}.zarr"
            stopped = geneb.embed("kmer3", store=store, stop=stop_when_asked(number), **options)
            if not stopped.stopped:
                break
            assert stopped.unsealed == "the run was stopped"
            assert not geneb.open_store(store).sealed
            resumed = geneb.embed("kmer3", store=store, **options)
            assert sorted([*resumed.complete, *resumed.embedded]) == ["mixed", "shared"]
            assert stopped.blocks + resumed.blocks == blocks
            assert differing(whole, content(store)) == []
            assert verify_store(store).holds

    # Asked before each task and each block; after the last there is nothing to leave undone.
    assert number == 2 + blocks
    assert geneb.open_store(store).sealed


def test_tasks_are_added_to_a_sealed_store(data, tmp_path):
    """It is unsealed, added to, and sealed again; rows it holds are copied."""
    store = tmp_path / "k.zarr"
    geneb.embed("kmer3", data=data, store=store, tasks=["mixed"])
    assert geneb.open_store(store).sealed
    before = content(store)

    stopped = geneb.embed("kmer3", data=data, store=store, tasks=["shared"], stop=lambda: True)
    assert not geneb.open_store(store).sealed
    added = geneb.embed("kmer3", data=data, store=store, tasks=["shared"])

    assert stopped.stopped
    assert added.embedded == ["shared"]
    assert added.rows_copied > 0
    assert geneb.open_store(store).sealed
    assert verify_store(store).holds
    after = content(store)
    assert {name: after[name] for name in before} == before


def test_other_splits_are_embedded_by_name(data, tmp_path):
    """``--splits dev``: a third split beside train and test, in the manifest too."""
    rows = rows_of(data / "three.csv")
    dev = [(sequence, label, "dev") for sequence, label, _ in rows[:7]]
    write_task(data / "three.csv", rows + dev)
    options = {"data": data, "tasks": ["three"]}

    geneb.embed("kmer3", store=tmp_path / "dev.zarr", splits=["dev"], **options)
    geneb.embed("kmer3", store=tmp_path / "plain.zarr", **options)

    task = geneb.open_store(tmp_path / "dev.zarr").task("three")
    assert task.splits == ["train", "test", "dev"]
    np.testing.assert_array_equal(
        KmerExtractor(3).embed([sequence for sequence, _, _ in dev]), task.embeddings("dev")
    )
    plain = geneb.open_store(tmp_path / "plain.zarr").task("three")
    assert plain.manifest.left_out == {"dev": 7}
    with pytest.raises(StoreError, match="lacks the split dev"):
        geneb.embed("kmer3", store=tmp_path / "plain.zarr", splits=["dev"], **options)
    # A store that holds more than is asked for has what is asked for.
    summary = geneb.embed("kmer3", store=tmp_path / "dev.zarr", **options)
    assert summary.complete == ["three"]


def test_a_begun_task_keeps_its_splits(data, tmp_path):
    """Its arrays are there already, for the splits that it was begun with."""
    rows = rows_of(data / "three.csv")
    write_task(data / "three.csv", [*rows, (rows[0][0], rows[0][1], "dev")])
    options = {"data": data, "store": tmp_path / "k.zarr", "tasks": ["three"]}
    geneb.embed("kmer3", stop=stop_when_asked(2), **options)

    with pytest.raises(StoreError, match="begun with other splits") as caught:
        geneb.embed("kmer3", splits=["dev"], **options)

    assert "--replace-task" in caught.value.fix
    summary = geneb.embed("kmer3", splits=["dev"], replace_tasks=["three"], **options)
    assert summary.embedded == ["three"]


def changed_sequence(rows):
    return [(rows[0][0][:-1] + "N", *rows[0][1:]), *rows[1:]]


def changed_label(rows):
    return [(rows[0][0], "1" if rows[0][1] == "0" else "0", rows[0][2]), *rows[1:]]


def another_order(rows):
    return [rows[1], rows[0], *rows[2:]]


def one_row_less(rows):
    return rows[:-1]


@pytest.mark.parametrize("complete", [True, False])
@pytest.mark.parametrize("change", [changed_sequence, changed_label, another_order, one_row_less])
def test_a_changed_csv_is_refused(data, tmp_path, change, complete):
    """Rows or labels that differ, of complete tasks and begun ones; before anything is written."""
    store = tmp_path / "k.zarr"
    stop = stop_when_asked(-1 if complete else 2)
    geneb.embed("kmer3", data=data, store=store, tasks=["mixed"], stop=stop)
    rows = rows_of(data / "mixed.csv")
    if change is another_order:
        rows = [*sorted(rows, key=lambda row: row[2], reverse=True)]
        write_task(data / "mixed.csv", rows)
        geneb.embed("kmer3", data=data, store=store, tasks=["mixed"], replace_tasks=["mixed"])
    write_task(data / "mixed.csv", change(rows))
    before = content(store)

    with pytest.raises(StoreError, match="rows or labels are not those in the store") as caught:
        geneb.embed("kmer3", data=data, store=store, available=True)

    assert "task mixed" in caught.value.where
    assert "--replace-task" in caught.value.fix
    assert differing(before, content(store)) == []
    geneb.embed("kmer3", data=data, store=store, available=True, replace_tasks=["mixed"])
    assert geneb.open_store(store).sealed
    assert verify_store(store).holds


def other_classes(rows):
    return [(sequence, f"class {label}", split) for sequence, label, split in rows]


def turned_round(rows):
    return rows[::-1]


@pytest.mark.parametrize("change", [changed_sequence, changed_label, turned_round, other_classes])
def test_a_csv_that_changes_under_way_is_noticed(data, tmp_path, change):
    """Between planning and reading: what is not what was planned is not embedded."""
    rows = rows_of(data / "shared.csv")
    asked = itertools.count()

    def change_the_next_task() -> bool:
        if next(asked) == 1:
            write_task(data / "shared.csv", change(rows))
        return False

    with pytest.raises(WorkError, match="changed while the run was under way") as caught:
        geneb.embed(
            "kmer3", data=data, store=tmp_path / "k.zarr", available=True,
            stop=change_the_next_task,
        )  # fmt: skip

    assert caught.value.where == str(data / "shared.csv")
    assert geneb.open_store(tmp_path / "k.zarr").task_ids() == ["mixed"]


def test_what_is_stored_of_a_csv_is_what_was_planned(data, tmp_path):
    """Rows that come to a split that is left out do not matter, and are not told."""
    rows = rows_of(data / "shared.csv")
    asked = itertools.count()

    def add_to_another_split() -> bool:
        if next(asked) == 1:
            write_task(data / "shared.csv", [*rows, (rows[0][0], rows[0][1], "dev")])
        return False

    geneb.embed(
        "kmer3", data=data, store=tmp_path / "k.zarr", tasks=["mixed", "shared"],
        stop=add_to_another_split,
    )  # fmt: skip

    assert geneb.open_store(tmp_path / "k.zarr").task("shared").manifest.left_out == {}


def test_reading_back_can_be_stopped(data, tmp_path):
    """A resumed run that finds everything there is asked for each block of it."""
    options = {"data": data, "store": tmp_path / "k.zarr", "tasks": ["mixed"]}
    with blocks_of(2 << 10):
        asked = itertools.count()
        blocks = geneb.embed(
            "kmer3", store=tmp_path / "whole.zarr", data=data, tasks=["mixed"]
        ).blocks
        geneb.embed("kmer3", stop=lambda: next(asked) == blocks, **options)

        questions = []
        stopped = geneb.embed(
            "kmer3", stop=lambda: questions.append(1) or len(questions) == 4, **options
        )

    assert stopped.stopped
    assert (len(questions), stopped.blocks) == (4, 0)


def test_rows_that_are_not_finite_are_named(data, odd, tmp_path):
    """Task, split and row; the tasks before stay, and the failed one is not declared complete."""
    rows = rows_of(data / "three.csv")
    rows[1] = ("ACGT" + "A" * 8 + "GGG", *rows[1][1:])
    write_task(data / "three.csv", rows)
    mixed = [row for row in rows_of(data / "mixed.csv") if "A" * 8 not in row[0]]
    write_task(data / "mixed.csv", mixed)
    options = {"data": data, "store": tmp_path / "n.zarr", "tasks": ["mixed", "three"]}

    with pytest.raises(WorkError, match="NaN or infinity for 1 sequence") as caught:
        geneb.embed(f"{odd}:NotFinite", **options)

    assert caught.value.where == "task three, train, row 1 (counted from 0 within the split)"
    assert geneb.open_store(options["store"]).task_ids() == ["mixed"]
    assert geneb.open_store(options["store"]).incomplete() == ["three"]


def test_an_extractor_that_fails_is_named_with_its_rows(data, odd, tmp_path):
    """What it raised, on which line of its file, for which rows."""
    with pytest.raises(WorkError, match=r"letters failed in forward\(\)") as caught:
        geneb.embed(f"{odd}:Failing", data=data, store=tmp_path / "f.zarr", tasks=["three"])

    assert "task three, train, row " in caught.value.where
    assert "5" in caught.value.where
    assert "KeyError: 'N' (line " in caught.value.found
    assert "odd_extractors.py" in caught.value.found


def test_float16_is_asked_for(data, tmp_path):
    """Half the size; duplicates are copied as they are stored, so that they stay equal."""
    options = {"data": data, "available": True}
    geneb.embed("kmer3", store=tmp_path / "single.zarr", **options)
    geneb.embed("kmer3", store=tmp_path / "half.zarr", store_dtype="float16", **options)

    for name in ("mixed", "shared", "three"):
        for split in ("train", "test"):
            single, half = (
                geneb.open_store(tmp_path / f"{store}.zarr").task(name).embeddings(split)
                for store in ("single", "half")
            )
            np.testing.assert_array_equal(single.astype(np.float16), half.astype(np.float16))
    assert verify_store(tmp_path / "half.zarr").holds


def test_a_number_too_large_for_float16_is_named(data, odd, tmp_path):
    """Finite in float32 is not enough; already the canary would be infinite."""
    with pytest.raises(WorkError, match="too large for float16") as caught:
        geneb.embed(
            f"{odd}:Overflowing", data=data, store=tmp_path / "o.zarr", tasks=["three"],
            store_dtype="float16",
        )  # fmt: skip

    assert "canary" in caught.value.where
    assert not (tmp_path / "o.zarr").exists()
    geneb.embed(f"{odd}:Overflowing", data=data, store=tmp_path / "o.zarr", tasks=["three"])


def test_what_made_a_store_is_recorded(data, tmp_path):
    """Options with paths cut to base names, versions, device, what was done and how it ended."""
    geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", tasks=["mixed"], batch_tokens=5000)
    geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", tasks=["shared"])

    first, second = geneb.open_store(tmp_path / "k.zarr").runs()
    assert first.options == {
        "model": "kmer3",
        "data": "data",
        "store": "k.zarr",
        "tasks": ["mixed"],
        "splits": ["train", "test"],
        "available": False,
        "replace_tasks": [],
        "batch_tokens": 5000,
        "store_dtype": "float32",
        "model_id": None,
        "device": "auto",
        **{name: value for name, value in asdict(ModelOptions()).items() if name != "device"},
    }
    assert {"python", "geneb", "numpy", "zarr"} <= set(first.versions)
    assert first.platform["device"] == "cpu"
    assert (first.outcome, second.outcome) == ("finished", "finished")
    assert first.rows_computed > 0
    assert second.rows_copied > 0
    root = geneb.open_store(tmp_path / "k.zarr").root
    assert root.created_by == first.run
    assert root.token_budget == 5000
    assert root.model.display == "3-mer frequencies"
    assert root.benchmark_data["compared"] is False
    for path in (tmp_path / "k.zarr").rglob("zarr.json"):
        assert str(tmp_path) not in path.read_text(encoding="utf-8")


def test_classes_of_one_split_are_warned_of(data, tmp_path):
    """A class that is only in test cannot be learnt: said, and embedded all the same."""
    rows = [row for row in rows_of(data / "three.csv") if row[1] != "2" or row[2] == "test"]
    write_task(data / "three.csv", rows)

    summary = geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", tasks=["three"])

    assert summary.warnings == ["three: class 2 is only in test"]


def test_unlabelled_data_is_embedded(data, demo_data, tmp_path):
    """Somebody's own sequences without labels."""
    rows = demo_rows(demo_data, "demo_splice_junctions")[:20]
    with (data / "own.csv").open("w", newline="", encoding="utf-8") as stream:
        csv.writer(stream).writerows(
            [
                ("text", "split"),
                *((text, "test" if i % 2 else "train") for i, (text, _, _) in enumerate(rows)),
            ]
        )

    geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", tasks=["own"])

    task = geneb.open_store(tmp_path / "k.zarr").task("own")
    assert task.classes is None
    assert task.labels("train") is None
    assert len(task.embeddings("train")) == 10
    summary = geneb.embed("kmer3", data=data, store=tmp_path / "k.zarr", tasks=["own"])
    assert summary.complete == ["own"]


def test_a_task_that_is_not_embedded_cannot_be_replaced(data, tmp_path):
    """A slip in its name must not go unnoticed."""
    with pytest.raises(InputError, match="names mixd, which this run does not embed"):
        geneb.embed(
            "kmer3", data=data, store=tmp_path / "k.zarr", tasks=["mixed"], replace_tasks=["mixd"]
        )

    assert not (tmp_path / "k.zarr").exists()


@pytest.mark.parametrize("tokens", [0, -5, 1 << 25])
def test_a_batch_holds_a_token(data, tmp_path, tokens):
    """No budget is not the default budget, and a slip of the keyboard is no budget."""
    with pytest.raises(InputError, match="this cannot be how many tokens a batch holds"):
        geneb.embed(
            "kmer3", data=data, store=tmp_path / "k.zarr", available=True, batch_tokens=tokens
        )


def test_the_budget_of_the_store_is_used_on_resume(data, odd, tmp_path, monkeypatch):
    """Batches, hence bits, are those of the run that made the store."""
    log = tmp_path / "log.txt"
    monkeypatch.setenv("EMBEDDED_LOG", str(log))
    store = tmp_path / "c.zarr"
    geneb.embed(f"{odd}:Counting", data=data, store=store, tasks=["mixed"], batch_tokens=300)

    geneb.embed(f"{odd}:Counting", data=data, store=store, tasks=["three"])

    assert geneb.open_store(store).root.token_budget == 300
    record = geneb.open_store(store).runs()[-1]
    assert record.options["batch_tokens"] is None
