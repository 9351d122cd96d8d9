"""What every other part stands on: canonical bytes, files, strangers' text, environment."""
