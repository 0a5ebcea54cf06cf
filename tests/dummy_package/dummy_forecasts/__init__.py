"""Models for deepforecast from another package."""
