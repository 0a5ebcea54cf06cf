"""Training of networks: the only package that uses Lightning, which is imported when a fit starts."""
