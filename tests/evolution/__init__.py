"""Random data and schema changes against a model of what a database holds."""
