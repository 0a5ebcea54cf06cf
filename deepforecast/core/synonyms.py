"""Names that other libraries give to our parameters, for error messages and the migration page."""

from __future__ import annotations

from collections.abc import Container

_FUTURE, _PAST, _STATIC = (
    f"Declare covariates with the data: `fit(frame, columns={{'{role}': [...]}})`" for role in ("future", "past", "static")
)
_WEIGHT = "Declare a column of weights with the data: `fit(frame, columns={'weight': ...})`"
_LEVEL = "Pass `level=80` to `predict`"
_TREES = "`LightGBM`, `XGBoost`, `CatBoost` and `GradientBoosting` have it"
_N_JOBS = "Set OMP_NUM_THREADS, or pass `n_jobs` to `compare` or `cross_validate`, `TuningOptions(n_jobs=...)` to `tune`"
_SEED = "The model is deterministic: there is nothing to seed"


def _trainer(name: str) -> str:
    return f"Networks take it as `trainer={{'{name}': ...}}`"


_SYNONYMS: dict[str, dict[str, str | tuple[str, ...]]] = {
    "neuralforecast": {
        "h": "horizon",
        "random_seed": ("seed", _SEED),
        "futr_exog_list": _FUTURE,
        "hist_exog_list": _PAST,
        "stat_exog_list": _STATIC,
        "scaler_type": "scaler",
        "early_stop_patience_steps": "patience",
        "val_check_steps": "validate_every",
        "val_size": "validation_size",
        "encoder_hidden_size": "hidden_size",
        "encoder_n_layers": "n_layers",
        "encoder_dropout": "dropout",
        "mlp_units": "hidden_sizes",
        "windows_batch_size": "batch_size",
        "n_head": "n_heads",
        "input_size": "lags",
        "level": _LEVEL,
        "prediction_intervals": "intervals",
    },
    "statsforecast, mlforecast and sktime": {
        "sp": "season_length",
        "trend_forecaster": "trend_model",
        "seasonal": "Set `season_length=1` for a non-seasonal model",
        "target_transforms": ("differences", "transform"),
        "date_features": "calendar",
        "weight_col": _WEIGHT,
        "num_threads": "Set OMP_NUM_THREADS, or use joblib's `parallel_config`",
    },
    "darts": {
        "output_chunk_length": "horizon",
        "input_chunk_length": ("input_size", "lags"),
        "n_epochs": "max_epochs",
        "random_state": ("seed", _SEED),
        "likelihood": "head",
        "past_covariates": _PAST,
        "future_covariates": _FUTURE,
        "static_covariates": _STATIC,
        "hidden_dim": "hidden_size",
        "n_rnn_layers": "n_layers",
        "sample_weight": _WEIGHT,
        "lags_past_covariates": "past_lags",
        "lags_future_covariates": "future_lags",
        "pl_trainer_kwargs": "trainer",
        "seasonal_periods": "season_length",
    },
    "gluonts": {
        "prediction_length": "horizon",
        "context_length": "input_size",
        "freq": "Pass `freq` to `fit`; by default it is inferred",
        "num_layers": "n_layers",
        "dropout_rate": "dropout",
        "num_feat_dynamic_real": _FUTURE,
        "distr_output": "head",
        "lr": "learning_rate",
    },
    "Prophet": {
        "interval_width": _LEVEL,
        "holidays": "`Prophet`, `NeuralProphet` and the regression models have it",
        "uncertainty_samples": "Intervals are not sampled: pass `level` to `predict`, or use `simulate` for sample paths",
        "mcmc_samples": "Set `uncertainty='laplace'`",
        "periods": "horizon",
        "ar_lags": "input_size",
        "n_lags": ("input_size", "lags"),
        "n_forecasts": "horizon",
        "seasonality": "seasonalities",
    },
    "statsmodels and pmdarima": {
        "steps": "horizon",
        "n_periods": "horizon",
        "m": "season_length",
        "seasonal_period": "season_length",
        "exog": _FUTURE,
        "damped_trend": "damped",
        "smoothing_level": "alpha",
        "smoothing_trend": "beta",
        "smoothing_seasonal": "gamma",
        "information_criterion": "criterion",
        "use_boxcox": "box_cox",
        "period": "season_length",
        "freq_seasonal": ("harmonics", "season_length"),
        "p": "order",
        "d": "order",
        "q": "order",
    },
    "scikit-learn, LightGBM, XGBoost and CatBoost": {
        "n_estimators": _TREES,
        "num_boost_round": ("n_estimators", _TREES),
        "iterations": ("n_estimators", "max_iter"),
        "max_leaf_nodes": "num_leaves",
        "min_data_in_leaf": "min_child_samples",
        "min_samples_leaf": "min_child_samples",
        "l2_regularization": "reg_lambda",
        "l2_leaf_reg": "reg_lambda",
        "lambda_l2": "reg_lambda",
        "feature_fraction": "colsample_bytree",
        "bagging_fraction": "subsample",
        "eta": "learning_rate",
        "alpha": "ridge",
        "max_iter": "n_estimators",
        "sample_weight": _WEIGHT,
        "objective": "options",
        "boosting_type": "options",
        "tree_method": "options",
        "early_stopping": ("early_stopping_rounds", "patience"),
        "depth": "max_depth",
        "hidden_layer_sizes": "hidden_sizes",
        "n_jobs": _N_JOBS,
        "verbose": _trainer("enable_progress_bar"),
    },
    "PyTorch and Lightning": {
        "num_heads": "n_heads",
        "nhead": "n_heads",
        "num_encoder_layers": "encoder_layers",
        "num_decoder_layers": "decoder_layers",
        "epochs": "max_epochs",
        "max_epoch": "max_epochs",
        "weight_averaging": "ema_decay",
        "optimizer": ("learning_rate", "weight_decay"),
        "lr_scheduler": "lr_schedule",
        "gradient_clip": _trainer("gradient_clip_val"),
        "default_root_dir": "checkpoint_dir",
        "gpus": _trainer("devices"),
        **{
            name: _trainer(name)
            for name in (
                "accelerator", "devices", "precision", "strategy", "accumulate_grad_batches", "gradient_clip_val",
                "gradient_clip_algorithm", "enable_progress_bar", "callbacks", "logger",
            )
        },
        "loss_function": "loss",
    },
}
SYNONYMS = {
    library: {name: (targets,) if isinstance(targets, str) else targets for name, targets in names.items()}
    for library, names in _SYNONYMS.items()
}
"""Per library and its name of a parameter, our names or advice."""


def suggest(name: str, params: Container[str]) -> str:
    """How `name` is written here, for a class with these parameters; empty if no other library is known to have it.

    >>> suggest("h", {"horizon", "alias"})
    'Use `horizon`.'
    >>> suggest("interval_width", {"horizon"})
    'Pass `level=80` to `predict`.'
    """
    targets = [target for names in SYNONYMS.values() for target in names.get(name, ())]
    known = [f"`{target}`" for target in dict.fromkeys(targets) if target in params]
    if known:
        return f"Use {' or '.join(known)}."
    advice = [target for target in targets if " " in target]
    return f"{advice[0]}." if advice else ""
