"""Test suites for third parties' extractors, store readers and probes."""

from geneb.testing.extractors import ExtractorContract
from geneb.testing.probes import ProbeContract
from geneb.testing.stores import StoreContract

__all__ = ["ExtractorContract", "ProbeContract", "StoreContract"]
