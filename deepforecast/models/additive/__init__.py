"""Additive forecasters: Prophet and NeuralProphet."""
