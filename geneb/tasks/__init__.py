"""Task CSVs: reading, choosing and describing them."""
