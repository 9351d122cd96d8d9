"""Validating submissions: every fault at once, with its path, whatever a stranger wrote."""

from __future__ import annotations

import copy
import json
import os

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from support.results_folders import run_info, write_results
from support.submissions import harmless, submission, write_submission

from geneb.benchmark.spec import load_spec
from geneb.reporting.pack import Statement, pack, write_packed
from geneb.reporting.submission import MAX_BYTES, shipped_submissions
from geneb.reporting.validate import MAX_FAULTS, check_document, validate_files
from geneb.results import METRICS

SPEC = load_spec()
TASK = SPEC.task_ids[0]
DOTTED = "InstaDeepAI_plant-genomic-benchmark_lncrna.g_max"
AT_TASK = f"$.results.full.{TASK}"


def changed(*path_and_value):
    """A valid submission with one value replaced, or removed where it is `...`."""
    *path, last, value = path_and_value
    document = submission("some-model")
    place = document
    for key in path:
        place = place[key]
    if value is ...:
        del place[last]
    else:
        place[last] = value
    return document


def validate(tmp_path, content, name="some-model.json"):
    """The report on one file with this content: bytes, text or a document."""
    if isinstance(content, dict | list):
        content = json.dumps(content)
    path = tmp_path / name
    path.write_bytes(content if isinstance(content, bytes) else content.encode())
    [report] = validate_files([path])
    return report


def paths(report):
    return [fault.where for fault in report.faults]


def test_a_valid_file(tmp_path):
    """Nothing to say against the form."""
    report = validate(tmp_path, submission("some-model"))

    assert (report.faults, report.valid, report.read) == ([], True, True)
    assert report.model_id == "some-model"


def test_the_shipped_submissions_are_valid_without_a_warning(tmp_path):
    """All that is published passes every check that there is."""
    files = []
    for name, data in shipped_submissions().items():
        files.append(tmp_path / name)
        files[-1].write_bytes(data)
    reports = validate_files(files)

    assert len(reports) == 41
    assert [(one.faults, one.warnings) for one in reports] == [([], [])] * 41


FAULTS = [
    (changed("schema_version", "2.0"), "$.schema_version"),
    (changed("schema_version", 1.0), "$.schema_version"),
    (changed("harness_version", ...), "$.harness_version"),
    (changed("harness_version", "geneb-9.9.9"), "$.harness_version"),
    (changed("model_id", ...), "$.model_id"),
    (changed("model_id", 7), "$.model_id"),
    (changed("extra", 1), "$.extra"),
    (changed("__proto__", {"x": 1}), "$.__proto__"),
    (changed("meta", []), "$.meta"),
    (changed("meta", ...), "$.meta"),
    (changed("meta", "stars", 5), "$.meta.stars"),
    (changed("meta", "display", " "), "$.meta.display"),
    (changed("meta", "display", "x" * 101), "$.meta.display"),
    (changed("meta", "display", "\x1b[2J"), "$.meta.display"),
    (changed("meta", "display", "evil\u202elive"), "$.meta.display"),
    (changed("meta", "training_data", "x" * 1001), "$.meta.training_data"),
    (changed("meta", "params", True), "$.meta.params"),
    (changed("meta", "params", 0), "$.meta.params"),
    (changed("meta", "params", 1.5), "$.meta.params"),
    (changed("meta", "params", "7B"), "$.meta.params"),
    (changed("meta", "params", 10**14), "$.meta.params"),
    (changed("meta", "params", 10**400), "$.meta.params"),
    (changed("meta", "params", None), "$.meta.params"),
    (changed("meta", "url", "javascript:alert(1)"), "$.meta.url"),
    (changed("meta", "url", "https://x.org/" + "x" * 500), "$.meta.url"),
    (changed("meta", "zero_shot", "yes"), "$.meta.zero_shot"),
    (changed("meta", "provenance", "official"), "$.meta.provenance"),
    (changed("meta", "provenance", "verified"), "$.meta.provenance"),
    (changed("meta", "provenance", "scores-verified"), "$.meta.provenance"),
    (changed("results", []), "$.results"),
    (changed("results", ...), "$.results"),
    (changed("results", "full", ...), "$.results.full"),
    (changed("results", "full", None), "$.results.full"),
    (changed("results", "5shot", {}), "$.results.5shot"),
    (changed("results", "full", TASK, ...), AT_TASK),
    (changed("results", "full", TASK, 0.5), AT_TASK),
    (changed("results", "full", "a/b", {}), '$.results.full["a/b"]'),
    (changed("results", "full", "own_task", {}), "$.results.full.own_task"),
    (changed("results", "full", TASK, "AUC", 0.5), f"{AT_TASK}.AUC"),
    (changed("results", "full", TASK, "MCC", ...), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "MCC", True), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "MCC", "0.5"), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "MCC", None), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "MCC", [0.5]), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "MCC", 1.2), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "MCC", -1.0000001), f"{AT_TASK}.MCC"),
    (changed("results", "full", TASK, "Acc", -0.1), f"{AT_TASK}.Acc"),
    (changed("results", "full", TASK, "Acc", 83.0), f"{AT_TASK}.Acc"),
    (changed("results", "full", TASK, "F1", float("nan")), f"{AT_TASK}.F1"),
    (changed("results", "full", TASK, "F1", float("inf")), f"{AT_TASK}.F1"),
    (changed("results", "full", TASK, "F1", float("-inf")), f"{AT_TASK}.F1"),
    (changed("results", "full", TASK, "F1", 10**400), f"{AT_TASK}.F1"),
    (changed("results", "full", TASK, "F1", 10**5000 // 10**4000), f"{AT_TASK}.F1"),
]


@pytest.mark.parametrize(("document", "path"), FAULTS)
def test_one_mistake_is_one_fault_with_its_path(tmp_path, document, path):
    """And no other beside it; each says what to do, in harmless characters."""
    report = validate(tmp_path, document)

    assert paths(report) == [path]
    for fault in report.faults:
        assert fault.fix
        assert harmless(str(fault))


def test_paths_through_keys_that_are_no_words(tmp_path):
    """A task's id with a dot in it stands in brackets."""
    report = validate(tmp_path, changed("results", "full", DOTTED, {}))

    assert paths(report) == [f'$.results.full["{DOTTED}"].{metric}' for metric in METRICS]


def test_all_faults_of_all_files_are_listed(tmp_path):
    """At once."""
    one = changed("results", "full", TASK, "MCC", 1.5)
    one["results"]["1shot"] = {}
    one["meta"]["url"] = "x"
    two = changed("results", "10shot", ...)
    two["model_id"] = "other"
    files = [write_submission(tmp_path, one), write_submission(tmp_path, two)]
    first, second = validate_files(files)

    assert paths(first)[:2] == ["$.meta.url", f"{AT_TASK}.MCC"]
    assert len(first.faults) == 2 + 100
    assert paths(second) == ["$.results.10shot"]


class TestJson:
    @pytest.mark.parametrize(
        "content",
        [
            b"", b"[", b"{", b"nonsense", b"\xff\xfe{\x00}\x00", b"\xef\xbb\xbf{}", b'{"a": 1} {}',
            json.dumps(submission("some-model")).encode("utf-16"),
            b"[" * 100_000, b'{"a":' * 50_000, b"\x00" * 100, b"'a'", b'{"a": 01}', b'"\xc3"',
        ],
    )  # fmt: skip
    def test_what_is_not_json(self, tmp_path, content):
        """One fault at the root."""
        report = validate(tmp_path, content)

        assert paths(report) == ["$"]
        assert "not JSON" in report.faults[0].problem

    @pytest.mark.parametrize("content", ["null", "1", "[]", '"x"', "true", "1e400", "NaN"])
    def test_json_that_is_no_object(self, tmp_path, content):
        """One fault at the root."""
        assert paths(validate(tmp_path, content)) == ["$"]

    def test_each_repeated_key_is_named(self, tmp_path):
        """At every depth; readers differ in which of the two they take."""
        text = json.dumps(submission("some-model"))
        text = text.replace('"model_id"', '"model_id": "x", "model_id"', 1)
        text = text.replace('"MCC"', '"MCC": 1, "MCC"', 1)
        text = text.replace('"1shot": {', '"full": {}, "1shot": {', 1)
        report = validate(tmp_path, text)

        assert [fault.where for fault in report.faults if "more than once" in fault.problem] == [
            "$.model_id",
            f"{AT_TASK}.MCC",
            "$.results.full",
        ]

    def test_surrogates(self, tmp_path):
        """Half a character, as a value and as a key, hides no other fault."""
        text = json.dumps(changed("results", "full", TASK, "MCC", 2))
        text = text.replace("Some-Model", "\\ud800").replace('"params"', '"\\udfff": 1, "params"')
        report = validate(tmp_path, text)

        assert '$.meta["\\udfff"]' in paths(report)
        assert "$.meta.display" in paths(report)
        assert f"{AT_TASK}.MCC" in paths(report)

    @pytest.mark.parametrize("number", ["1e400", "-1e400", "1" + "0" * 5000, "NaN", "-Infinity"])
    def test_numbers_that_no_float_holds(self, tmp_path, number):
        """They have a path like any other number out of range."""
        text = json.dumps(submission("some-model")).replace('"MCC": 0.5,', f'"MCC": {number},', 1)

        assert paths(validate(tmp_path, text)) == [f"{AT_TASK}.MCC"]

    def test_minus_zero_is_zero(self, tmp_path):
        """It is in range, and is not shown with its sign."""
        document = changed("results", "full", TASK, {"MCC": -0.0, "Acc": -0.0, "F1": 0})
        found = check_document(json.dumps(document).encode())

        assert found.faults == []
        assert "-" not in repr(found.summary["full"][TASK])

    def test_very_many_keys(self, tmp_path):
        """The list of faults ends somewhere."""
        keys = ",".join(f'"{number:x}":1' for number in range(80_000))
        report = validate(tmp_path, f"{{{keys}}}")

        assert len(keys) < MAX_BYTES
        assert MAX_FAULTS <= len(report.faults) <= MAX_FAULTS + 1
        assert len(validate(tmp_path, f"{{{keys * 2}}}").faults) == 1  # too large

    def test_a_key_repeated_very_often(self, tmp_path):
        """Likewise."""
        report = validate(tmp_path, "{" + ",".join(['"a":1'] * 100_000) + "}")

        assert len(report.faults) == MAX_FAULTS + 1
        assert "more faults" in report.faults[-1].problem


class TestFiles:
    @pytest.mark.parametrize("name", ["other.json", "Some-Model.json", "some-model.txt", "x"])
    def test_the_name_is_the_model_s_id(self, tmp_path, name):
        """Case counts."""
        report = validate(tmp_path, submission("some-model"), name)

        assert paths(report) == ["$.model_id"]
        assert "some-model.json" in report.faults[0].expected

    @pytest.mark.parametrize("model_id", ["CON", "nul.x", "x.", "\u0430bc", "a b"])
    def test_ids_that_cannot_be_file_names(self, tmp_path, model_id):
        """Refused even where the file has that name."""
        report = validate(tmp_path, {**submission("x"), "model_id": model_id}, f"{model_id}.json")

        assert paths(report)[0] == "$.model_id"

    def test_an_id_that_climbs(self, tmp_path):
        """It cannot become a path."""
        report = validate(tmp_path, {**submission("x"), "model_id": "../x"}, "x.json")

        assert set(paths(report)) == {"$.model_id"}

    @pytest.mark.parametrize("other", ["some-model", "SOME-model"])
    def test_two_files_of_one_model(self, tmp_path, other):
        """Both are told, and which the other one is; case does not count."""
        (tmp_path / "more").mkdir()
        files = [
            write_submission(tmp_path, submission("some-model")),
            write_submission(tmp_path / "more", submission(other)),
        ]
        reports = validate_files(files)

        assert [paths(one) for one in reports] == [["$.model_id"]] * 2
        assert str(files[1]) in reports[0].faults[0].found

    def test_the_same_file_twice_is_one_file(self, tmp_path):
        """As when two globs overlap."""
        file = write_submission(tmp_path, submission("some-model"))

        assert [one.valid for one in validate_files([file, file])] == [True]

    def test_what_cannot_be_read(self, tmp_path):
        """A folder, a link, a pipe, nothing at all, and what is too large."""
        file = write_submission(tmp_path, submission("some-model"))
        (tmp_path / "folder.json").mkdir()
        (tmp_path / "link.json").symlink_to(file)
        os.mkfifo(tmp_path / "pipe.json")
        (tmp_path / "large.json").write_bytes(b" " * (MAX_BYTES + 1))
        names = ["folder.json", "link.json", "pipe.json", "large.json", "none.json"]
        for report in validate_files([tmp_path / name for name in names]):
            assert not report.read, report.path
            assert paths(report) == ["$"]


class TestClaims:
    def shipped(self, name):
        return json.loads(shipped_submissions()[name])

    def test_official_belongs_to_listed_models_of_listed_submitters(self, tmp_path):
        """Neither the submitter's name nor the model's alone will do."""
        official = self.shipped("GROVER.json")
        stranger = copy.deepcopy(official)
        stranger["meta"]["submitted_by"] = "GENEB auth\u043ers"
        unlisted = {**copy.deepcopy(official), "model_id": "mine"}
        unlisted["meta"]["display"] = "Mine"

        assert validate(tmp_path, official, "GROVER.json").valid
        assert paths(validate(tmp_path, stranger, "GROVER.json")) == ["$.meta.provenance"]
        assert paths(validate(tmp_path, unlisted, "mine.json")) == ["$.meta.provenance"]

    def test_official_scores_are_not_replaced(self, tmp_path):
        """Somebody else's scores of the same model need another id."""
        document = self.shipped("GROVER.json")
        document["meta"] |= {"provenance": "self-reported", "submitted_by": "A lab"}

        assert paths(validate(tmp_path, document, "GROVER.json")) == ["$.meta.submitted_by"]

    def test_provenance_may_be_left_out(self, tmp_path):
        """Then it is self-reported, also for a model whose scores are official."""
        document = self.shipped("GROVER.json")
        del document["meta"]["provenance"]
        del document["meta"]["submitted_by"]

        assert paths(validate(tmp_path, document, "GROVER.json")) == ["$.meta.submitted_by"]


@pytest.fixture(scope="module")
def packed(tmp_path_factory):
    """A submission with its evidence."""
    folder = write_results(tmp_path_factory.mktemp("out"), run_info())
    return pack([folder], Statement(display="x", params=1))


class TestEvidence:
    @pytest.fixture
    def files(self, packed, tmp_path):
        """The two files."""
        write_packed(packed, tmp_path)
        return [tmp_path / "some-model.json", tmp_path / "some-model.evidence.json"]

    def test_it_is_validated_beside_the_submission(self, files):
        """Not taken for one, nor for a second file of the model."""
        assert [one.faults for one in validate_files(files)] == [[], []]

    def test_it_belongs_to_one_submission(self, files):
        """Byte for byte."""
        files[0].write_text(files[0].read_text().replace("self-reported", "self-reported", 1) + " ")
        reports = validate_files(files)

        assert [paths(one) for one in reports] == [[], ["$.submission_sha256"]]

    @pytest.mark.parametrize(
        ("path", "value", "where"),
        [
            (["source"], "dreams", "$"),
            (["store", "fingerprint_id"], "x", "$.store.fingerprint_id"),
            (["tasks", TASK, "embeddings_digest"], 1, f"$.tasks.{TASK}.embeddings_digest"),
            (["extra"], 1, "$.extra"),
            (["model_id"], "../x", "$.model_id"),
        ],
    )
    def test_faults_have_paths_of_the_document(self, files, path, value, where):
        """As those of a submission."""
        document = json.loads(files[1].read_text())
        place = document
        for key in path[:-1]:
            place = place[key]
        place[path[-1]] = value
        files[1].write_text(json.dumps(document))
        [report] = validate_files(files[1:])

        assert where in paths(report)


# -- mutations ---------------------------------------------------------------------------------

SCALARS = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=20)
    | st.sampled_from([10**400, -0.0, 1e308, "\ud800", "__proto__", "../x", "official", 1.0000001])
)
JSON = st.recursive(
    SCALARS,
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=10), inner, max_size=3)
    ),
    max_leaves=6,
)


@st.composite
def mutated(draw):
    """A valid document after a few changes anywhere, and whether it is still the same."""
    document = submission("some-model")
    original = copy.deepcopy(document)
    for _ in range(draw(st.integers(1, 3))):
        place = document
        for _ in range(draw(st.integers(0, 3))):
            inner = [value for value in place.values() if isinstance(value, dict) and value]
            if inner:
                place = draw(st.sampled_from(inner[:5]))
        key = draw(st.sampled_from(list(place)[:8]) | st.text(max_size=12))
        if draw(st.booleans()):
            place.pop(key, None)
        else:
            place[key] = draw(JSON)
    return original, document


def acceptable(document):
    """By hand and in other words: what may differ from a valid document without a fault."""
    if set(document) != {"schema_version", "model_id", "harness_version", "meta", "results"}:
        return False
    if (document["schema_version"], document["model_id"]) != ("1.0", "some-model"):
        return False
    if set(document["results"]) != set(SPEC.regimes):
        return False
    for tasks in document["results"].values():
        if set(tasks) != set(SPEC.task_ids):
            return False
        for scores in tasks.values():
            if set(scores) != {"MCC", "Acc", "F1"}:
                return False
            for metric, value in scores.items():
                if type(value) not in (int, float):
                    return False
                if not (-1 if metric == "MCC" else 0) <= value <= 1:
                    return False
    meta = document["meta"]
    return type(meta["params"]) is int and meta.get("provenance", "x") != "official"


@given(mutated())
@settings(deadline=None, max_examples=60)
def test_no_mutation_passes_wrongly_or_breaks_anything(tmp_path_factory, pair):
    """Whatever was changed: a report, and valid only if it is."""
    original, document = pair
    folder = tmp_path_factory.mktemp("mutated")
    report = validate(folder, json.dumps(document))

    for fault in report.faults:
        assert fault.where.startswith("$")
        assert harmless(str(fault))
    if report.valid:
        assert acceptable(document)
    if document == original and repr(document) == repr(original):
        assert report.valid


@given(st.data())
@settings(deadline=None, max_examples=60)
def test_no_damaged_bytes_break_anything(data):
    """Cut, spliced and overwritten anywhere."""
    text = bytearray(json.dumps(submission("some-model")).encode())
    for _ in range(data.draw(st.integers(1, 4))):
        start = data.draw(st.integers(0, len(text)))
        end = start + data.draw(st.integers(0, 30))
        text[start:end] = data.draw(
            st.binary(max_size=12) | st.sampled_from([b'"', b"{", b"}}", b"\\u"])
        )
    for fault in check_document(bytes(text)).faults:
        assert fault.where.startswith("$")
        assert harmless(str(fault))


def test_the_report_has_what_was_read(tmp_path):
    """Whoever shows the scores need not read the file again."""
    report = validate(tmp_path, submission("some-model"))

    assert report.found.summary == submission("some-model")["results"]
