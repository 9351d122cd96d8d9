"""Contract suites that third parties subclass for their own extractors."""

from geneb.testing.extractors import ExtractorContract

__all__ = ["ExtractorContract"]
