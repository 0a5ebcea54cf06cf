"""Build the documentation site: `make docs`, or `python -m builder` in docs. See CONTRIBUTING.md."""
