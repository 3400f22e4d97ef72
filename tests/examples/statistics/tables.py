"""The data files of examples/statistics, read without the packages: the independent densities start from these."""

import csv
from pathlib import Path

import numpy as np

STATISTICS = Path(__file__).resolve().parents[3] / "examples" / "statistics"


class Table:
    """A csv file: `t.column` is a column of numbers, `t.words("column")` one of text."""

    def __init__(self, name: str) -> None:
        with open(STATISTICS / f"{name}.csv", encoding="utf-8", newline="") as file:
            self._rows = list(csv.DictReader(file))

    def words(self, column: str) -> list[str]:
        return [row[column] for row in self._rows]

    def numbers(self, *columns: str) -> np.ndarray:
        """(rows, columns)."""
        return np.array([[float(row[column]) for column in columns] for row in self._rows])

    def __getattr__(self, column: str) -> np.ndarray:
        return self.numbers(column)[:, 0]

    def ascending(self, column: str) -> np.ndarray:
        """Places of the cells among the different numbers, from the least."""
        return np.unique(self.numbers(column)[:, 0], return_inverse=True)[1]

    def appearing(self, column: str) -> np.ndarray:
        """Places of the cells among the different words, in order of appearance."""
        words = self.words(column)
        return among(words, list(dict.fromkeys(words)))


def among(words: list[str], labels: list[str]) -> np.ndarray:
    """Places of words in a list of labels."""
    return np.array([labels.index(word) for word in words])
