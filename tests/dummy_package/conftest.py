"""The package is another's: its modules are imported by child processes, not collected here."""

collect_ignore_glob = ["*"]
