"""Contract suites that third parties subclass for their own extractors and store readers."""

from geneb.testing.extractors import ExtractorContract
from geneb.testing.stores import StoreContract

__all__ = ["ExtractorContract", "StoreContract"]
