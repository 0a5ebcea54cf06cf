"""The contract rules, one module per theme."""
