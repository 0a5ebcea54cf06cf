"""Benchmarks anyone can rerun: suites as data, one job a process, a row a job, figures from rows alone."""
