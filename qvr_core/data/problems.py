"""What is said when data does not fit a program: one message that names file, column, row, site and remedy."""

from __future__ import annotations

from qvr_core.syntax.printable import printable

NO_FILE = "A relative path in qvr.toml starts at its folder, one given as a flag where you stand"


class DataProblem(Exception):
    """A misfit between a file and a program.

    `site` is the site, input or data name of the program that the data was for; the runs show its line.  `remedy` says
    what the user can do.  `usage`: what was asked for is to blame (a file or a column that is not there), not the data.
    """

    def __init__(
        self,
        message: str,
        *,
        path: str,
        remedy: str,
        column: str | None = None,
        row: int | None = None,
        site: str | None = None,
        usage: bool = False,
    ) -> None:
        self.message = message
        self.path = path
        self.column = column
        self.row = row
        self.site = site
        self.remedy = remedy
        self.usage = usage
        place = path
        if column is not None:
            place += f", column `{column}`"
        if row is not None:
            place += f", row {row}"
        wanted = f" (for `{site}`)" if site is not None else ""
        super().__init__(printable(f"{place}: {message}{wanted}. {remedy}"))

    def below(self, rows: int) -> DataProblem:
        """The problem of a stretch of a table that has so many rows before it."""
        return DataProblem(
            self.message, path=self.path, remedy=self.remedy, column=self.column,
            row=None if self.row is None else self.row + rows, site=self.site, usage=self.usage,
        )  # fmt: skip


class NoColumn(DataProblem):
    """A file has no column or array for `site`; `meant` is the one that probably was."""

    meant: str | None = None

    def near(self, meant: str | None) -> NoColumn:
        """This problem, told of the column that is probably meant."""
        self.meant = meant
        return self


def told(text: str, path: str) -> DataProblem:
    """A problem that another process has put into words."""
    problem = DataProblem("", path=path, remedy="")
    problem.args = (text,)
    return problem


def no_file(path: str) -> DataProblem:
    """There is no such file."""
    return DataProblem("there is no such file", path=path, remedy=NO_FILE, usage=True)


def a_folder(path: str, remedy: str) -> DataProblem:
    """The path names a folder."""
    return DataProblem("this is a folder", path=path, remedy=remedy, usage=True)


def not_readable(path: str) -> DataProblem:
    """The file may not be read."""
    return DataProblem("the file may not be read", path=path, remedy="Check its permissions", usage=True)
