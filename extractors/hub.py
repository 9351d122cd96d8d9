"""The Hugging Face Hub: which files of a repository are needed, and where its cache keeps them.

The cache is the one that all programs of a user share. It is looked into without the library, so
that a list of models does not wait for it; fetching needs the library.
"""

from __future__ import annotations

import contextlib
import functools
import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping
from pathlib import Path
from typing import Protocol, TypeVar

from geneb.base.canonical import file_sha256
from geneb.base.text import name_some, plain
from geneb.errors import InputError, MissingExtraError, NotFoundError, WorkError

Answer = TypeVar("Answer")

_SAFETENSORS = re.compile(r"model(-\d+-of-\d+)?\.safetensors|model\.safetensors\.index\.json")
_TORCH = re.compile(r"pytorch_model(-\d+-of-\d+)?\.bin|pytorch_model\.bin\.index\.json")
_BESIDE = re.compile(
    r"config\.json|tokenizer\.json|tokenizer_config\.json|special_tokens_map\.json|"
    r"added_tokens\.json|vocab\.(txt|json)|merges\.txt"
)
_ANSWER_SECONDS = 30


class Stated(Protocol):
    """What is known of a file before it is fetched."""

    @property
    def bytes(self) -> int:
        """Its size."""

    @property
    def sha256(self) -> str:
        """The SHA-256 of its content."""


def needed_files(names: Collection[str]) -> list[str]:
    """Return which of a repository's files a model is run from, sorted.

    Weights are safetensors if there are any, else torch files; code and all other pickles are
    left where they are.
    """
    weights = [name for name in names if _SAFETENSORS.fullmatch(name)]
    weights = weights or [name for name in names if _TORCH.fullmatch(name)]
    return sorted([*weights, *(name for name in names if _BESIDE.fullmatch(name))])


def hub_cache() -> Path:
    """Return the folder that the hub's library keeps repositories in."""
    if chosen := os.environ.get("HF_HUB_CACHE") or os.environ.get("HUGGINGFACE_HUB_CACHE"):
        return Path(chosen).expanduser()
    home = os.environ.get("HF_HOME")
    if not home:
        home = str(Path(os.environ.get("XDG_CACHE_HOME") or "~/.cache") / "huggingface")
    return Path(home).expanduser() / "hub"


def cached_snapshot(repository: str, commit: str) -> Path | None:
    """Return the folder of a commit's files in the hub's cache; None where nothing of it is there.

    Some of the files may be missing. They are links to where the content lies.
    """
    folder = hub_cache() / f"models--{repository.replace('/', '--')}" / "snapshots" / commit
    return folder if folder.is_dir() else None


def fetch_snapshot(
    repository: str,
    commit: str,
    stated: Mapping[str, Stated],
    say: Callable[[str], None] | None,
) -> dict[str, Path]:
    """Bring the files that a model is run from into the hub's cache.

    Parameters
    ----------
    repository, commit
        What is fetched.
    stated
        The files, where they are known, and what they must be; else they are chosen by name from
        all that are there, and taken as they come.
    say
        Told about each file; without, the hub's library shows no progress and no warnings.

    Returns
    -------
    dict of str to Path
        Where each file is now.

    Raises
    ------
    MissingExtraError
        If the hub's library is not installed.
    NotFoundError
        If the repository has no weights that can be read.
    WorkError
        If something cannot be downloaded, or is not what it must be; that file is removed again.
    """
    try:
        import huggingface_hub  # noqa: F401  only whether it is there
    except ModuleNotFoundError as error:
        raise MissingExtraError("huggingface_hub", "hub", "to fetch weights") from error
    with contextlib.nullcontext() if say else _silent_library():
        return _fetched(repository, commit, stated, say or (lambda _: None))


def _fetched(
    repository: str, commit: str, stated: Mapping[str, Stated], say: Callable[[str], None]
) -> dict[str, Path]:
    import huggingface_hub

    where = f"{repository} at {commit}"
    here = cached_snapshot(repository, commit)
    if not (stated and here and all((here / name).is_file() for name in stated)):
        _asked(where, _ask_once)
    names = sorted(stated) or needed_files(
        _asked(where, lambda: huggingface_hub.list_repo_files(repository, revision=commit))
    )
    if not any(_SAFETENSORS.fullmatch(name) or _TORCH.fullmatch(name) for name in names):
        raise NotFoundError(
            "there are no weights in this repository that can be read",
            where=where,
            expected="safetensors, or pytorch_model.bin",
            found=name_some(names) or "none of the files that a model is run from",
        )
    found = {}
    for number, name in enumerate(names, start=1):
        say(f"file {number} of {len(names)}: {name}")
        download = functools.partial(
            huggingface_hub.hf_hub_download, repository, name, revision=commit
        )
        found[name] = Path(_asked(f"{where}, {name}", download))
        if name in stated:
            check_file(found[name], stated[name], where)
    return found


@contextlib.contextmanager
def _silent_library() -> Iterator[None]:
    from huggingface_hub import utils

    verbosity, bars = utils.logging.get_verbosity(), not utils.are_progress_bars_disabled()
    utils.logging.set_verbosity_error()
    utils.disable_progress_bars()
    try:
        yield
    finally:
        utils.logging.set_verbosity(verbosity)
        if bars:
            utils.enable_progress_bars()


def check_file(path: Path, stated: Stated, where: str) -> None:
    """Compare a file with what it must be, and remove it if it is something else.

    Raises
    ------
    WorkError
    """
    size = path.stat().st_size
    found = file_sha256(path) if size == stated.bytes else None
    if found == stated.sha256:
        return
    path.resolve().unlink()
    path.unlink(missing_ok=True)
    raise WorkError(
        f"{path.name} is not the file that was published; it was removed again",
        where=where,
        expected=f"{stated.bytes:,} bytes of SHA-256 {stated.sha256}",
        found=f"{size:,} bytes" + (f" of SHA-256 {found}" if found else ""),
        fix="fetch once more; if it happens again, what lies there was changed",
    )


def _ask_once() -> None:
    """Find out whether the hub answers: its library tries for half a minute without a network."""
    from huggingface_hub import constants, get_session

    get_session().head(constants.ENDPOINT, timeout=_ANSWER_SECONDS)


def _asked(where: str, question: Callable[[], Answer]) -> Answer:
    """Ask the hub; whatever goes wrong is one message."""
    try:
        return question()
    except Exception as error:  # the libraries below raise dozens of kinds, by version
        raise _described(error, where) from error


def _described(error: Exception, where: str) -> WorkError | InputError:
    kind = type(error).__name__
    found = f"{kind}: {plain(' '.join(str(error).split()), limit=300)}"
    if kind in ("RepositoryNotFoundError", "RevisionNotFoundError", "RemoteEntryNotFoundError"):
        return InputError("there is no such thing on the hub", where=where, found=found)
    if kind == "GatedRepoError":
        fix = "accept its terms on the hub's page, then log in with `hf auth login`"
    elif os.environ.get("HF_HUB_OFFLINE", "").upper() in ("1", "ON", "YES", "TRUE"):
        fix = "HF_HUB_OFFLINE is set: unset it, or fetch on a machine with a network"
    else:
        fix = (
            "look at the network and fetch again: what has arrived is kept; or fetch on another "
            f"machine and copy the hub's cache to {hub_cache()}"
        )
    return WorkError("this could not be downloaded", where=where, found=found, fix=fix)
