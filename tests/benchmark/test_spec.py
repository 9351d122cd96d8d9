"""The spec and the model metadata: what is shipped, and what a broken file is told."""

from __future__ import annotations

import csv
import json
from pathlib import Path

import pytest
from pydantic import ValidationError

from geneb.benchmark.spec import (
    load_model_meta,
    load_spec,
    read_model_meta,
    read_spec,
    to_json,
)
from geneb.errors import InputError, NotFoundError


@pytest.fixture
def spec_value(root: Path) -> dict:
    """The shipped spec as plain JSON, to be spoilt."""
    return json.loads((root / "benchmark" / "benchmark_spec.json").read_text(encoding="utf-8"))


@pytest.fixture
def meta_value(root: Path) -> dict:
    """The shipped model metadata as plain JSON, to be spoilt."""
    return json.loads((root / "benchmark" / "model_meta.json").read_text(encoding="utf-8"))


@pytest.fixture
def written(tmp_path: Path):
    """Write a value as JSON and return the file."""

    def write(value: object) -> Path:
        path = tmp_path / "written.json"
        path.write_text(json.dumps(value), encoding="utf-8")
        return path

    return write


def reference(real_data: Path, name: str) -> list[dict[str, str]]:
    path = real_data.parent / "reference" / name
    if not path.is_file():
        pytest.skip(f"the reference table is not at {path}")
    with path.open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class TestShippedSpec:
    def test_numbers(self):
        """100 tasks in 13 categories, three regimes, three metrics, five seeds."""
        spec = load_spec()

        assert 100 == len(spec.tasks) == spec.task_count
        assert len(spec.categories) == 13
        assert spec.regimes == ("full", "10shot", "1shot")
        assert spec.metrics == ("MCC", "Acc", "F1")
        assert spec.seeds == (13, 17, 42, 123, 997)
        assert spec.data.revision == "4edd705be573e48c585c2cf79dc320f9f43c7b04"

    def test_protocol_numbers(self):
        """The numbers of geneb-lr-1 are those of the published harness' solver."""
        protocol = load_spec().protocol
        solver = protocol.solver

        assert protocol.id == "geneb-lr-1"
        assert protocol.estimator.C == 1.0
        assert (
            solver.history_pairs,
            solver.max_line_search_steps,
            solver.max_iterations,
        ) == (10, 50, 1000)
        assert (solver.gradient_tolerance, solver.decrease_tolerance_eps) == (1e-4, 64)
        assert protocol.few_shot.shots == {"10shot": 10, "1shot": 1}

    def test_protocol_names_no_library_but_the_generator_of_the_draw(self):
        """Another implementation can follow it without knowing a version of anything."""
        text = load_spec().protocol.model_dump_json().lower()

        assert "numpy.random.randomstate" in text
        for library in ("sklearn", "scikit", "scipy", "cuml", "torch", "version"):
            assert library not in text

    def test_tasks_are_the_published_ones_in_order(self, real_data):
        """Ids, labels and categories are those of the reference table."""
        rows = reference(real_data, "tasks.csv")

        assert [(row["task_id"], row["label"], row["category"]) for row in rows] == [
            (task.id, task.label, task.category) for task in load_spec().tasks
        ]

    def test_find(self):
        """A task is found by its id; one outside the benchmark is not."""
        spec = load_spec()

        assert spec.find("leannmlindsey_GUE_mouse_3").category == "Mouse Enh."
        assert spec.find("GUE mouse 3") is None

    def test_is_loaded_once_and_cannot_be_changed(self):
        """Every part of the program sees the same spec."""
        assert load_spec() is load_spec()
        with pytest.raises(ValidationError, match="frozen"):
            load_spec().seeds = (1,)

    def test_file_is_what_would_be_written(self, root):
        """Nothing unknown is in it, and its form is the canonical one."""
        text = (root / "benchmark" / "benchmark_spec.json").read_text(encoding="utf-8")

        assert text == to_json(load_spec())


class TestShippedModelMeta:
    def test_models_are_the_published_ones_in_order(self, real_data):
        """Ids, parameters and provenance are those of the published submissions."""
        rows = reference(real_data, "published_models.csv")

        assert [(row["model_id"], int(row["params"]), row["provenance"]) for row in rows] == [
            (model.id, model.params, model.provenance) for model in load_model_meta().models
        ]

    def test_labels_are_the_reference_ones(self, real_data):
        """Architecture and tokenization are the benchmark's own labels."""
        rows = {row["model_id"]: row for row in reference(real_data, "models.csv")}

        for model in load_model_meta().models:
            row = rows[model.id]
            assert (row["display"], row["architecture"], row["tokenization_class"]) == (
                model.display,
                model.architecture,
                model.tokenization,
            )
            assert model.hub_id is None or row["hub_id"].startswith(model.hub_id)

    def test_every_model_says_where_its_weights_lie(self):
        """On the hub, or in words."""
        for model in load_model_meta().models:
            assert model.hub_id or model.weights_note, model.id

    def test_numbers(self):
        """40 official models, one of the community, and who may call itself official."""
        meta = load_model_meta()

        assert sum(model.provenance == "official" for model in meta.models) == 40
        assert meta.find("splicebert-1024nt").provenance == "self-reported"
        assert meta.official_submitters == ("GENEB authors",)
        assert meta.find("no-such-model") is None

    def test_file_is_what_would_be_written(self, root):
        """Nothing unknown is in it, and its form is the canonical one."""
        text = (root / "benchmark" / "model_meta.json").read_text(encoding="utf-8")

        assert text == to_json(load_model_meta())


def spoil_wrong_type(value):
    value["seeds"][0] = "13"


def spoil_bool_for_number(value):
    value["protocol"]["estimator"]["C"] = True


def spoil_lost_task(value):
    del value["tasks"][50]


def spoil_same_id(value):
    value["tasks"][1]["id"] = value["tasks"][0]["id"].upper()


def spoil_same_label(value):
    value["tasks"][1]["label"] = value["tasks"][0]["label"]


def spoil_label_is_category(value):
    value["tasks"][1]["label"] = value["categories"][3].lower()


def spoil_unsafe_id(value):
    value["tasks"][2]["id"] = "../elsewhere"


def spoil_unused_category(value):
    value["categories"].append("Ribosomes")


def spoil_unknown_category(value):
    value["tasks"][2]["category"] = "Ribosomes"


def spoil_category_order(value):
    value["categories"].reverse()


def spoil_regime_without_shots(value):
    value["regimes"].append("5shot")


def spoil_undefined_metric(value):
    value["metrics"].append("AUC")


def spoil_no_seeds(value):
    value["seeds"] = []


def spoil_repeated_seed(value):
    value["seeds"].append(13)


def spoil_revision(value):
    value["data"]["revision"] = "main"


def spoil_newer_major(value):
    value["schema_version"] = "2.0"


def spoil_missing_field(value):
    del value["protocol"]["solver"]["history_pairs"]


@pytest.mark.parametrize(
    ("spoil", "said"),
    [
        (spoil_wrong_type, "seeds.0"),
        (spoil_bool_for_number, "protocol.estimator.C"),
        (spoil_lost_task, "task_count is 100, and there are 99"),
        (spoil_same_id, "task ids are not distinct"),
        (spoil_same_label, "labels and categories are not distinct"),
        (spoil_label_is_category, "labels and categories are not distinct"),
        (spoil_unsafe_id, "tasks.2.id"),
        (spoil_unused_category, "categories in order of appearance"),
        (spoil_unknown_category, "categories in order of appearance"),
        (spoil_category_order, "categories in order of appearance"),
        (spoil_regime_without_shots, "protocol.few_shot.shots"),
        (spoil_undefined_metric, "protocol.metrics"),
        (spoil_no_seeds, "there are no seeds"),
        (spoil_repeated_seed, "seeds are not distinct"),
        (spoil_revision, "data.revision"),
        (spoil_newer_major, "schema_version"),
        (spoil_missing_field, "protocol.solver.history_pairs"),
    ],
)
def test_broken_spec_is_refused_with_the_field(spoil, said, spec_value, written):
    """One clear error with the file and the place in it."""
    spoil(spec_value)
    path = written(spec_value)

    with pytest.raises(InputError) as caught:
        read_spec(path)

    assert str(path) == caught.value.where
    assert said in caught.value.found


def test_all_faults_are_listed_up_to_a_limit(spec_value, written):
    """Many wrong fields do not make a wall of text."""
    for task in spec_value["tasks"]:
        task["label"] = None

    with pytest.raises(InputError) as caught:
        read_spec(written(spec_value))

    assert "tasks.0.label" in caught.value.found
    assert "and 92 more" in caught.value.found


@pytest.mark.parametrize(
    ("content", "said"),
    [
        (b"", "JSON"),
        (b"{", "JSON"),
        (b'{"schema_version": "1.0", "schema_version": "1.0"}', "twice"),
        (b'{"seeds": [NaN]}', "NaN"),
        (b"\xff\xfe", "JSON"),
        (b"[]", "not a valid Spec"),
        (b"[" * 100_000, "deeper"),
    ],
)
def test_file_that_is_no_spec(content, said, tmp_path):
    """Whatever lies there instead, the message says what is wrong and where."""
    path = tmp_path / "spec.json"
    path.write_bytes(content)

    with pytest.raises(InputError) as caught:
        read_spec(path)

    assert said in str(caught.value)
    assert str(path) in str(caught.value)


def test_missing_file(tmp_path):
    """A path that leads nowhere is named."""
    with pytest.raises(NotFoundError, match=r"nowhere\.json"):
        read_spec(tmp_path / "nowhere.json")


def test_unknown_fields_are_kept_but_not_written(spec_value, written):
    """A newer minor version can be read; passing it on as understood is refused."""
    spec_value["schema_version"] = "1.7"
    spec_value["tasks"][3]["assay"] = "ChIP-seq"
    spec_value["sponsor"] = "nobody"

    spec = read_spec(written(spec_value))

    assert spec.tasks[3].model_extra["assay"] == "ChIP-seq"
    with pytest.raises(InputError) as caught:
        to_json(spec)
    assert caught.value.found == "sponsor, tasks.3.assay"


@pytest.mark.parametrize(
    ("field", "value"),
    [
        ("id", "a/b"),
        ("params", 1.5),
        ("params", 0),
        ("hub_id", "Google Drive"),
        ("url", "javascript:alert(1)"),
        ("provenance", "best"),
        ("display", ""),
    ],
)
def test_broken_model_is_refused_with_the_field(field, value, meta_value, written):
    """Facts on a model are checked one by one."""
    meta_value["models"][7][field] = value

    with pytest.raises(InputError) as caught:
        read_model_meta(written(meta_value))

    assert f"models.7.{field}" in caught.value.found


def test_two_models_of_one_name_are_refused(meta_value, written):
    """Tables tell models apart by the display name."""
    meta_value["models"][7]["display"] = meta_value["models"][8]["display"].upper()

    with pytest.raises(InputError) as caught:
        read_model_meta(written(meta_value))

    assert "display names are not distinct" in caught.value.found
