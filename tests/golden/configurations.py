"""Configurations of models in addition to the examples that models declare for their contract."""

from __future__ import annotations

from typing import Any

NET: dict[str, Any] = {"input_size": 14, "max_steps": 4, "batch_size": 16, "seed": 3}
RECURRENT = {**NET, "hidden_size": 8, "decoder_size": 8, "skip_hidden_sizes": [8]}
ATTENTION = {**NET, "hidden_size": 8}
TRANSFORMER = {**NET, "d_model": 8, "n_heads": 2, "n_layers": 1}
TREES: dict[str, Any] = {"n_estimators": 6, "min_child_samples": 3}
HEADS = (
    *("point", "normal", "student_t", "laplace", "lognormal", "negative_binomial", "poisson"),
    *("zero_inflated", "tweedie", "mixture", "implicit_quantile", "bins"),
)
COUNTS = ("negative_binomial", "poisson", "zero_inflated", "tweedie")


def case(
    model: str, kind: str, /, *bases: dict[str, Any], **parameters: Any
) -> tuple[str, str, dict]:
    """A model, the data it is fitted on, and its parameters."""
    for base in reversed(bases):
        parameters = {**base, **parameters}
    return model, kind, parameters


CONFIGURATIONS = {
    **{f"LSTM {head} head": case("LSTM", "counts" if head in COUNTS else "daily", RECURRENT, head=head) for head in HEADS},
    **{
        f"GRU autoregressive, {head} head": case(
            *("GRU", "counts" if head in COUNTS else "covariates"),
            NET,
            hidden_size=8,
            head=head,
            output="autoregressive",
            teacher_forcing="linear",
        )
        for head in HEADS
        if head not in ("implicit_quantile", "zero_inflated", "tweedie")
    },
    **{
        f"LSTM {loss} loss": case("LSTM", "daily", RECURRENT, head="point", loss=loss)
        for loss in ("mse", "huber", "mase", "smape", "owa")
    },
    **{
        f"MLP scaled by {scaler}": case("MLP", "daily", NET, hidden_sizes=[8], scaler=scaler)
        for scaler in (
            "robust",
            "min_max",
            "mean_abs",
            "last",
            "level",
            "revin",
            "difference",
            "none",
        )
    },
    "MLP scaled by series": case("MLP", "covariates", NET, hidden_sizes=[8], scaler_scope="series", activation="gelu"),
    "MLP scaled by panel": case("MLP", "covariates", NET, hidden_sizes=[8, 8], scaler_scope="panel", activation="silu"),
    "MLP bounded": case("MLP", "counts", NET, hidden_sizes=[8], bounds=(0, None), calendar=None, sample_by="series"),
    "MLP quantiles": case("MLP", "daily", NET, hidden_sizes=[8], quantiles=[0.1, 0.5, 0.9], point="mean"),
    "MLP validated": case("MLP", "daily", NET, hidden_sizes=[8], validation_size=3, validate_every=1, patience=2, max_steps=8),
    "MLP epochs": case("MLP", "daily", NET, hidden_sizes=[8], max_steps="auto", max_epochs=2, lr_schedule="cosine"),
    "MLP averaged": case(
        "MLP",
        "daily",
        NET,
        hidden_sizes=[8],
        ema_decay=0.5,
        trainer={"accumulate_grad_batches": 2, "gradient_clip_val": 0.1, "gradient_clip_algorithm": "value"},
    ),
    "MLP constant rate": case(
        "MLP", "daily", NET, hidden_sizes=[8], lr_schedule="constant", weight_decay=0.1, recent_windows=9
    ),
    "LSTM two layers": case(
        "LSTM",
        "covariates",
        RECURRENT,
        n_layers=2,
        residual=True,
        normalization="layer",
        dropout=0.2,
        bidirectional=True,
    ),
    "GRU rms": case("GRU", "daily", RECURRENT, n_layers=2, normalization="rms", skip_hidden_sizes=None, decoder_layers=2),
    "RNN batch": case("RNN", "daily", RECURRENT, normalization="batch", activation="relu", decoder_layers=0),
    "LSTM bins by beam": case(
        "LSTM",
        "daily",
        NET,
        hidden_size=8,
        head="bins",
        output="autoregressive",
        decoding="beam",
        beam_width=3,
    ),
    "LSTM bins by nucleus": case(
        "LSTM",
        "daily",
        NET,
        hidden_size=8,
        head="bins",
        output="autoregressive",
        temperature=0.7,
        top_p=0.8,
    ),
    "LSTM greedy": case(
        "LSTM",
        "daily",
        NET,
        hidden_size=8,
        head="normal",
        output="autoregressive",
        decoding="greedy",
        teacher_forcing="free",
    ),
    **{
        f"Seq2Seq {score} attention": case("Seq2Seq", "covariates", ATTENTION, attention=score)
        for score in ("additive", "dot", "scaled_dot", "location", "cosine", "gaussian")
    },
    "Seq2Seq without attention": case("Seq2Seq", "daily", ATTENTION, attention=None, teacher_forcing="inverse_sigmoid"),
    "Seq2Seq convolutional": case("Seq2Seq", "daily", ATTENTION, encoder="convolutional", positional_encoding=True),
    "Seq2Seq input feeding": case(
        "Seq2Seq", "daily", ATTENTION, input_feeding=True, separate_values=True, start_value="learned"
    ),
    "Seq2Seq local": case("Seq2Seq", "daily", ATTENTION, attention_window=3, learned_scale=True, self_attention=True),
    "Seq2Seq hard": case("Seq2Seq", "daily", ATTENTION, hard_attention=True, head="student_t", cell="gru"),
    "Seq2Seq two layers": case(
        "Seq2Seq",
        "covariates",
        ATTENTION,
        cell="rnn",
        n_layers=2,
        bidirectional=True,
        dropout=0.1,
        head="normal",
    ),
    **{
        f"Transformer {positions} positions, {output}": case(
            *("Transformer", "covariates" if output == "direct" else "daily"),
            TRANSFORMER,
            positional_encoding=positions,
            output=output,
            patch_length=1,
        )
        for positions in ("sinusoidal", "learned", "rotary", "alibi", "calendar", None)
        for output in ("direct", "autoregressive")
    },
    "Transformer post-norm": case(
        "Transformer",
        "covariates",
        TRANSFORMER,
        norm_first=False,
        normalization="rms",
        activation="gelu",
        patch_length=4,
        stride=2,
    ),
    "Transformer batch norm": case(
        "Transformer",
        "daily",
        TRANSFORMER,
        normalization="batch",
        dropout=0.1,
        dim_feedforward=12,
        encoder_layers=2,
        head="mixture",
    ),
    "Transformer teacher": case(
        "Transformer",
        "daily",
        TRANSFORMER,
        output="autoregressive",
        teacher_forcing="linear",
        decoder_layers=2,
        head="normal",
    ),
    "DecoderOnly learned positions": case(
        "DecoderOnly", "covariates", TRANSFORMER, positional_encoding="learned", patch_length=5, activation="swiglu"
    ),
    "DecoderOnly memory": case(
        "DecoderOnly",
        "daily",
        TRANSFORMER,
        patch_length=2,
        segment_length=2,
        memory_segments=2,
        norm_first=False,
        normalization="rms",
        dropout=0.1,
        head="student_t",
    ),
    "DecoderOnly beams": case("DecoderOnly", "daily", TRANSFORMER, patch_length=1, head="bins", decoding="beam"),
    "PatchTST paper": case("PatchTST", "covariates", TRANSFORMER, patch_length=4, dropout=0.1),
    "PatchTST pre-norm": case(
        "PatchTST", "daily", TRANSFORMER, norm_first=True, normalization="rms", positional_encoding="rotary", head="student_t"
    ),
    "TFT two layers": case("TFT", "covariates", NET, d_model=8, n_heads=2, lstm_layers=2),
    "TFT point": case("TFT", "daily", NET, d_model=8, n_heads=2, dropout=0.2, head="point", calendar=None),
    "TimeXer covariates": case("TimeXer", "covariates", TRANSFORMER, patch_length=4),
    "TimeXer target alone": case("TimeXer", "daily", TRANSFORMER, calendar=None, positional_encoding="learned", head="normal"),
    **{
        f"DeepAR {head} head": case("DeepAR", "counts" if head in COUNTS else "covariates", NET, hidden_size=8, head=head)
        for head in ("normal", "negative_binomial", "bins")
    },
    "DeepAR lags": case(
        "DeepAR", "covariates", NET, hidden_size=8, lags=[2, 20], cell="gru", scaler="mean_abs", teacher_forcing="linear"
    ),
    "xLSTM one head": case("xLSTM", "daily", NET, hidden_size=8, n_heads=1, n_layers=1, decoder_size=8, head="student_t"),
    "xLSTM dropout": case(
        *("xLSTM", "covariates"),
        NET,
        hidden_size=8,
        kernel_size=2,
        dim_feedforward=4,
        dropout=0.1,
        decoder_layers=2,
        skip_hidden_sizes=[8],
    ),
    "NBEATS interpretable": case("NBEATS", "daily", NET, stacks=["trend", "season"], blocks=2, hidden_sizes=[8, 8], degree=3),
    "NBEATS generic": case("NBEATS", "covariates", NET, blocks=2, hidden_sizes=[8], head="normal"),
    "NHITS pooled": case(
        *("NHITS", "covariates"),
        NET,
        n_pool_kernel_size=[5, 1],
        n_freq_downsample=[3, 1],
        blocks=2,
        hidden_sizes=[8],
        pooling_mode="average",
        interpolation_mode="nearest",
    ),
    "TiDE normalised": case(
        *("TiDE", "covariates"),
        NET,
        hidden_size=8,
        encoder_layers=2,
        decoder_layers=2,
        temporal_width=2,
        normalization="layer",
        head="student_t",
    ),
    "TCN skip": case(
        *("TCN", "covariates"),
        NET,
        hidden_size=8,
        n_layers=2,
        kernel_size=2,
        weight_norm=False,
        skip_hidden_sizes=[8],
        dropout=0.1,
    ),
    "DLinear kernel": case("DLinear", "covariates", NET, moving_average=5, head="laplace"),
    "NLinear point": case("NLinear", "covariates", NET, head="point", loss="mse"),
    "NeuralProphet networks": case("NeuralProphet", "covariates", NET, hidden_sizes=[8], growth="linear", events="EVENTS"),
    "NeuralProphet trend only": case("NeuralProphet", "daily", NET, input_size=0, head="normal", n_changepoints=3),
    **{
        f"{model} {strategy}": case(model, "covariates", TREES if model != "LinearModel" else {}, strategy=strategy)
        for model in ("LightGBM", "LinearModel", "GradientBoosting")
        for strategy in ("recursive", "direct", "direct_multioutput", "blocks")
        if strategy != "direct_multioutput" or model == "LinearModel"
    },
    **{
        f"{model} features": case(
            *(model, "covariates"),
            TREES if model != "CatBoost" else {"n_estimators": 6},
            lags=[1, 2, 7],
            lag_transforms=["mean_7", "std_7@2", "ewm_0.3"],
            fourier=2,
            time_index=True,
            series_id=True,
            past_lags=[1, 2],
            future_lags=[-1, 0, 1],
        )
        for model in ("LightGBM", "XGBoost", "CatBoost")
    },
    "LightGBM early stopping": case(
        "LightGBM",
        "daily",
        TREES,
        early_stopping_rounds=2,
        validation_size=6,
        subsample=0.8,
        colsample_bytree=0.7,
        reg_lambda=0.5,
        half_life=20.0,
    ),
    "LightGBM quantiles": case("LightGBM", "covariates", TREES, quantiles=[0.1, 0.5, 0.9], strategy="direct"),
    "LightGBM counts": case("LightGBM", "counts", TREES, bounds=(0, None), differences=None, scale=False),
    "LightGBM log": case("LightGBM", "daily", TREES, transform="log", detrend=True),
    "LinearModel Box-Cox": case("LinearModel", "monthly", transform="box_cox", fourier=2, ridge=0.5),
    "LinearModel differences": case("LinearModel", "daily", differences=[1, 7], holidays="DE"),
    "LinearModel by series": case("LinearModel", "covariates", per_series=True, detrend=True, calendar=None),
    **{
        f"Regression by {regressor}": case("Regression", data, regressor=regressor, options=options)
        for regressor, data, options in (
            case("linear", "covariates"),
            case("lasso", "daily", alpha=0.01),
            case("elastic_net", "daily"),
            case("random_forest", "daily", n_estimators=3),
            case("hist_gradient_boosting", "covariates", max_iter=5),
            case("knn", "daily"),
            case("svr", "daily"),
            case("mlp", "daily", max_iter=300, hidden_layer_sizes=[4]),
        )
    },
    **{
        f"ETS {error} {trend} {season}": case(
            "ETS", "daily", error=error, trend=trend, seasonal=season, damped=trend is not None
        )
        for error in ("additive", "multiplicative")
        for trend in (None, "additive")
        for season in (None, "additive", "multiplicative")
        if (error, season) != ("additive", "multiplicative")
    },
    "ETS Box-Cox": case("ETS", "monthly", box_cox="auto", seasonal="additive", parameter_bounds="admissible"),
    "ETS simple start": case("ETS", "monthly", initial="simple", seasonal="additive", alpha=0.2, gamma=0.1),
    "ETS by statsmodels": case("ETS", "daily", engine="statsmodels", seasonal="additive", season_length=7),
    "ETS regressors": case("ETS", "covariates", seasonal="additive", season_length=7),
    "Holt exponential": case("Holt", "daily", trend="multiplicative"),
    "HoltWinters additive": case("HoltWinters", "monthly", seasonal="additive"),
    "AutoETS seasonal": case("AutoETS", "monthly"),
    "AutoETS multiplicative trend": case("AutoETS", "daily", multiplicative_trend=True, criterion="bic"),
    "AutoETS Box-Cox": case("AutoETS", "monthly", box_cox=0.0, damped=True),
    "ARIMA conditional": case("ARIMA", "daily", order=(2, 0, 1), method="conditional"),
    "ARIMA seasonal": case("ARIMA", "monthly", order=(0, 1, 1), seasonal_order=(0, 1, 1)),
    "ARIMA regressors": case("ARIMA", "covariates", order=(1, 0, 0), constant=True),
    "ARIMA lags": case("ARIMA", "daily", order=([1, 7], 0, 0)),
    "ARIMA by statsmodels": case("ARIMA", "monthly", order=(1, 1, 0), engine="statsmodels"),
    "AutoARIMA seasonal": case("AutoARIMA", "monthly", max_p=2, max_q=2, criterion="bic"),
    "AutoARIMA regressors": case("AutoARIMA", "covariates", season_length=1, max_p=2, max_q=1),
    "UnobservedComponents season": case("UnobservedComponents", "monthly", level="local level", max_iter=20),
    "UnobservedComponents waves": case(
        "UnobservedComponents",
        "covariates",
        level="smooth trend",
        trigonometric=[7],
        harmonics=2,
        autoregressive=1,
        max_iter=20,
    ),
    "MSTL regressors": case("MSTL", "covariates", season_length=7, seasonal_degree=1),
    "Croston sba": case("Croston", "counts", variant="sba"),
    "Croston optimized": case("Croston", "counts", variant="optimized"),
    "TSB counts": case("TSB", "counts", alpha_size=0.2, alpha_probability=0.1),
    "ADIDA block": case("ADIDA", "counts", aggregation=3),
    "IMAPA counts": case("IMAPA", "counts"),
    "Theta three": case("Theta", "monthly", theta=3.0, decomposition="additive"),
    "AutoTheta monthly": case("AutoTheta", "monthly", objective="squares", criterion="aicc"),
    "AutoCES monthly": case("AutoCES", "monthly", criterion="bic"),
    "Prophet regressors": case(
        "Prophet",
        "covariates",
        regressors={"price": {"prior_scale": 2.0, "mode": "multiplicative"}},
    ),
    "Prophet logistic": case("Prophet", "daily", growth="logistic", cap=200.0, floor=10.0),
    "Prophet events": case(
        "Prophet",
        "daily",
        events="EVENTS",
        holidays="US",
        seasonalities={"fortnight": {"period": 14, "order": 2}},
    ),
    "Prophet monthly": case("Prophet", "monthly", yearly_seasonality=3, changepoint_prior_scale=0.5),
    "Prophet hourly": case("Prophet", "hourly", n_changepoints=3),
    "LightGBM hourly": case("LightGBM", "hourly", TREES),
    "MLP hourly": case("MLP", "hourly", NET, hidden_sizes=[8]),
    "AutoETS hourly": case("AutoETS", "hourly"),
    "SeasonalNaive conformal": case("SeasonalNaive", "daily", intervals="conformal"),
    "LinearModel conformal": case("LinearModel", "covariates", intervals="conformal"),
    "LightGBM conformal": case("LightGBM", "daily", TREES, intervals="conformal", strategy="direct"),
    "AutoETS conformal": case("AutoETS", "missing", intervals="conformal", season_length=4),
    "MLP conformal": case("MLP", "daily", NET, hidden_sizes=[8], intervals="conformal"),
    "Conformal adaptive": case("Conformal", "daily", model=("Drift", {}), method="adaptive", adaptation_rate=0.1),
    "Conformal regression": case("Conformal", "covariates", model=("LinearModel", {}), n_windows=4, pool=True),
    "Conformal network": case("Conformal", "daily", model=("NLinear", NET), n_windows=5),
}
