"""Makes the documentation site: `make docs`, or `python -m builder` in tutorials/site. See CONTRIBUTING.md."""
