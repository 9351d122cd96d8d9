"""What can be learnt from stores and results: one module a question."""
