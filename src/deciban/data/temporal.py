"""Dates and times as numbers (days since 1970, hours since midnight), and parts of the calendar."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from deciban.data.batch import MISSING, Coded, DatePart
from deciban.lazy import lazy
from deciban.types import FloatArray, Levels

pa = lazy("pyarrow")
pc = lazy("pyarrow.compute")

PER_SECOND = {"s": 1, "ms": 1_000, "us": 1_000_000, "ns": 1_000_000_000}
DAY, HOUR = 86_400, 3_600  # seconds
MILLISECONDS = 1_000 * DAY  # in a day
MONTHS = (
    *("January", "February", "March", "April", "May", "June"),
    *("July", "August", "September", "October", "November", "December"),
)
WEEKDAYS = ("Monday", "Tuesday", "Wednesday", "Thursday", "Friday", "Saturday", "Sunday")


def is_date(dtype: Any) -> bool:
    """Whether an Arrow type holds points in time."""
    return pa.types.is_timestamp(dtype) or pa.types.is_date(dtype) or _is_period(dtype)


def is_temporal(dtype: Any) -> bool:
    return is_date(dtype) or pa.types.is_time(dtype) or pa.types.is_duration(dtype) or pa.types.is_interval(dtype)


def _is_period(dtype: Any) -> bool:
    return isinstance(dtype, pa.BaseExtensionType) and dtype.extension_name == "pandas.period"


def elapsed(array: Any) -> FloatArray:
    """(n) days since 1970-01-01 in local time, days of a duration, or hours since midnight of a time of day.

    Whole days and the rest of a day are divided separately, so that the unit does not change the result.

    >>> elapsed(pa.array([0, 129_600_000], pa.timestamp("ms"))).tolist()
    [0.0, 1.5]
    """
    if _is_period(array.type):
        array = pa.array(array.to_pandas().dt.to_timestamp())
    dtype = array.type
    if pa.types.is_interval(dtype):
        cells = [(np.nan, 0, 0) if cell is None else cell for cell in array.to_pylist()]
        # a month of an interval of duckdb is a twelfth of a Gregorian year
        return np.array([months * 365.2425 / 12 + days + ns / (1_000_000_000 * DAY) for months, days, ns in cells])
    if pa.types.is_date32(dtype):
        whole, unit = array.cast(pa.int32()).cast(pa.int64()), 1
    else:
        if pa.types.is_timestamp(dtype) and dtype.tz is not None:
            array = pc.local_timestamp(array)
        per_second = PER_SECOND["ms" if pa.types.is_date64(dtype) else dtype.unit]
        whole = array.cast(pa.int32()) if pa.types.is_time32(dtype) else array
        whole, unit = whole.cast(pa.int64()), per_second * (HOUR if pa.types.is_time(dtype) else DAY)
    values = np.asarray(whole.fill_null(0).to_numpy(zero_copy_only=False))
    result: FloatArray = values // unit + (values % unit) / unit
    if array.null_count:
        result[np.asarray(array.is_null().to_numpy(zero_copy_only=False))] = np.nan
    return result


def calendar(days: NDArray[Any], part: DatePart) -> Coded:
    """(n, 1) a part of dates in days since 1970, to the nearest millisecond.

    >>> coded = calendar(np.array([0.0, 1.5, np.nan]), "weekday")
    >>> coded.codes[:, 0].tolist(), coded.levels
    ([0, 1, -1], (('Thursday', 'Friday'),))
    """
    valid = np.isfinite(days)
    milliseconds = np.rint(np.where(valid, days, 0.0) * MILLISECONDS).astype(np.int64)
    numbers, names = _part_numbers(milliseconds, part)
    values, indices = np.unique(numbers[valid], return_inverse=True)
    codes = np.full((len(days), 1), MISSING, np.int32)
    codes[valid, 0] = indices
    levels: Levels = tuple(values.tolist() if names is None else [names[i] for i in values])
    return Coded(codes, (levels,))


def _part_numbers(milliseconds: NDArray[np.int64], part: DatePart) -> tuple[NDArray[np.int64], tuple[str, ...] | None]:
    """A part of each date as a number, and the names of these numbers if they have any."""
    day, rest = milliseconds // MILLISECONDS, milliseconds % MILLISECONDS
    if part == "hour":
        return rest // (1_000 * HOUR), None
    if part == "weekday":
        return (day + 3) % 7, WEEKDAYS  # 1970 began with a Thursday
    date = day.astype("M8[D]")
    month = date.astype("M8[M]")
    if part == "day":
        return (date - month).astype(np.int64) + 1, None
    year = date.astype("M8[Y]")
    if part == "month":
        return (month - year).astype(np.int64), MONTHS
    return year.astype(np.int64) + 1970, None


def format_date(days: float) -> str:
    """A date, from days since 1970, in ISO format; without the time if that is midnight.

    >>> format_date(0.0), format_date(1.5)
    ('1970-01-01', '1970-01-02 12:00:00')
    """
    moment = np.datetime64(round(days * MILLISECONDS), "ms").item()
    return moment.isoformat(" ", "auto").removesuffix(" 00:00:00") if hasattr(moment, "isoformat") else f"day {days:g}"


def format_time(hours: float) -> str:
    """A time of day, from hours since midnight.

    >>> format_time(9.5)
    '09:30:00'
    """
    seconds = round(hours * HOUR)
    return f"{seconds // HOUR:02d}:{seconds // 60 % 60:02d}:{seconds % 60:02d}"
