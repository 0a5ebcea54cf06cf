"""Training of networks: the only package that uses Lightning, which is imported when a fit starts.

`trainer.train` runs Lightning's Trainer on the batches of `sampler.WindowSampler`. `module.ForecastModule` has loss,
optimizer and schedule; `callbacks.TrainingMonitor` records losses, undoes steps that diverge, validates, writes
checkpoints and selects the final weights.
"""
