"""Contract suites that third parties subclass for their own extractors."""
