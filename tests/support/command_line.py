"""Every family's models as a user runs them: embedded, verified and probed by the command line."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, ClassVar

import pytest

from geneb import open_store
from geneb.cli import main
from geneb.extractors.base import Extractor
from geneb.extractors.registry import models
from support.small_tasks import write_small_tasks

ROWS = 24


def run(*arguments: object) -> None:
    """Run the command line in this process; torch is loaded already, and takes seconds."""
    with pytest.raises(SystemExit) as ended:
        main([str(argument) for argument in arguments])
    assert ended.value.code == 0, arguments


class FromTheCommandLine:
    """To be inherited by a family's tests.

    Attributes
    ----------
    family
        The extractor's class.
    parameters
        What the tiny checkpoint is run with in the place of the registry's.
    folder
        The tiny checkpoint.
    """

    family: ClassVar[type[Extractor]]
    parameters: ClassVar[Mapping[str, Any]]
    folder: Path

    @classmethod
    def registered(cls) -> tuple[str, ...]:
        """Return the ids of the models that the tiny checkpoint stands for."""
        family = f"{cls.family.__module__.rpartition('.')[2]}:{cls.family.__name__}"
        return tuple(name for name, model in models().items() if model.family == family)

    def test_the_command_line_embeds_verifies_and_probes(self, tmp_path, demo_data, monkeypatch):
        """For each model: a store that passes its checks, tells its recipe, and can be probed."""
        data = write_small_tasks(demo_data, tmp_path / "data", rows=ROWS)
        assert self.registered()
        for model_id in self.registered():
            entry = models()[model_id]
            tiny = {
                name: self.parameters.get(name, set_) for name, set_ in entry.parameters.items()
            }
            if "pooling" in entry.parameters:  # what tells DNABERT-S from DNABERT-2
                tiny["pooling"] = entry.parameters["pooling"]
            small = entry.model_copy(update={"parameters": tiny})
            monkeypatch.setitem(models(), model_id, small)
            store, out = tmp_path / f"{model_id}.zarr", tmp_path / "results"
            told = ("--weights", self.folder, "--device", "cpu", "--tasks", "mixed", "--quiet")

            run("embed", "--model", model_id, "--data", data, "--store", store, *told)
            run("store", "verify", store)
            run("probe", store, "--out", out, "--quiet")

            made = open_store(store)
            assert {
                "preset",
                "pooling",
                "layer",
                "long input",
            } <= made.fingerprint.parameters.keys()
            assert made.fingerprint.weights
            assert made.manifest("mixed").splits["train"].counts.truncated >= 0
            assert (out / model_id / "results.json").is_file()
