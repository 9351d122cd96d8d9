"""From a store to scores: protocols, probes, backends, fits."""
