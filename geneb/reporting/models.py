"""All that is known about models: how they are run, what is published, how they scored."""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from typing import Any

from geneb.base.requirements import extras, is_met
from geneb.benchmark.spec import ModelFacts, load_model_meta, load_spec
from geneb.errors import InputError, NotFoundError
from geneb.extractors.lookup import no_such_model
from geneb.extractors.registry import Model, models
from geneb.extractors.weights import PublishedWeights, locate, published_weights
from geneb.reporting.entries import read_leaderboard
from geneb.reporting.shipped import shipped_sources
from geneb.reporting.tables import standings

# Memory for the weights alone; what a batch takes comes on top.
BYTES_A_PARAMETER = {"float32": 4, "bfloat16": 2}
MODELS_EXTRA = "models"


@dataclass(frozen=True)
class Score:
    """A published macro score, and its rank among the models of the leaderboard."""

    regime: str
    metric: str
    macro: float
    rank: int


@dataclass(frozen=True)
class ModelCard:
    """What is known about one model; None where nobody says.

    Attributes
    ----------
    runnable
        Whether this version of geneb can run it.
    family
        The extractor that runs it.
    architecture, tokenization, pretraining_data
        The benchmark's own labels.
    dim, max_tokens, max_bases
        Numbers a vector, and how much of a sequence is looked at, as it is run by default.
    presets, recipe, notes
        See `geneb.extractors.registry.Model`.
    needs, installed
        The extra that it needs to be run, None for none; whether that is there.
    weights
        ``none``: it has none; ``here``: on this machine; ``not here``; ``named``: those that a
        user names.
    scores
        Macro scores of the leaderboard, regime by regime.
    """

    id: str
    display: str
    description: str | None
    runnable: bool
    baseline: bool
    family: str | None
    architecture: str | None
    tokenization: str | None
    pretraining_data: str | None
    params: int | None
    dim: int | None
    max_tokens: int | None
    max_bases: int | None
    presets: list[str]
    recipe: str | None
    notes: str | None
    licence: str | None
    code_licence: str | None
    licence_note: str | None
    hub_id: str | None
    revision: str | None
    package: str | None
    elsewhere: str | None
    url: str | None
    files: dict[str, int]
    needs: str | None
    installed: bool
    weights: str
    provenance: str | None
    scores: list[Score] = field(default_factory=list)

    @property
    def disk_bytes(self) -> int | None:
        """What the published files take; None where their sizes are not known."""
        return sum(self.files.values()) or None

    def memory_bytes(self, dtype: str) -> int | None:
        """Return what the weights take in memory; None where the parameters are not known."""
        return self.params and self.params * BYTES_A_PARAMETER[dtype]

    @property
    def macro(self) -> float | None:
        """The published macro MCC of the full regime."""
        found = (
            score.macro for score in self.scores if (score.regime, score.metric) == ("full", "MCC")
        )
        return next(found, None)

    def as_json(self) -> dict[str, Any]:
        """Return everything as JSON values."""
        memory = {dtype: self.memory_bytes(dtype) for dtype in BYTES_A_PARAMETER}
        return {**asdict(self), "disk_bytes": self.disk_bytes, "memory_bytes": memory}


def model_cards() -> list[ModelCard]:
    """Return all models: those that can be run in the registry's order, then the others."""
    meta = load_model_meta()
    scores = _scores()
    ids = [*models(), *(facts.id for facts in meta.models if facts.id not in models())]
    installed = _is_installed(MODELS_EXTRA)
    return [
        _card(name, models().get(name), meta.find(name), scores.get(name, []), installed=installed)
        for name in ids
    ]


def find_card(model_id: str) -> ModelCard:
    """Return one model.

    Raises
    ------
    InputError
        If there is none of this id; the message names those that look alike.
    """
    cards = {card.id: card for card in model_cards()}
    if model_id not in cards:
        known = {name: card.display for name, card in cards.items()}
        raise no_such_model(model_id, known, expected="an id of `geneb model list`")
    return cards[model_id]


def chosen(
    cards: list[ModelCard],
    *,
    family: str | None = None,
    runnable: bool = False,
    min_params: int | None = None,
    max_params: int | None = None,
) -> list[ModelCard]:
    """Return the models that are asked for, in the same order.

    Parameters
    ----------
    family
        The extractor's name, or a label of the architecture; case does not count.
    runnable
        Only those that can be run.
    min_params, max_params
        Models outside, and those of unknown size, are left out.

    Raises
    ------
    InputError
        If no model is of the family.
    """
    found = [card for card in cards if card.runnable or not runnable]
    if family is not None:
        known = {name for card in cards for name in (card.family, card.architecture) if name}
        if family.casefold() not in {name.casefold() for name in known}:
            raise InputError(
                f"no model is of the family {family[:80]!r}", expected=", ".join(sorted(known))
            )
        found = [card for card in found if _is_of(card, family)]
    return [card for card in found if _is_between(card.params, min_params, max_params)]


def _is_of(card: ModelCard, family: str) -> bool:
    names = (card.family or "", card.architecture or "")
    return family.casefold() in {name.casefold() for name in names}


def _is_between(params: int | None, low: int | None, high: int | None) -> bool:
    if low is None and high is None:
        return True
    return params is not None and (low or 0) <= params <= (params if high is None else high)


def _card(
    name: str,
    model: Model | None,
    facts: ModelFacts | None,
    scores: list[Score],
    *,
    installed: bool,
) -> ModelCard:
    known, known_as = published_weights(name), model or facts
    hub_id = (model and model.hub_id) or known.repository or (facts and facts.hub_id)
    bare = model is not None and facts is None and not model.generic and hub_id is None
    baseline = bare and known.package is None
    revision = (model and model.revision) or known.revision
    limit = model.parameters.get("limit") if model else None
    return ModelCard(
        id=name,
        display=known_as.display if known_as else name,
        description=model and model.description,
        runnable=model is not None,
        baseline=baseline,
        family=model and model.family.partition(":")[0],
        architecture=facts and facts.architecture,
        tokenization=facts and facts.tokenization,
        pretraining_data=facts and facts.pretraining_data,
        params=(model and model.params) or (facts and facts.params),
        dim=model and model.dim,
        max_tokens=limit if isinstance(limit, int) else None,
        max_bases=model and model.bases,
        presets=list(model.presets) if model and not baseline else [],
        recipe=model and model.recipe,
        notes=model and model.notes,
        licence=(model and model.licence) or (facts and facts.licence),
        code_licence=facts and facts.code_licence,
        licence_note=facts and facts.licence_note,
        hub_id=hub_id,
        revision=revision,
        package=known.package,
        elsewhere=known.elsewhere or (facts and not hub_id and facts.weights_note) or None,
        url=facts and facts.url,
        files=_sizes(known, hub_id, revision),
        needs=None if baseline or model is None else MODELS_EXTRA,
        installed=baseline or installed,
        weights=_weights_state(name, model, baseline=baseline),
        provenance=facts and facts.provenance,
        scores=scores,
    )


def _sizes(known: PublishedWeights, hub_id: str | None, revision: str | None) -> dict[str, int]:
    files = known.files_of(hub_id, revision) if hub_id and revision else known.files
    return {name: file.bytes for name, file in files.items()}


def _weights_state(name: str, model: Model | None, *, baseline: bool) -> str:
    if baseline:
        return "none"
    if model is not None and model.generic:
        return "named"
    try:
        locate(name, hub_id=model and model.hub_id, pinned=model and model.revision)
    except (NotFoundError, InputError):
        return "not here"
    return "here"


def _is_installed(extra: str) -> bool:
    return all(map(is_met, extras().get(extra, [])))


def _scores() -> dict[str, list[Score]]:
    spec = load_spec()
    entries = read_leaderboard(*shipped_sources()).entries
    scores: dict[str, list[Score]] = {}
    for regime in spec.regimes:
        for metric in spec.metrics:
            for one in standings(entries, regime, metric, spec):
                if one.rank is not None and one.scores.macro is not None:
                    score = Score(regime, metric, one.scores.macro, one.rank)
                    scores.setdefault(one.model_id, []).append(score)
    return scores
