"""From a store to scores: protocols, backends, fits, and the probe that puts them together."""
