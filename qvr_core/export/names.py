"""Names in the target: those of the program, with a trailing underscore where the target reserves them."""

from __future__ import annotations

import copy
import keyword
from collections.abc import Iterable, Mapping

PYTHON_WORDS = frozenset(
    (*keyword.kwlist, *keyword.softkwlist, "float", "int", "isinstance", "len", "list", "open", "range", "super")
)
"""Words of Python, and its functions that exports call."""


class Names:
    """Gives every name of a program one of its own in the target, and fresh ones for what has none."""

    def __init__(self, names: Iterable[str], reserved: Iterable[str]) -> None:
        self._taken = set(reserved)
        self._given: dict[str, str] = {}
        for name in names:
            self._given[name] = self.fresh(name.replace(".", "_").replace("?", "_there"))

    def __getitem__(self, name: str) -> str:
        return self._given[name]

    def __contains__(self, name: str) -> bool:
        return name in self._given

    def beside(self, names: Mapping[str, str]) -> Names:
        """These names and more, each as near to what it is wanted as as can be: those of a function."""
        more = copy.copy(self)
        more._given = {**self._given, **{own: self.fresh(wanted) for own, wanted in names.items()}}
        return more

    def fresh(self, name: str) -> str:
        """`name` or, where that is taken, the name with underscores behind it."""
        while name in self._taken:
            name += "_"
        self._taken.add(name)
        return name

    def is_taken(self, name: str) -> bool:
        """Whether the name is given or reserved."""
        return name in self._taken

    @property
    def changed(self) -> list[tuple[str, str]]:
        """The names that the target has otherwise."""
        return [(name, given) for name, given in self._given.items() if name != given]
