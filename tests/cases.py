"""Many small cases as one test: pytest takes some milliseconds for each test, and a kernel takes microseconds."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping
from functools import wraps
from typing import Any

Test = Callable[..., None]


def cases(names: str, values: Iterable[Any] | Mapping[str, Any]) -> Callable[[Test], Test]:
    """Like `pytest.mark.parametrize`, in one test; a note on the error says which case failed.

    Names are separated by commas; a mapping has names of cases.
    """
    arguments = names.split(", ")
    table = dict(values) if isinstance(values, Mapping) else dict(enumerate(values))

    def decorate(test: Test) -> Test:
        @wraps(test)
        def run_all(*positional: Any, **fixtures: Any) -> None:
            for name, value in table.items():
                case = dict(zip(arguments, value if len(arguments) > 1 else [value], strict=True))
                try:
                    test(*positional, **fixtures, **case)
                except Exception as error:
                    error.add_note(f"case {names} = {name if isinstance(values, Mapping) else value}")
                    raise

        signature = inspect.signature(test)
        kept = [parameter for name, parameter in signature.parameters.items() if name not in arguments]
        run_all.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
        return run_all

    return decorate
