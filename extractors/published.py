"""Extractor files as the published harness has them, run unmodified.

Such a file holds a class with ``__init__(self, name_model, device="cpu")`` and
``extract_embeddings(self, sequences, batch_size=N)``, which returns one vector a sequence.
"""

from __future__ import annotations

import inspect
from collections.abc import Sequence
from pathlib import Path
from typing import Any, get_args

import numpy as np

from geneb.base.locations import shareable
from geneb.errors import InputError, WorkError
from geneb.extractors.base import Batching, Description, SimpleExtractor
from geneb.extractors.source import LoadedClass, accepts, describe_failure, output_to_stderr
from geneb.extractors.weights import content_sha256

UNSTATED = "unstated"
_COMPUTE_DTYPES = ("float32", "bfloat16", "float16", UNSTATED)


class PublishedExtractor(SimpleExtractor):
    """A published-style class behind the extractor contract.

    Published classes rarely say whether padding enters their vectors; one that does not declare a
    class attribute ``batching`` gets sequences of one length at a time. What it computes in is
    not known and is recorded as such, unless it declares a class attribute ``compute_dtype``.

    Parameters
    ----------
    loaded
        The class, from a user's file.
    device
        Handed to the class.
    weights
        What the class gets as ``name_model``: a hub id, a file or a folder. Default is the
        class's own name.

    Raises
    ------
    InputError
        If the class is not of that style, or cannot be constructed.
    """

    name = "published"

    def __init__(
        self, loaded: LoadedClass, *, device: str = "cpu", weights: str | None = None
    ) -> None:
        cls = loaded.cls
        self._path = loaded.path
        self._class_name = cls.__name__
        self._where = f"{loaded.path.name}:{cls.__name__}"
        self.batching = check_batching(getattr(cls, "batching", "equal-length"), self._where)
        self._compute_dtype = _check_declared(
            "compute_dtype", getattr(cls, "compute_dtype", UNSTATED), _COMPUTE_DTYPES, self._where
        )
        self._model = self._construct(cls, cls.__name__ if weights is None else weights, device)
        self._takes_batch_size = accepts(self._model.extract_embeddings, "batch_size")
        self._description = self._describe(loaded, weights)

    def embed(self, sequences: Sequence[str]) -> np.ndarray:
        """Call ``extract_embeddings`` with all sequences as one batch.

        Raises
        ------
        WorkError
            If it fails, or returns anything but one numeric vector a sequence. Running out of
            memory is passed on as it is.
        """
        options = {"batch_size": len(sequences)} if self._takes_batch_size else {}
        try:
            with output_to_stderr():
                returned = self._model.extract_embeddings(list(sequences), **options)
                array = _as_array(returned)
        except (Exception, SystemExit) as error:
            if isinstance(error, MemoryError) or type(error).__name__ == "OutOfMemoryError":
                raise
            raise WorkError(
                "extract_embeddings failed",
                where=self._where,
                found=describe_failure(error, self._path),
            ) from error
        self._check(array, rows=len(sequences))
        # Always a copy: the class may hand out the same buffer again. A float64 too large for
        # float32 becomes infinite, which the engine reports with its row.
        with np.errstate(over="ignore"):
            return np.array(array, dtype=np.float32, order="C")

    def describe(self) -> Description:
        """Return the file's digest, the class, its model and its own batch size."""
        return self._description

    def _construct(self, cls: type, name_model: str, device: str) -> Any:
        if not callable(getattr(cls, "extract_embeddings", None)):
            raise InputError(
                "this is no extractor class",
                where=self._where,
                expected="a method extract_embeddings(sequences, batch_size), "
                "or a subclass of geneb.extractors.base.Extractor",
            )
        options = {"device": device} if accepts(cls, "device") else {}
        if not options and device != "cpu":
            raise InputError(
                "this class cannot be told its device",
                where=self._where,
                expected="an argument device of __init__",
                found=f"device {device}",
            )
        try:
            with output_to_stderr():
                return cls(name_model, **options)
        except (Exception, SystemExit) as error:
            shown = ", ".join([repr(shareable(name_model)), *options])
            raise InputError(
                "the class could not be constructed",
                where=self._where,
                expected=f"{cls.__name__}({shown}) to work",
                found=describe_failure(error, self._path),
            ) from error

    def _describe(self, loaded: LoadedClass, weights: str | None) -> Description:
        local = Path(weights) if weights is not None and Path(weights).exists() else None
        # A name is all there is to tell other weights apart by; local ones have a digest, and
        # are the same under any name.
        name = None if local else shareable(self._class_name if weights is None else weights)
        parameter = inspect.signature(self._model.extract_embeddings).parameters.get("batch_size")
        default = parameter.default if parameter is not None else None
        return Description(
            parameters={
                "class": self._class_name,
                "name_model": name,
                "batch_size": default if isinstance(default, int) else None,
                "limit": None,
            },
            weights=content_sha256(local) if local else None,
            file=loaded.sha256,
            compute_dtype=self._compute_dtype,
            matmul_precision=UNSTATED,
        )

    def _check(self, array: np.ndarray, rows: int) -> None:
        if array.dtype.kind == "O":
            raise self._wrong_return("numbers", "rows of unequal length, or other things")
        if array.dtype.kind not in "fiu":
            raise self._wrong_return("numbers", f"an array of {array.dtype}")
        if array.ndim != 2 or len(array) != rows or array.shape[1] == 0:
            raise self._wrong_return(
                f"shape ({rows}, dim): one vector a sequence", f"shape {array.shape}"
            )

    def _wrong_return(self, expected: str, found: str) -> WorkError:
        return WorkError(
            "extract_embeddings returned something else than embeddings",
            where=self._where,
            expected=expected,
            found=found,
        )


def check_batching(declared: Any, where: str, *, published: bool = True) -> Batching:
    """Return what a class declares as its batching, if there is such a one.

    Parameters
    ----------
    published
        Whether it is a published-style class, which has no way to say how many rows of a file
        make a batch.

    Raises
    ------
    InputError
        If there is not.
    """
    allowed = [name for name in get_args(Batching) if name != "file-order" or not published]
    return _check_declared("batching", declared, allowed, where)


def _check_declared(name: str, declared: Any, allowed: Sequence[str], where: str) -> Any:
    if not isinstance(declared, str) or declared not in allowed:
        raise InputError(
            f"the class declares a {name} that does not exist",
            where=where,
            expected=" or ".join(allowed),
            found=repr(declared),
        )
    return declared


def _as_array(value: Any) -> np.ndarray:
    """Return what a published class gave back as an array, from whatever device it lies on."""
    if hasattr(value, "detach"):  # a torch tensor; bfloat16 is unknown to NumPy
        return value.detach().float().cpu().numpy()
    if isinstance(value, list | tuple) and any(hasattr(row, "detach") for row in value):
        value = [_as_array(row) for row in value]
    try:
        return np.asarray(value)
    except ValueError:  # rows of unequal length
        rows = np.empty(len(value), dtype=object)
        rows[:] = None
        return rows
