"""Writes the tables of these analyses from the packages that carry them: `python examples/analyses/make.py`.

Needs what QVR does not: `pip install statsmodels palmerpenguins lifelines libpysal dbfread`. Each function says where
its numbers come from and under which licence; README.md repeats it beside the tables.
"""

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pandas as pd

HERE = Path(__file__).parent


def save(name: str, table: pd.DataFrame) -> None:
    """Numbers have six digits; an unknown one is an empty cell."""
    table.to_csv(HERE / f"{name}.csv", index=False, float_format="%.6g", lineterminator="\n")


def public_domain(name: str) -> pd.DataFrame:
    """A table of statsmodels.datasets of which its COPYRIGHT says "public domain"."""
    from statsmodels import datasets

    module = getattr(datasets, name)
    assert "public domain" in module.COPYRIGHT
    return module.load_pandas().data


def penguins() -> pd.DataFrame:
    """Gorman, Williams and Fraser (2014), PLoS ONE 9(3); palmerpenguins, CC0."""
    from palmerpenguins import load_penguins

    return load_penguins()


def lifelines_table(name: str) -> pd.DataFrame:
    """A table that lifelines carries; MIT."""
    from lifelines import datasets

    return getattr(datasets, f"load_{name}")()


def north_carolina() -> pd.DataFrame:
    """Cressie (1993), Statistics for Spatial Data, pp. 386-389; libpysal, BSD-3-Clause."""
    from dbfread import DBF
    from libpysal import examples

    return pd.DataFrame(DBF(examples.get_path("sids2.dbf")))


def investment() -> None:
    table = public_domain("grunfeld").astype({"year": int})
    save("investment", table[["firm", "year", "invest", "value"]])
    firms = ["General Motors", "Chrysler", "Unseen Motors"]
    save("investment_new", pd.DataFrame({"firm": np.repeat(firms, 2), "value": [2000.0, 4000.0] * 3}))


def penguin_sex() -> None:
    table = penguins().dropna(subset=["sex"])
    mass, male = table["body_mass_g"] / 1000, (table["sex"] == "male").astype(int)
    save("penguin_sex", pd.DataFrame({"species": table["species"], "mass": mass, "male": male}))
    kinds = ["Adelie", "Chinstrap", "Gentoo"]
    save("penguin_sex_new", pd.DataFrame({"species": np.repeat(kinds, 2), "mass": [3.5, 4.5, 3.5, 4.5, 4.5, 5.5]}))


def bills() -> None:
    table = penguins().dropna(subset=["bill_length_mm", "bill_depth_mm"])
    save(
        "bills",
        pd.DataFrame({"length": table["bill_length_mm"], "depth": table["bill_depth_mm"], "species": table["species"]}),
    )
    save("bills_new", pd.DataFrame({"length": [38, 44, 49, 47.5, 48], "depth": [18, 18, 18.5, 16.5, 15]}))


def infant_deaths() -> None:
    table = north_carolina().sort_values("NAME")
    for name, year in (("infant_deaths", "74"), ("infant_deaths_new", "79")):
        births = table[f"BIR{year}"].astype(int)
        share = table[f"NWBIR{year}"] / births
        deaths = table[f"SID{year}"].astype(int)
        save(name, pd.DataFrame({"county": table["NAME"], "births": births, "nonwhite": share, "deaths": deaths}))


def nile() -> None:
    save("nile", public_domain("nile").astype(int).rename(columns={"year": "Year"}))


def breast_cancer() -> None:
    """Schumacher et al. (1994), Journal of Clinical Oncology 12: 686 patients in Germany."""
    table = lifelines_table("gbsg2")
    save(
        "breast_cancer",
        pd.DataFrame(
            {
                "years": table["time"] / 365.25,
                "censored": 1 - table["cens"],
                "hormone": (table["horTh"] == "yes").astype(int),
                "log_nodes": np.log2(table["pnodes"]),
                "size": (table["tsize"] - 30) / 10,
                "age": (table["age"] - 50) / 10,
                "grade": table["tgrade"],
            }
        ),
    )
    row = {"censored": [0] * 4, "size": [0.0] * 4, "age": [0.0] * 4, "grade": ["II"] * 4}
    save("breast_cancer_new", pd.DataFrame({"hormone": [0, 1, 0, 1], "log_nodes": [0.0, 0.0, 3.0, 3.0], **row}))


def lung() -> None:
    """Loprinzi et al. (1994), Journal of Clinical Oncology 12: 228 patients in the USA."""
    table = lifelines_table("lung").dropna(subset=["ph.ecog"])
    save(
        "lung",
        pd.DataFrame(
            {
                "years": table["time"] / 365.25,
                "censored": 1 - table["status"],
                "age": (table["age"] - 60) / 10,
                "female": (table["sex"] == 2).astype(int),
                "ecog": table["ph.ecog"].astype(int),
                "meals": table["meal.cal"] / 1000,
                "loss": table["wt.loss"] / 2.2046,
            }
        ),
    )
    save("lung_new", pd.DataFrame({"censored": 0, "age": 0.0, "female": [0, 0, 1, 1], "ecog": [0, 2, 0, 2]}))


PARTIES = ["strong_democrat", "democrat", "leans_democrat", "independent", "leans_republican", "republican",
           "strong_republican"]  # fmt: skip


def party() -> None:
    """American National Election Study of 1996."""
    table = public_domain("anes96").astype({"selfLR": int, "educ": int, "PID": int})
    names = [PARTIES[k] for k in table["PID"]]
    view, age = table["selfLR"], (table["age"] - 45) / 10
    columns = {"view": view, "age": age, "educ": table["educ"] - 4, "income": (table["income"] - 16) / 10}
    save("party", pd.DataFrame({**columns, "party": names}))
    save("party_new", pd.DataFrame({"view": [1, 3, 4, 5, 7], "age": 0.0, "educ": 0, "income": 0.0}))


def engel() -> None:
    table = public_domain("engel")
    share = table["foodexp"] / table["income"]
    save("engel", pd.DataFrame({"income": table["income"], "share": share}))
    save("engel_new", pd.DataFrame({"income": [400.0, 800.0, 1600.0, 3200.0]}))


def cut(column: pd.Series, *cuts: str | float) -> pd.Series:
    """Labels of intervals, each behind the number above which it begins."""
    return pd.cut(column, [*cuts[::2], np.inf], labels=cuts[1::2])


def poll() -> None:
    """The 944 of anes96 are the population; 250 of them answer, the rich and the learned more readily."""
    table = public_domain("anes96")
    people = pd.DataFrame(
        {
            "income": cut(table["income"], 0, "lowest", 8, "low", 13, "middle", 17, "high", 20, "highest"),
            "schooling": cut(table["educ"], 0, "school", 3, "some_college", 4, "associate", 5, "degree"),
            "age": cut(table["age"], 0, "under_35", 34, "from_35", 49, "from_50", 64, "from_65"),
            "dole": table["vote"].astype(int),
        }
    )
    keen = np.exp(0.7 * people["income"].cat.codes + 0.4 * people["schooling"].cat.codes)
    rows = np.random.default_rng(1996).choice(len(people), 250, replace=False, p=keen / keen.sum())
    save("poll", people.iloc[rows])
    new = [("lowest", "school"), ("lowest", "degree"), ("highest", "school"), ("highest", "degree")]
    save("poll_new", pd.DataFrame(new, columns=["income", "schooling"]).assign(age="from_35"))
    groups = ["income", "schooling", "age"]
    cells = people.groupby(groups, observed=True)["dole"].agg(["size", "sum"]).reset_index()
    cells = cells.rename(columns={"size": "people", "sum": "voted_dole"})
    save("poll_cells", cells.rename(columns={name: f"cell_{name}" for name in groups}))


TABLES: tuple[Callable[[], None], ...] = (
    investment, penguin_sex, infant_deaths, nile, bills, breast_cancer, lung, party, engel, poll
)  # fmt: skip

if __name__ == "__main__":
    for write in TABLES:
        write()
