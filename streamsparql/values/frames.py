"""Tables of native values as data frames of pandas and Polars."""

from __future__ import annotations

from importlib.util import find_spec
from typing import TYPE_CHECKING

import pyarrow as pa

from streamsparql.errors import EngineError
from streamsparql.text.extras import install

if TYPE_CHECKING:
    import pandas as pd
    import polars as pl


def check_library(name: str) -> None:
    """Raise an error with advice if a library of data frames is not installed.

    >>> check_library("koalas")  # doctest: +ELLIPSIS
    Traceback (most recent call last):
    streamsparql.errors.EngineError: to_koalas needs koalas: pip install '...[koalas]'
    """
    if find_spec(name) is None:
        raise EngineError(f"to_{name} needs {name}: {install(name)}")


def pandas_frame(table: pa.Table) -> pd.DataFrame:
    """Return a table as a frame of pandas; integers and booleans with missing values stay exact.

    >>> pandas_frame(pa.table({"n": [1, None], "m": [1, 2]})).dtypes.to_dict()
    {'n': Int64Dtype(), 'm': dtype('int64')}
    """
    import pandas as pd

    nullable = {pa.int64(): pd.Int64Dtype(), pa.bool_(): pd.BooleanDtype()}
    columns = {}
    for name, column in zip(table.column_names, table.columns, strict=True):
        if pa.types.is_dictionary(column.type):
            column = column.cast(column.type.value_type)
        types = nullable.get if column.null_count else None
        columns[name] = column.to_pandas(types_mapper=types, date_as_object=False)
    return pd.DataFrame(columns)


def polars_frame(table: pa.Table) -> pl.DataFrame:
    """Return a table as a frame of Polars; dictionary-encoded text is plain text.

    >>> dict(polars_frame(pa.table({"n": [1, None]})).schema)
    {'n': Int64}
    """
    import polars as pl

    plain = [
        column.cast(column.type.value_type) if pa.types.is_dictionary(column.type) else column
        for column in table.columns
    ]
    frame = pl.from_arrow(pa.table(plain, names=table.column_names))
    assert isinstance(frame, pl.DataFrame)
    return frame
