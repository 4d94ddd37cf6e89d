"""Offsets: what is added to the linear predictor of each row."""

from __future__ import annotations

import numpy as np

from deciban.data.arrow import TableFrame
from deciban.data.batch import Frame
from deciban.data.input_types import PerRow
from deciban.errors import DecibanError, did_you_mean
from deciban.linear.responses import RESPONSES
from deciban.types import FloatArray


def names_of(*values: PerRow | None) -> list[str]:
    """The column names among the values."""
    return [name for name in values if isinstance(name, str)]


def offset_of(family: str, frame: Frame, offset: PerRow | None, exposure: PerRow | None) -> FloatArray | None:
    """(n) offset + log exposure, which is added to η; or None."""
    if offset is None and exposure is None:
        return None
    response = RESPONSES[family]
    if not response.takes_offset:
        raise DecibanError(f"a {family} response takes no offset")
    total = np.zeros(frame.rows)
    if offset is not None:
        total += _per_row(frame, offset, "offset")
    if exposure is not None:
        if not response.takes_exposure:
            raise DecibanError(f"exposure needs a poisson response; for {family} use offset")
        exposures = _per_row(frame, exposure, "exposure")
        if not (exposures > 0).all():
            row = int(np.argmin(exposures > 0))
            raise DecibanError(f"exposure, row {row}: {exposures[row]:g} must be above 0")
        total += np.log(exposures)
    return total


def _per_row(frame: Frame, values: PerRow, name: str) -> FloatArray:
    """(n) numbers, from an array or a column name; `name` is the parameter, for messages."""
    if isinstance(values, str):
        if not isinstance(frame, TableFrame) or values not in frame.names:
            raise DecibanError(f"{name}={values!r} is not a column of X{did_you_mean(values, among=frame.names)}")
        values = frame.numbers([list(frame.names).index(values)])[:, 0]
    try:
        array = np.asarray(values, dtype=np.float64)
    except (TypeError, ValueError):
        raise DecibanError(f"{name} must be numbers, one for each row, or the name of a column") from None
    array = np.full(frame.rows, float(array)) if array.ndim == 0 else array
    if array.shape != (frame.rows,):
        raise DecibanError(f"{name} has shape {array.shape}; it needs one number for each of {frame.rows} rows")
    if not np.isfinite(array).all():
        row = int(np.argmin(np.isfinite(array)))
        raise DecibanError(f"{name}, row {row}: {array[row]:g} is not a finite number")
    return array
