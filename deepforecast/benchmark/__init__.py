"""Reproducible benchmarks: suites in YAML, one process and one result row per job, reports computed from the rows."""
