"""Dates and times as numbers, and the parts of a calendar: against pandas."""

import numpy as np
import pandas as pd
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from deciban.data.temporal import calendar, elapsed, format_date, format_time

EPOCH = pd.Timestamp("1970-01-01")
MOMENTS = st.datetimes(pd.Timestamp("1700-01-01").to_pydatetime(), pd.Timestamp("2250-01-01").to_pydatetime())


def days(moments):
    return elapsed(pa.array(moments, pa.timestamp("us")))


@given(st.lists(MOMENTS | st.none(), min_size=1, max_size=10))
def test_no_unit_changes_the_days(moments):
    whole = [None if moment is None else moment.replace(microsecond=0) for moment in moments]
    actual = [elapsed(pa.array(whole, pa.timestamp("us")).cast(pa.timestamp(unit))) for unit in ("s", "ms", "us", "ns")]
    for other in actual[1:]:
        assert actual[0].tobytes() == other.tobytes()
    expected = (pd.Series(pd.DatetimeIndex(whole)) - EPOCH) / pd.Timedelta("1D")
    np.testing.assert_allclose(actual[0], expected.to_numpy(), rtol=1e-15)


@pytest.mark.parametrize(
    ("array", "expected"),
    [
        (pa.array([0, -1, None], pa.date32()), [0.0, -1.0, np.nan]),
        (pa.array([86_400_000], pa.date64()), [1.0]),
        (pa.array([1_782_907_200], pa.timestamp("s", "UTC")), [20_635.5]),  # 2026-07-01 12:00
        (pa.array([1_782_907_200], pa.timestamp("s", "Europe/Berlin")), [20_635.5 + 2 / 24]),  # 14:00 in summer
        (pa.array([5_400], pa.time32("s")), [1.5]),
        (pa.array([5_400 * 10**9, None], pa.time64("ns")), [1.5, np.nan]),
        (pa.array([-43_200], pa.duration("s")), [-0.5]),
        (pa.array([(12, 1, 43_200 * 10**9), None], pa.month_day_nano_interval()), [366.7425, np.nan]),
    ],
)
def test_days_hours_and_durations(array, expected):
    np.testing.assert_allclose(elapsed(array), expected, rtol=1e-15)


@given(st.lists(MOMENTS, min_size=1, max_size=20))
def test_parts_of_the_calendar_are_those_of_pandas(moments):
    index = pd.DatetimeIndex(moments)
    rounded = index.round("ms")
    expected = {
        "year": rounded.year,
        "month": rounded.month_name(),
        "day": rounded.day,
        "weekday": rounded.day_name(),
        "hour": rounded.hour,
    }
    for part, values in expected.items():
        coded = calendar(days(moments), part)
        assert [coded.levels[0][code] for code in coded.codes[:, 0]] == values.tolist()


@given(MOMENTS)
def test_dates_are_written_as_they_are_read(moment):
    rounded = pd.Timestamp(moment).round("ms")
    assert pd.Timestamp(format_date(days([moment]).item())) == rounded


def test_a_time_is_written_without_what_is_nothing():
    assert format_date(days([pd.Timestamp("2026-03-01")]).item()) == "2026-03-01"
    assert format_time(23.5) == "23:30:00"
