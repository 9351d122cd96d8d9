"""What is fixed: the spec, what is published about the models, and their typed loader."""
