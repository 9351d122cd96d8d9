"""Task CSVs: reading them, and what a task is."""
