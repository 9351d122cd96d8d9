"""The embedding store: its format, reading, writing and verification."""
