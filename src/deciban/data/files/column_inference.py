"""Types and notations of columns of files: inferred from the first rows, and from all rows if later ones differ."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from functools import partial, reduce
from typing import TypeVar

from deciban.data.batch import Notation
from deciban.data.cell_types import CellType, common_types
from deciban.data.files.fragment import Fragment
from deciban.data.notation import TextProfile
from deciban.data.prefetch import parallel_map
from deciban.data.schema import columns_named
from deciban.errors import DecibanError, warn

T = TypeVar("T")

SAMPLED_FILES = 16  # whose first rows are read for inference; other files are checked when they are read


class ColumnInference:
    """The columns of some files, as inferred so far: shared by all scans of these files.

    Attributes
    ----------
    complete : bool
        Whether types are inferred from all rows.
    profiles : {column: TextProfile} of columns of text
    """

    def __init__(self, fragments: Sequence[Fragment]) -> None:
        # by path, so that the order of columns does not depend on which file is passed first
        self._fragments = sorted(fragments, key=lambda fragment: fragment.path)
        self._types: dict[str, CellType] | None = None
        self._warned: set[str] = set()
        self.complete = False
        self.profiles: dict[str, TextProfile] = {}

    @property
    def types(self) -> dict[str, CellType]:
        """Types that hold all cells read so far."""
        if self._types is None:
            sampled = self._fragments[:SAMPLED_FILES]
            types = self._types = self._common(fragment.columns for fragment in sampled)
            names = self._undecided(types)
            self._profile(names, (partial(fragment.sample_profiles, names) for fragment in sampled))
        return self._types

    def infer_from_all_rows(self) -> None:
        tasks = (task for fragment in self._fragments for task in fragment.type_tasks())
        types = self._types = self._common(parallel_map(_run, tasks))
        names = self._undecided(types)
        self._profile(names, (task for fragment in self._fragments for task in fragment.profile_tasks(names)))
        self.complete = True

    def notations(self, excluded: Collection[str]) -> dict[str, Notation]:
        """The notations of columns of text that are read as dates or numbers."""
        notations = {name: profile.notation() for name, profile in self.text_profiles(excluded).items()}
        return {name: notation for name, notation in notations.items() if notation is not None}

    def text_profiles(self, excluded: Collection[str]) -> dict[str, TextProfile]:
        types = self.types
        return {name: p for name, p in self.profiles.items() if types[name] == "text" and name not in excluded}

    def warn_once(self, message: str) -> None:
        """Warns, unless an earlier pass over the files has."""
        if message not in self._warned:
            self._warned.add(message)
            warn(message)

    def _common(self, columns: Iterable[Mapping[str, CellType]]) -> dict[str, CellType]:
        types: dict[str, CellType] = reduce(common_types, columns, {})
        names = set(types)
        for fragment in self._fragments:
            own_names = names if fragment.has_late_columns else set(fragment.names)
            if names != own_names:
                verb = "lacks" if names - own_names else "has, beyond the others,"
                columns_text = columns_named(sorted(names - own_names) or sorted(own_names - names))
                raise DecibanError(
                    f"{fragment.title} {verb} {columns_text}: all files of a scan must have the same columns, as "
                    f"{self._fragments[0].title} has"
                )
        return types

    def _undecided(self, types: Mapping[str, CellType]) -> set[str]:
        """Columns of text whose notation more rows may change."""
        known = {name: profile for name, profile in self.profiles.items() if not profile.may_have_notation()}
        known = {name: profile for name, profile in known.items() if not profile.exceptions()}
        return {name for name, cell_type in types.items() if cell_type == "text" and name not in known}

    def _profile(self, names: Collection[str], tasks: Iterable[Callable[[], Mapping[str, TextProfile]]]) -> None:
        totals: dict[str, TextProfile] = dict.fromkeys(names, TextProfile())
        for profiles in parallel_map(_run, tasks) if names else ():
            totals |= {name: totals[name] + profile for name, profile in profiles.items()}
        self.profiles |= totals


def _run(task: Callable[[], T]) -> T:
    return task()
