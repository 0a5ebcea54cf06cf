"""Objects in model files: what is harmless goes through, any other type is named, packed archives are refused."""

from __future__ import annotations

import ast
import io
import re
import zipfile
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
import pytest
from sklearn.base import BaseEstimator, RegressorMixin
from sklearn.linear_model import Ridge

from deepforecast import Regression, load
from deepforecast.core.encoding import SkopsSerializer, UntrustedTypeError
from deepforecast.errors import ModelFileError, SaveError
from tests.models.regression.promoted import walks


class Middle(RegressorMixin, BaseEstimator):  # type: ignore[misc]
    """A type that neither the library nor skops knows: the mean of what it learned."""

    def fit(self, X: Any, y: Any) -> Middle:
        self.mean_ = np.asarray(y).mean(axis=0)
        return self

    def predict(self, X: Any) -> Any:
        return np.full(len(X), self.mean_)


class Closed(Middle):
    """Its state is not told."""

    def __getstate__(self) -> Any:
        raise RuntimeError("closed")


NAME = f"{Middle.__module__}.Middle"


def packed(data: np.ndarray) -> np.ndarray:
    """The same archive, its members compressed."""
    out = io.BytesIO()
    with zipfile.ZipFile(io.BytesIO(data.tobytes())) as old, zipfile.ZipFile(out, "w", zipfile.ZIP_DEFLATED) as new:
        for one in old.infolist():
            new.writestr(one.filename, old.read(one))
    return np.frombuffer(out.getvalue(), dtype=np.uint8)


def test_what_is_harmless_goes_through_unasked() -> None:
    rows = np.random.default_rng(0).normal(size=(20, 3))
    fitted = Ridge().fit(rows, rows[:, 0])
    again = SkopsSerializer().deserialize(SkopsSerializer().serialize(fitted, "it"), "it")
    np.testing.assert_array_equal(again.predict(rows), fitted.predict(rows))


def test_a_compressed_archive_is_refused() -> None:
    data = SkopsSerializer().serialize(Ridge(), "it")
    for one in (SkopsSerializer(), SkopsSerializer(trusted=(NAME,)), SkopsSerializer(allow_any=True)):
        with pytest.raises(UntrustedTypeError, match="it must not be compressed"):
            one.deserialize(packed(data), "it")


def test_an_archive_whose_members_are_said_to_be_larger_than_it_is_refused() -> None:
    raw = bytearray(SkopsSerializer().serialize(Ridge(), "it").tobytes())
    place = raw.index(b"PK\x01\x02")  # the first entry of the directory at the end; its size stands 24 bytes in
    raw[place + 24 : place + 28] = (2**31).to_bytes(4, "little")
    with pytest.raises(UntrustedTypeError, match="must not be compressed"):
        SkopsSerializer().deserialize(np.frombuffer(bytes(raw), dtype=np.uint8), "it")


def test_a_type_nobody_named_is_refused_by_name() -> None:
    data = SkopsSerializer().serialize(Middle(), "it")
    for trusted in ((), ("somewhere.Else",)):
        assert SkopsSerializer(trusted=trusted).untrusted_types([data]) == [NAME]
        with pytest.raises(UntrustedTypeError, match=rf"it contains {NAME}, which must be trusted"):
            SkopsSerializer(trusted=trusted).deserialize(data, "it")
    assert type(SkopsSerializer(trusted=(NAME,)).deserialize(data, "it")) is Middle


def test_what_cannot_be_taken_apart_is_told() -> None:
    with pytest.raises(UntrustedTypeError, match=r"it cannot be saved with skops \(RuntimeError: closed\)"):
        SkopsSerializer(allow_any=True).serialize(Closed(), "it")


def test_a_model_with_a_class_of_ones_own_is_read_by_who_trusts_it(tmp_path: Path) -> None:
    path = tmp_path / "model.dfc"
    model = Regression(Middle(), horizon=3, season_length=7).fit(walks(2, 60))
    with pytest.raises(SaveError, match=rf"Regression cannot be saved to .*{NAME}.*allow_skops=True"):
        model.save(path)
    assert not path.exists()
    model.save(path, allow_skops=True)
    with pytest.raises(
        ModelFileError, match=rf"cannot be loaded: the file contains the types {NAME}, which must be trusted"
    ) as said:
        load(path)
    assert "whole" not in str(said.value)
    with pytest.raises(ModelFileError, match=NAME):
        load(path, trusted=["somewhere.Else"])
    again = load(path, trusted=[NAME])
    pd.testing.assert_frame_equal(again.predict(), model.predict())
    assert type(again.regressor) is Middle


class Inner(Middle):
    """Another type, which is in the fitted regressor alone."""


class Outer(Middle):
    """Learns an object of another type."""

    def fit(self, X: Any, y: Any) -> Outer:
        self.inner_ = Inner().fit(X, y)
        return self

    def predict(self, X: Any) -> Any:
        return self.inner_.predict(X)


def test_every_type_to_trust_is_listed_at_once(tmp_path: Path) -> None:
    path = tmp_path / "model.dfc"
    model = Regression(Outer(), horizon=3, season_length=7).fit(walks(2, 60))
    listed = re.escape(repr([f"{__name__}.Inner", f"{__name__}.Outer"]))
    with pytest.raises(SaveError, match=rf"allow_skops=True\), and load\(path, trusted={listed}\)"):
        model.save(path)
    model.save(path, allow_skops=True)
    with pytest.raises(ModelFileError, match=rf"pass load\(path, trusted={listed}\)") as error:
        load(path)
    trusted = ast.literal_eval(str(error.value).partition("trusted=")[2].partition(")")[0])
    pd.testing.assert_frame_equal(load(path, trusted=trusted).predict(), model.predict())
    with pytest.raises(ModelFileError, match=rf"pass load\(path, trusted={listed}\)"):
        load(path, trusted=trusted[:1])
