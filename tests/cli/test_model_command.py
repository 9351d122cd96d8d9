"""``geneb model``: what is listed and shown, and fetching from a hub on this machine."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios

import pytest
from support.command import check_mistake, geneb
from support.fake_hub import serve_hub
from support.tiny_esm import DIM, write_tiny_esm

from geneb.benchmark.spec import load_model_meta
from geneb.errors import InputError
from geneb.extractors.registry import model_ids
from geneb.extractors.weights import published_weights
from geneb.reporting.entries import read_leaderboard
from geneb.reporting.models import find_card
from geneb.reporting.shipped import shipped_sources

MODEL = "agro-nucleotide-transformer-1b"
REPOSITORY = "InstaDeepAI/agro-nucleotide-transformer-1b"
PINNED = "b0e1ea1f53a2bf5bb29f8eab7a7e553bf06c1ab1"
OTHER = "0123456789abcdef0123456789abcdef01234567"


@pytest.fixture(scope="module")
def listed():
    done = geneb("model", "list", "--json", fresh=True)
    assert (done.code, done.err) == (0, "")
    return {card["id"]: card for card in done.json}


@pytest.fixture(scope="module")
def tiny(tmp_path_factory) -> dict[str, bytes]:
    """The files of a tiny model, and some that nobody may fetch."""
    folder = write_tiny_esm(tmp_path_factory.mktemp("tiny"))
    return {
        **{path.name: path.read_bytes() for path in folder.iterdir()},
        "README.md": b"# tiny",
        "modeling_esm.py": b"raise SystemExit",
        "training_args.bin": b"\x80\x04.",
        "pytorch_model.bin": b"\x80\x04.",
        "sub/model.safetensors": b"",
    }


@pytest.fixture
def place(tmp_path):
    """The environment of a user without anything in any cache."""

    def place(url: str = "http://127.0.0.1:1") -> dict[str, str]:
        return {
            "HF_HOME": str(tmp_path / "hf"),
            "HF_HUB_CACHE": str(tmp_path / "hf" / "hub"),
            "HF_ENDPOINT": url,
            "HF_HUB_OFFLINE": "0",
            "HF_HUB_DISABLE_XET": "1",
            "GENEB_CACHE": str(tmp_path / "cache"),
        }

    return place


def test_every_model_is_listed_once(listed):
    """Those that can be run in the registry's order, then the benchmark's others."""
    ids = list(listed)
    published = [facts.id for facts in load_model_meta().models]

    assert ids[: len(model_ids())] == model_ids()
    assert set(ids) == {*model_ids(), *published}
    assert [name for name in ids if listed[name]["runnable"]] == model_ids()


def test_a_listed_model_has_what_is_published_about_it(listed):
    """Size, licence and macro score of one model, by hand."""
    card = listed["nucleotide-transformer-2.5b-multi-species"]

    assert card["params"] == 2_500_000_000
    assert card["licence"] == "CC-BY-NC-SA-4.0"
    assert (card["dim"], card["max_tokens"], card["max_bases"]) == (2560, 1000, 5994)
    assert card["memory_bytes"] == {"float32": 10_000_000_000, "bfloat16": 5_000_000_000}
    # config, two shards, their index, and the tokenizer's three files.
    assert card["disk_bytes"] == 707 + 9_913_283_486 + 278_112_047 + 46_039 + 101 + 129 + 28_718
    (full,) = (s for s in card["scores"] if (s["regime"], s["metric"]) == ("full", "MCC"))
    assert full["macro"] == pytest.approx(0.573, abs=5e-4)  # three decimals of the table


def test_every_published_model_has_its_scores(listed):
    """Three regimes and three metrics each, ranks from 1 to 41."""
    entries = read_leaderboard(*shipped_sources()).entries

    for entry in entries:
        assert len(listed[entry.model_id]["scores"]) == 9
    ranks = {
        score["rank"]
        for entry in entries
        for score in listed[entry.model_id]["scores"]
        if (score["regime"], score["metric"]) == ("full", "MCC")
    }
    assert ranks == set(range(1, 42))


def test_baselines_need_nothing(listed):
    """And models with weights the extra that runs them."""
    assert listed["kmer4"]["needs"] is None
    assert listed["kmer4"]["baseline"]
    assert listed["kmer4"]["weights"] == "none"
    assert listed["GROVER"]["needs"] == "models"
    assert not listed["ci-spliceai"]["baseline"]
    assert listed["hf"]["weights"] == "named"
    assert listed["space"]["needs"] is None  # nothing helps: it cannot be run


def test_the_table_is_filtered():
    """By family and size; the number of models is said on stderr."""
    done = geneb("model", "list", "--family", "T-ENC", "--max-params", "90M", "--runnable")

    rows = done.out.splitlines()
    assert done.code == 0
    assert rows[0].split()[:3] == ["id", "size", "MCC"]
    assert any(row.startswith("GROVER ") for row in rows)
    assert not any("kmer" in row or "2.5B" in row for row in rows)
    assert f"{len(rows) - 1} models" in done.err


def on_a_terminal(width: int, *arguments: str) -> list[str]:
    """Return the lines that a command prints on a terminal, and those on stderr."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 100, width, 0, 0))
    env = {name: value for name, value in os.environ.items() if name not in ("COLUMNS", "LINES")}
    command = [sys.executable, "-m", "geneb", *arguments]
    printed = b""
    with subprocess.Popen(
        command, stdout=theirs, stderr=subprocess.PIPE, env=env | {"TERM": "xterm"}
    ) as process:
        os.close(theirs)
        with contextlib.suppress(OSError):  # what a terminal's end is on Linux
            while chunk := os.read(ours, 1 << 16):
                printed += chunk
        os.close(ours)
        told = process.stderr.read().decode()
    assert process.returncode == 0, told
    text = re.sub(r"\x1b\[\d*m", "", printed.decode())  # bold
    return [*text.splitlines(), *told.splitlines()]


@pytest.mark.parametrize(
    ("width", "last", "hidden"), [(80, "weights", "family, licence"), (200, "tokenization", None)]
)
def test_a_terminal_gets_the_columns_that_fit(listed, width, last, hidden):
    """One line a model, no id broken; what is left out is named."""
    lines = on_a_terminal(width, "model", "list")

    assert lines[0].split()[-1] == last
    assert [line.split()[0] for line in lines[1 : len(listed) + 1]] == list(listed)
    assert max(map(len, lines[: len(listed) + 1])) <= width
    assert (f"no room for {hidden}" in lines[-1]) if hidden else "models" in lines[-1]


def test_an_unknown_family_lists_the_known_ones():
    check_mistake(geneb("model", "list", "--family", "lstm"), "'lstm'", "esm", "T-enc")


def test_show_says_all_that_is_known():
    """For people: where weights come from, how it is run, scores with ranks, what to type."""
    done = geneb("model", "show", MODEL)

    assert (done.code, done.err) == (0, "")
    for words in (
        REPOSITORY, PINNED, "CC-BY-NC-SA-4.0", "3.97 GB", "4.00 GB in float32", "1,024", "6,138",
        "pytorch_model.bin", "masked", "full    MCC", f"geneb model fetch {MODEL}",
        f"geneb embed --model {MODEL}", "geneb[models]",
    ):  # fmt: skip
        assert words in done.out


def test_show_for_programs():
    """The same facts as in the list, and the commands."""
    done = geneb("model", "show", "splicebert-1024nt", "--json")

    assert done.json["elsewhere"].startswith("Zenodo record 7995778")
    assert done.json["commands"][-1].startswith(
        "geneb embed --model splicebert-1024nt --weights PATH"
    )


def test_show_of_a_generic_model_asks_for_weights_and_a_name():
    done = geneb("model", "show", "hf", "--json")

    assert done.json["commands"] == [
        "geneb embed --model hf --weights DIR --model-id NAME --data DIR --store hf.zarr"
    ]


def test_show_names_all_files():
    """Those of many parts are named once, so that nothing is cut."""
    done = geneb("model", "show", "METAGENE-1")

    (files,) = (line for line in done.out.splitlines() if line.startswith("files "))
    assert files.split(None, 1)[1].strip() == (
        "config.json, model-*-of-00006.safetensors, model.safetensors.index.json, "
        "special_tokens_map.json, tokenizer.json, tokenizer_config.json"
    )


def test_show_says_where_nothing_is_cut():
    """A model without a limit says so; one that counts tokens does not."""
    assert "no limit" in geneb("model", "show", "MutBERT").out
    assert "no limit" not in geneb("model", "show", "GROVER").out


def test_commands_ask_for_the_commit_where_none_is_pinned():
    """As they stand they would be refused."""
    done = geneb("model", "show", "dnabert-6", "--json")

    assert done.json["commands"] == [
        "geneb model fetch dnabert-6 --revision COMMIT",
        "geneb doctor --model dnabert-6 --revision COMMIT",
        "geneb embed --model dnabert-6 --revision COMMIT --data DIR --store dnabert-6.zarr",
    ]


@pytest.mark.parametrize(
    "command", [["model", "show"], ["model", "fetch"], ["doctor", "--model"]], ids=" ".join
)
def test_an_unknown_model_gets_suggestions(command):
    """Those that were probably meant, and not every id that there is."""
    done = geneb(*command, "LucaOne")

    check_mistake(
        done, "there is no such model", "mean LucaOne-default-step36M?", "geneb model list"
    )
    assert "kmer8" not in done.err


@pytest.mark.parametrize(
    ("wanted", "meant"),
    [
        ("GROVERS", "did you mean GROVER?"),
        ("gener_ator", "mean GENERator-eukaryote-1.2b-base, GENERator-eukaryote-3b-base?"),
        ("DNA-GPT", "mean dna_gpt0.1b_h, dna_gpt3b_m?"),
        (":", "what to do: geneb model list"),
    ],
)
def test_a_model_is_found_by_a_part_of_its_name(wanted, meant):
    """Or of its id, in any spelling; else those that look alike; else the list is named."""
    with pytest.raises(InputError, match="no such model") as caught:
        find_card(wanted)

    assert meant in str(caught.value)


@pytest.mark.parametrize("quiet", [True, False])
def test_quiet_silences_the_hub_too(tiny, place, quiet):
    """Its library draws bars of its own, here even without a terminal; a note is no progress."""
    with serve_hub(REPOSITORY, OTHER, tiny) as hub:
        env = place(hub.url) | {"TQDM_POSITION": "-1"}
        told = ["--quiet"] if quiet else []
        done = geneb("model", "fetch", MODEL, "--revision", OTHER, *told, env=env)

    assert done.code == 0, done.err
    lines = done.err.splitlines()
    assert lines[-1].startswith("note: these files are not those that are pinned")
    assert (len(lines) == 1) == quiet
    assert ("100%" in done.err) != quiet


def test_fetch_brings_what_a_model_is_run_from_and_nothing_else(tiny, place):
    """Of a commit that is not pinned: by name, safetensors first; the model runs from there."""
    with serve_hub(REPOSITORY, OTHER, tiny) as hub:
        env = place(hub.url)
        done = geneb("model", "fetch", MODEL, "--revision", OTHER, "--json", env=env)

    assert done.code == 0, done.err
    assert done.json["files"] == ["config.json", "model.safetensors", "vocab.txt"]
    assert sorted(hub.asked) == done.json["files"]
    assert done.json["compared"] == 0
    assert "nobody vouches for them" in done.err

    # The hub is gone: what runs now runs from its cache.
    examined = geneb("doctor", "--model", MODEL, "--revision", OTHER, "--json", env=place())
    assert examined.code == 1, examined.err
    assert examined.json["dim"] == DIM
    assert examined.json["weights"] is not None


def test_fetch_removes_what_is_not_the_pinned_file(tiny, place):
    """Exit 1; the message has both digests; nothing of the file stays in the cache."""
    names = published_weights(MODEL).files
    files = {name: tiny.get(name, b"something else") for name in names}
    with serve_hub(REPOSITORY, PINNED, files) as hub:
        env = place(hub.url)
        done = geneb("model", "fetch", MODEL, env=env)

    check_mistake(
        done, "config.json is not the file that was published", "707 bytes", "removed", code=1
    )
    assert hub.asked == ["config.json"]
    left = geneb("model", "show", MODEL, "--json", env=env).json
    assert left["weights"] == "not here"


def test_fetch_without_a_network_says_what_to_do(place):
    """Nothing answers: exit 1, one message, no traceback."""
    offline = place() | {"HF_HUB_OFFLINE": "1"}

    check_mistake(
        geneb("model", "fetch", MODEL, env=offline), REPOSITORY, "HF_HUB_OFFLINE is set", code=1
    )
    check_mistake(
        geneb("model", "fetch", MODEL, env=place()), "could not be downloaded", "copy the hub's",
        code=1,
    )  # fmt: skip


def test_fetch_of_a_commit_that_is_not_there_is_one_message(tiny, place):
    """A typing error in --revision, and one in the number of digits."""
    with serve_hub(REPOSITORY, OTHER, tiny) as hub:
        env = place(hub.url)
        wrong = geneb("model", "fetch", MODEL, "--revision", OTHER[::-1], env=env)
        short = geneb("model", "fetch", MODEL, "--revision", OTHER[:7], env=env)

    check_mistake(wrong, "no such thing on the hub")
    check_mistake(short, "40 hexadecimal digits", "0123456")


def test_fetch_of_a_repository_without_weights_fetches_nothing(place):
    """Pickles of other names are no weights."""
    with serve_hub("some/model", OTHER, {"config.json": b"{}", "training_args.bin": b""}) as hub:
        done = geneb(
            "model", "fetch", "hf", "--weights", "some/model", "--revision", OTHER,
            env=place(hub.url),
        )  # fmt: skip

    check_mistake(done, "no weights in this repository", "config.json")
    assert not hub.asked


def test_what_lies_elsewhere_is_named_with_its_files(place):
    """Google Drive and the like: where, which files, and what to do with them."""
    done = geneb("model", "fetch", "genomics-fm", env=place())

    check_mistake(done, "Google Drive file", "pytorch_model.bin (479,674,693 bytes", "--weights")


def test_a_model_without_weights_has_nothing_to_fetch(place):
    check_mistake(geneb("model", "fetch", "kmer3", env=place()), "kmer3 has no weights")
    check_mistake(geneb("model", "fetch", "hf", env=place()), "--weights and --revision")


def test_running_a_model_that_is_not_here_names_the_command(place):
    """Nothing is downloaded by running."""
    done = geneb("doctor", "--model", MODEL, env=place())

    check_mistake(done, "not on this machine", PINNED, f"geneb model fetch {MODEL}")
