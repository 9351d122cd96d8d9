"""The published schema, its file format, and the submissions that come with the program."""

from __future__ import annotations

import csv
import json

import pytest
from pydantic import ValidationError
from support.submissions import submission

from geneb import __version__
from geneb.benchmark.spec import load_model_meta, load_spec
from geneb.reporting.submission import (
    HARNESS_VERSIONS,
    Meta,
    Scores,
    Submission,
    check_model_id,
    format_submission,
    json_schema,
    schema_text,
    shipped_submissions,
)
from geneb.results import METRIC_RANGES, METRICS

SPEC = load_spec()


@pytest.fixture(scope="module")
def shipped() -> dict[str, Submission]:
    """All shipped submissions by file name."""
    return {
        name: Submission.model_validate_json(data) for name, data in shipped_submissions().items()
    }


def table(real_data, name):
    with (real_data.parent / "reference" / name).open(encoding="utf-8", newline="") as stream:
        return list(csv.DictReader(stream))


class TestShipped:
    def test_forty_official_models_and_one_of_the_community(self, shipped):
        """Each file is named after its model, and each model's facts are known."""
        assert [f"{one.model_id}.json" for one in shipped.values()] == list(shipped)
        assert {one.model_id for one in shipped.values()} == {
            model.id for model in load_model_meta().models
        }
        kinds = sorted(one.meta.provenance for one in shipped.values())
        assert kinds == ["official"] * 40 + ["self-reported"]

    def test_the_published_figures(self, shipped, real_data):
        """Every one of them, and no other."""
        rows = table(real_data, "published_scores.csv")
        published = {
            (row["model_id"], row["regime"], row["task_id"]): [float(row[m]) for m in METRICS]
            for row in rows
        }
        found = {
            (one.model_id, regime, task): [scores[m] for m in METRICS]
            for one in shipped.values()
            for regime, tasks in one.scores.items()
            for task, scores in tasks.items()
        }

        assert len(rows) == len(published) == 3 * 4100
        assert found == published

    def test_what_is_published_about_the_models(self, shipped, real_data):
        """Names, parameters, provenance, submitters and harness versions."""
        for row in table(real_data, "published_models.csv"):
            one = shipped[f"{row['model_id']}.json"]
            meta = one.meta.model_dump()

            assert one.harness_version == row["harness_version"]
            assert meta == {
                "display": row["display"],
                "params": int(row["params"]),
                "url": row["url"] or None,
                "zero_shot": None,
                "training_data": row["training_data"] or None,
                "provenance": row["provenance"],
                "submitted_by": row["submitted_by"] or None,
            }

    def test_the_files_are_as_they_are_written(self):
        """Byte for byte, so that they do not change when somebody packs them again."""
        for data in shipped_submissions().values():
            assert format_submission(json.loads(data)).encode() == data


class TestFormat:
    def test_one_task_a_line_in_the_spec_s_order(self):
        """Whatever the order of regimes, tasks and metrics was."""
        document = submission("some-model", start=1 / 3)
        results = {
            regime: {
                task: dict(reversed(scores.items())) for task, scores in reversed(tasks.items())
            }
            for regime, tasks in reversed(document["results"].items())
        }
        text = format_submission({**document, "results": results})

        assert text == format_submission(document)
        assert json.loads(text) == document
        lines = [line for line in text.splitlines() if '"MCC"' in line]
        assert [line.split('"')[1] for line in lines] == list(SPEC.task_ids) * 3

    def test_full_precision_and_other_letters(self):
        """Doubles come back to the bit; text is readable, and cannot break the lines."""
        document = submission("some-model", start=0.1 + 0.2)
        document["meta"]["display"] = 'é "MCC": 1,\n'

        assert json.loads(format_submission(document)) == document

    def test_what_is_missing_stays_missing(self):
        """A partial document is formatted too."""
        document = submission("some-model")
        del document["results"]["1shot"]
        document["results"]["10shot"] = {}

        assert json.loads(format_submission(document)) == document


class TestSchema:
    def test_the_exported_schema_is_up_to_date(self, root):
        """`geneb submission schema` writes it."""
        file = root / "leaderboard" / "submission.schema.json"

        assert schema_text() == file.read_text(encoding="utf-8")

    def test_regimes_tasks_and_metrics_are_named(self):
        """All required, and no others allowed."""
        parts = json_schema()["$defs"]

        assert parts["Results"]["required"] == list(SPEC.regimes)
        assert parts["Tasks"]["required"] == list(SPEC.task_ids)
        assert parts["Scores"]["required"] == list(METRICS)
        assert not any(part["additionalProperties"] for part in parts.values())

    def test_ranges_are_those_of_results(self):
        """What a probe can write can be submitted, and nothing else."""
        for metric, (low, high) in METRIC_RANGES.items():
            part = json_schema()["$defs"]["Scores"]["properties"][metric]

            assert (part["minimum"], part["maximum"]) == (low, high)
        assert tuple(Scores.model_fields) == METRICS

    def test_this_version_may_submit(self):
        """Whoever raises the version adds it to those that are known."""
        assert f"geneb-{__version__}" in HARNESS_VERSIONS


@pytest.mark.parametrize(
    "model_id", ["a", "NT-2.5B_x+y", "console", "com10", "evidence", "x.json2"]
)
def test_ordinary_ids(model_id):
    """Unchanged."""
    assert check_model_id(model_id) == model_id


@pytest.mark.parametrize(
    "model_id",
    [
        "", "../x", "a/b", "a.", "CON", "con.txt", "Nul", "lpt1", "COM0.x", "x.evidence",
        "X.Evidence", "x.json", "x.partial", "m\u043edel", "a\u200b", "x" * 151,
    ],
)  # fmt: skip
def test_ids_that_cannot_name_a_file(model_id):
    """On some system, or because the name means another kind of file."""
    with pytest.raises(ValueError, match=r"."):
        check_model_id(model_id)
    with pytest.raises(ValidationError):
        Submission.model_validate({**submission("x"), "model_id": model_id})


@pytest.mark.parametrize(
    "url",
    [
        "ftp://x.org", "javascript:alert(1)", "//x.org", "http://", "https://u:p@x.org",
        "https://x.org/a b", "https://x.org\n", "https://ex\u0430mple.org", "http:/x", "HTTP://x.org",
    ],
)  # fmt: skip
def test_addresses_that_are_no_web_page(url):
    """Only http and https, no user names, no letters that look like others."""
    with pytest.raises(ValidationError):
        Meta(display="x", params=1, url=url)


@pytest.mark.parametrize("url", ["https://x.org", "http://x.org:8080/a?b=%20#c", "https://x.org?q"])
def test_web_pages(url):
    """Taken as they are."""
    assert Meta(display="x", params=1, url=url).url == url


@pytest.mark.parametrize(
    "text", ["", " x", "x\n", "a\tb", "\x1b[31m", "a\u202eb", "a\u200bb", "\x00"]
)
def test_texts_that_are_not_what_they_look_like(text):
    """Control and invisible characters, empty and padded texts."""
    for field in ("display", "training_data", "submitted_by"):
        with pytest.raises(ValidationError):
            Meta(**{"display": "x", "params": 1, field: text})
