"""``geneb leaderboard build``, ``serve``, and what ``show`` shows of the shipped leaderboard."""

from __future__ import annotations

import csv
import http.client
import io
import os
import signal
import subprocess
import sys

import pytest
from support.command import check_mistake, geneb
from support.submissions import submission, write_submission

from geneb.benchmark.spec import load_spec
from geneb.errors import InputError
from geneb.reporting.serve import SECURITY_HEADERS, make_server
from geneb.reporting.shipped import checkout_folder

SPEC = load_spec()
TASK = SPEC.task_ids[0]


@pytest.fixture
def submissions(tmp_path):
    """Two models nobody knows."""
    folder = tmp_path / "submissions"
    folder.mkdir()
    for name, start in (("one", 0.3), ("two", 0.4)):
        write_submission(folder, submission(name, start=start))
    return folder


def build(submissions, out, *more):
    return geneb("leaderboard", "build", "--submissions", submissions, "--out", out, *more)


def files(folder):
    return {
        path.relative_to(folder).as_posix(): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file()
    }


def test_build_and_check(submissions, tmp_path):
    """What is built holds; one byte more, and it does not."""
    out = tmp_path / "out"
    done = build(submissions, out)
    assert done.code == 0, done.err
    built = files(out)
    assert {"tables/leaderboard.json", "tables/scores.csv", "site/index.html"} <= set(built)

    assert build(submissions, out, "--check").code == 0
    path = out / "tables" / "overall.csv"
    path.write_bytes(path.read_bytes().replace(b"0.75", b"0.76", 1))
    found = build(submissions, out, "--check")
    check_mistake(found, str(path), "differs", "0.76", code=1)
    assert "tables/leaderboard.json" not in found.err
    (out / "site" / "index.html").unlink()
    check_mistake(build(submissions, out, "--check"), "index.html", "missing", code=1)
    assert build(submissions, out).code == 0
    assert files(out) == built


def test_check_writes_nothing(submissions, tmp_path):
    """Where nothing is there, every file is missing."""
    out = tmp_path / "out"
    check_mistake(build(submissions, out, "--check", "--no-site"), "leaderboard.json", code=1)
    assert not out.exists()


def test_check_writes_no_parquet_either(submissions, tmp_path):
    """The two are refused together."""
    path = tmp_path / "scores.parquet"
    check_mistake(build(submissions, tmp_path, "--check", "--parquet", path), "leave out --parquet")
    assert not path.exists()


def test_a_folder_of_records_that_is_not_there_is_a_mistake(submissions, tmp_path):
    """Without them, what was verified would be listed as if it were not."""
    done = build(submissions, tmp_path / "out", "--verifications", tmp_path / "verificatoins")
    check_mistake(done, "no such folder of verification records", "verificatoins")
    assert not (tmp_path / "out").exists()


def test_tables_only(submissions, tmp_path):
    """--no-site leaves the site alone."""
    assert build(submissions, tmp_path / "out", "--no-site").code == 0
    assert [path.name for path in (tmp_path / "out").iterdir()] == ["tables"]


def test_an_incomplete_submission_is_refused_by_name(submissions, tmp_path):
    """And nothing is written."""
    document = submission("short")
    del document["results"]["10shot"][TASK]
    write_submission(submissions, document)
    check_mistake(build(submissions, tmp_path / "out"), "short.json", "10shot", TASK)
    assert not (tmp_path / "out").exists()


def test_tables_are_built_without_what_they_do_not_need(submissions, tmp_path):
    """Loading these would take longer than building."""
    program = (
        "import sys\n"
        "from geneb.cli import main\n"
        "try:\n"
        "    main(sys.argv[1:])\n"
        "finally:\n"
        "    heavy = ('h5py', 'numpy', 'pandas', 'rich', 'scipy', 'sklearn', 'torch', 'zarr')\n"
        "    print([name for name in heavy if name in sys.modules])\n"
    )
    options = ("--submissions", str(submissions), "--out", str(tmp_path / "out"))
    done = subprocess.run(
        [sys.executable, "-c", program, "leaderboard", "build", *options],
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout == "[]\n"
    assert (tmp_path / "out" / "site" / "index.html").exists()


def test_the_committed_tables_hold():
    """What a checkout holds is what its submissions give."""
    done = geneb("leaderboard", "build", "--check")
    assert done.code == 0, done.err


def test_an_installation_is_not_written_to(tmp_path, monkeypatch):
    """It needs a checkout, or --out."""
    installed = tmp_path / "geneb" / "leaderboard" / "__init__.py"
    monkeypatch.setattr("geneb.leaderboard.__file__", str(installed))
    with pytest.raises(InputError, match=r"installed geneb(.|\n)*--out DIR"):
        checkout_folder("the leaderboard")


def test_show_without_paths_shows_the_leaderboard():
    """All 41 models, the published best first."""
    done = geneb("leaderboard", "show", "--format", "csv")
    assert done.code == 0, done.err
    rows = list(csv.DictReader(io.StringIO(done.out)))
    assert len(rows) == 41
    assert (rows[0]["rank"], rows[0]["model"]) == ("1", "GENERator-eukaryote-3b-base")
    assert round(float(rows[0]["macro"]), 3) == 0.605
    assert len(rows[0]["macro"]) > 10


def shown(*args):
    done = geneb("leaderboard", "show", "--json", *args)
    assert done.code == 0, done.err
    return done.json["models"]


def test_show_a_category():
    """Ranked by it; several by their mean; ranks count also those that are not shown."""
    models = shown("--category", "splice sites", "--top", "2")
    assert [one["rank"] for one in models] == [1, 2]
    assert models[0]["model_id"] == "nucleotide-transformer-2.5b-multi-species"
    assert list(models[0]["categories"]) == ["Splice Sites"]

    small = shown("--max-params", "500M", "--top", "3")
    assert len(small) == 3
    assert small == shown("--max-params", "500M")[:3]
    assert shown("--max-params", "1", "--top", "3") == []

    both = shown("--category", "lncRNA", "--category", "Promoters")
    means = [sum(one["categories"].values()) for one in both]
    assert means == sorted(means, reverse=True)


def test_show_tasks():
    """By label; one row a model."""
    done = geneb("leaderboard", "show", "--task", "NT H3", "--top", "3", "--format", "md")
    lines = done.out.splitlines()
    assert len(lines) == 5
    assert lines[0].startswith("| rank | model | InstaDeepAI")
    models = shown("--task", "NT H3")
    assert next(one for one in models if one["model_id"] == "splicebert-1024nt")["tasks"] == {
        TASK: 0.736777
    }


def test_show_filters():
    """By size and provenance; the ranks stay those among all models."""
    models = shown("--min-params", "500M", "--max-params", "1.2B")
    assert models
    assert all(5e8 <= one["params"] <= 1.2e9 for one in models)
    assert models[0]["rank"] == 3
    (only,) = shown("--provenance", "self-reported")
    assert (only["model_id"], only["rank"]) == ("splicebert-1024nt", 7)
    check_mistake(geneb("leaderboard", "show", "--min-params", "big"), "500M")
    both = geneb("leaderboard", "show", "--task", "NT H3", "--category", "lncRNA")
    check_mistake(both, "cannot both be asked for")


@pytest.fixture
def served(tmp_path):
    """A command that serves a small site; and its address."""
    site = tmp_path / "site"
    (site / "tables").mkdir(parents=True)
    (site / "index.html").write_text("<p>hello</p>", encoding="utf-8")
    (site / "tables" / "scores.csv").write_text("a,b\n", encoding="utf-8")
    (site / ".hidden").write_text("no", encoding="utf-8")
    (tmp_path / "secret.txt").write_text("no", encoding="utf-8")
    (site / "link.txt").symlink_to(tmp_path / "secret.txt")
    process = subprocess.Popen(
        [sys.executable, "-m", "geneb", "leaderboard", "serve", "--port", "0", "--dir", str(site)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    address = process.stdout.readline().strip()
    yield process, address
    process.kill()
    process.communicate()


def request(address, method, path):
    connection = http.client.HTTPConnection(address.removeprefix("http://").rstrip("/"), timeout=60)
    connection.request(method, path)
    answer = connection.getresponse()
    body = answer.read()
    connection.close()
    return answer, body


def test_serve(served):
    """This machine only; GET and HEAD; no listings, no links, no way out; ends cleanly."""
    process, address = served
    assert address.startswith("http://127.0.0.1:")
    answer, body = request(address, "GET", "/")
    assert (answer.status, body) == (200, b"<p>hello</p>")
    assert answer.headers["Content-Type"] == "text/html; charset=utf-8"
    for name, value in SECURITY_HEADERS.items():
        assert answer.headers.get_all(name) == [value]
    answer, body = request(address, "HEAD", "/index.html?x=1")
    assert (answer.status, body, answer.headers["Content-Length"]) == (200, b"", "12")
    assert request(address, "GET", "/tables/scores.csv")[0].status == 200
    for path in (
        *("/tables/", "/tables", "/nothing", "/.hidden", "/link.txt", "/index.html/"),
        *("/../secret.txt", "/%2e%2e/secret.txt", "/tables/../../secret.txt", "/..%2fsecret.txt"),
    ):
        answer, body = request(address, "GET", path)
        assert answer.status == 404, path
        assert body != b"no"
        assert answer.headers["X-Content-Type-Options"] == "nosniff"
    for method in ("POST", "PUT", "DELETE", "OPTIONS", "TRACE"):
        assert request(address, method, "/")[0].status == 501

    process.send_signal(signal.SIGINT)
    out, err = process.communicate(timeout=60)
    assert (process.returncode, out) == (0, "")
    assert err == "stopped\n"


def test_serve_builds_the_shipped_site(tmp_path):
    """In a temporary folder, which is gone afterwards."""
    process = subprocess.Popen(
        [sys.executable, "-m", "geneb", "leaderboard", "serve", "--port", "0"],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "PYTHONUNBUFFERED": "1", "TMPDIR": str(tmp_path)},
    )
    try:
        address = process.stdout.readline().strip()
        assert b"GENERator" in request(address, "GET", "/")[1]
        assert request(address, "GET", "/tables/leaderboard.json")[0].status == 200
        assert list(tmp_path.iterdir())
        process.send_signal(signal.SIGTERM)
        process.communicate(timeout=60)
    finally:
        process.kill()
        process.communicate()
    assert process.returncode == 0
    assert not list(tmp_path.iterdir())


def test_serve_mistakes(tmp_path):
    """No site; a port that is taken."""
    check_mistake(geneb("leaderboard", "serve", "--dir", tmp_path), "no site here")
    (tmp_path / "index.html").write_text("", encoding="utf-8")
    with make_server(tmp_path) as other:
        port = other.server_address[1]
        taken = geneb("leaderboard", "serve", "--dir", tmp_path, "--port", port)
        check_mistake(taken, "port cannot be used", "--port")
