"""Another pooling than the published one is refused before any weights are read."""

from __future__ import annotations

import pytest

from geneb.errors import InputError, NotFoundError
from geneb.extractors.biofm import BioFmExtractor
from geneb.extractors.llama import MetageneExtractor
from geneb.extractors.options import ModelOptions


@pytest.mark.parametrize(
    ("family", "pooling"), [(MetageneExtractor, "mean"), (BioFmExtractor, "last")]
)
def test_the_published_pooling_is_all_that_reference_has(family, pooling, tmp_path):
    """The folder is empty: to read from it would be another error."""
    options = ModelOptions(preset="reference", pooling="max")

    with pytest.raises(InputError, match="the published vectors of this model are") as caught:
        family(tmp_path, options, limit=512)

    assert caught.value.expected == f"pooling {pooling}"
    with pytest.raises(NotFoundError, match="no weights in this folder"):
        family(tmp_path, ModelOptions(preset="reference", pooling=pooling), limit=512)
