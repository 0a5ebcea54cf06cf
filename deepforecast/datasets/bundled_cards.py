"""Cards of the bundled sets."""

from __future__ import annotations

from deepforecast.datasets.cards import Card

PUBLIC = "public domain (as statsmodels states)"
FRED = "Federal Reserve Bank of St. Louis (FRED) and Bureau of Labor Statistics, 2009"

CARDS = (
    Card(
        name="air_passengers",
        description="international airline passengers in thousands, 1949-1960: trend and a season that grows with it",
        frequency="MS", season_length=12, horizon=12, series=1, rows=144,
        licence="published figures, no licence stated",
        reference="Box, Jenkins and Reinsel (1976), Time Series Analysis: Forecasting and Control, series G",
        source="deepforecast",
    ),
    Card(
        name="co2",
        description="weekly atmospheric CO2 at Mauna Loa in ppmv, 1958-2001, 59 weeks missing",
        frequency="W-SAT", season_length=52, horizon=52, series=1, rows=2284,
        licence=PUBLIC,
        reference="Keeling and Whorf (2004), Carbon Dioxide Information Analysis Center",
        source="statsmodels.datasets.co2",
    ),
    Card(
        name="copper",
        description="world consumption of copper in 1000 tonnes, 1951-1975, with prices, income and inventories",
        frequency="YS", season_length=1, horizon=3, series=1, rows=25,
        licence="used by statsmodels with permission of the author, who retains all rights",
        reference="Gill (2000), Generalized Linear Models: A Unified Approach",
        source="statsmodels.datasets.copper",
        past=("copperprice", "incomeindex", "alumprice", "inventoryindex"),
    ),
    Card(
        name="danish_data",
        description="log real money in Denmark, 1974-1987, with log income, log prices, bond and deposit rate",
        frequency="QS", season_length=4, horizon=4, series=1, rows=55,
        licence=PUBLIC,
        reference="Johansen and Juselius (1990), Oxford Bulletin 52(2)",
        source="statsmodels.datasets.danish_data",
        past=("lry", "lpy", "ibo", "ide"),
    ),
    Card(
        name="elec_equip",
        description="euro area turnover index of electrical equipment, 1995-2016, working-day adjusted",
        frequency="MS", season_length=12, horizon=12, series=1, rows=257,
        licence=PUBLIC, reference="Eurostat STS.M.I7.W.TOVT.NS0016.4.000", source="statsmodels.datasets.elec_equip",
    ),
    Card(
        name="elnino",
        description="sea surface temperature of the region Nino 1+2 in degrees Celsius, 1950-2010",
        frequency="MS", season_length=12, horizon=12, series=1, rows=732,
        licence=PUBLIC, reference="NOAA National Weather Service, ERSST.V3B", source="statsmodels.datasets.elnino",
    ),
    Card(
        name="fertility",
        description="births per woman in 201 countries, at most 1960-2011, lengths differ, some years missing",
        frequency="YS", season_length=1, horizon=5, series=201, rows=10292,
        licence="World Bank terms of use",
        reference="World Bank, World Development Indicators SP.DYN.TFRT.IN",
        source="statsmodels.datasets.fertility",
        note="from the first to the last observed year; countries with less than ten observed years are left out",
    ),
    Card(
        name="grunfeld",
        description="gross investment of 11 US firms, 1935-1954, with market value and capital stock",
        frequency="YS", season_length=1, horizon=4, series=11, rows=220,
        licence=PUBLIC,
        reference="Grunfeld (1958) after Kleiber and Zeileis (2010), German Economic Review 11(4)",
        source="statsmodels.datasets.grunfeld",
        past=("value", "capital"),
    ),
    Card(
        name="interest_inflation",
        description="German inflation (change of the log GDP deflator), 1972-1998, with the long interest rate",
        frequency="QS", season_length=4, horizon=8, series=1, rows=107,
        licence="none stated", reference="JMulTi data set E6", source="statsmodels.datasets.interest_inflation",
        past=("r",),
    ),
    Card(
        name="longley",
        description="US employment, 1947-1962, with five collinear covariates",
        frequency="YS", season_length=1, horizon=2, series=1, rows=16,
        licence=PUBLIC,
        reference="Longley (1967), Journal of the American Statistical Association 62(319)",
        source="statsmodels.datasets.longley",
        past=("gnpdefl", "gnp", "unemp", "armed", "pop"),
        note="sixteen years: a test of short series rather than a benchmark",
    ),
    Card(
        name="macrodata",
        description="US real gross domestic product, 1959-2009, with eleven economic covariates",
        frequency="QS", season_length=4, horizon=8, series=1, rows=203,
        licence=PUBLIC, reference=FRED, source="statsmodels.datasets.macrodata",
        past=("realcons", "realinv", "realgovt", "realdpi", "cpi", "m1", "tbilrate", "unemp", "pop", "infl", "realint"),
        note="seasonally adjusted",
    ),
    Card(
        name="macrodata_panel",
        description="the twelve US economic variables of macrodata, each a series",
        frequency="QS", season_length=4, horizon=8, series=12, rows=2436,
        licence=PUBLIC, reference=FRED, source="statsmodels.datasets.macrodata",
        note="seasonally adjusted",
    ),
    Card(
        name="nile",
        description="yearly flow of the Nile at Aswan in 10^8 cubic metres, 1871-1970: a level shift in 1899",
        frequency="YS", season_length=1, horizon=10, series=1, rows=100,
        licence=PUBLIC, reference="Cobb (1978), Biometrika 65(2)", source="statsmodels.datasets.nile",
    ),
    Card(
        name="sunspots",
        description="yearly sunspot numbers, 1700-2008: a cycle of about eleven years, not of the calendar",
        frequency="YS", season_length=1, horizon=11, series=1, rows=309,
        licence=PUBLIC, reference="National Geophysical Data Center", source="statsmodels.datasets.sunspots",
    ),
)  # fmt: skip
