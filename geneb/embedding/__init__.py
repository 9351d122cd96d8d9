"""From task CSVs to a store: plan, batches, engine, run."""
