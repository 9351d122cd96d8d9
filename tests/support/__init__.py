"""What several test files need: small helpers, no tests."""
