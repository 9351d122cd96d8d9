"""How each model is run: one module per model family, and the registry."""
