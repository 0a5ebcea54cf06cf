"""Where networks learn: the only room that knows Lightning, which is imported when a fit begins."""
