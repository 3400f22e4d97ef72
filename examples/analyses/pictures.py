"""The pictures of these analyses, each from the newest run of its program: `python pictures.py investment`.

Run it where the runs are (in this folder); it writes NAME.svg.  Needs no more than QVR itself does.
"""

import sys
from collections.abc import Callable
from pathlib import Path

import matplotlib

matplotlib.use("agg")
import numpy as np
import xarray
from matplotlib import pyplot
from matplotlib.axes import Axes

from qvr_core.runs.record.store import RunStore

HERE = Path.cwd()
INK, LIGHT, SEEN = "C0", 0.25, {"color": "black", "marker": ".", "linestyle": "none", "markersize": 4}


class Run:
    """A stored run: `run["posterior", "beta"]` is (draws, …) with its labels; of the observed data (…)."""

    def __init__(self, program: str) -> None:
        self.path = RunStore(HERE).open(program).posterior

    def __getitem__(self, at: tuple[str, str]) -> xarray.DataArray:
        group, name = at
        with xarray.open_dataset(self.path, group=group, engine="h5netcdf") as data:
            value = data[name].load()
        return value.stack(sample=("chain", "draw")).transpose("sample", ...) if "chain" in value.dims else value


def band(axes: Axes, x: np.ndarray, draws: np.ndarray, colour: str = INK, label: str | None = None) -> None:
    """The median of draws along x, with its 90 % interval."""
    low, middle, high = np.quantile(draws, (0.05, 0.5, 0.95), axis=0)
    axes.fill_between(x, low, high, color=colour, alpha=LIGHT, linewidth=0)
    axes.plot(x, middle, color=colour, label=label)


def forest(axes: Axes, draws: xarray.DataArray, colour: str = INK, shift: float = 0.0, label: str = "") -> None:
    """Median and 90 % interval of each element, one line an element."""
    low, middle, high = np.quantile(draws, (0.05, 0.5, 0.95), axis=0)
    names = draws[draws.dims[-1]].to_numpy()
    places = np.arange(len(names)) + shift
    axes.hlines(places, low, high, color=colour)
    axes.plot(middle, places, "o", color=colour, markersize=4, label=label or None)
    axes.set_yticks(np.arange(len(names)), [str(name).replace("_", " ") for name in names])


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def investment(run: Run, axes: Axes) -> None:
    forest(axes, run["posterior", "elasticity"])
    band_low, middle, band_high = np.quantile(run["posterior", "beta_elasticity"], (0.05, 0.5, 0.95))
    axes.axvspan(band_low, band_high, color="C1", alpha=LIGHT, linewidth=0)
    axes.axvline(middle, color="C1", label="mean of the firms")
    axes.set_xlabel("elasticity of investment in the market value, with 90 % intervals")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0))


def penguin_sex(run: Run, axes: Axes) -> None:
    even, slope = run["posterior", "even"], run["posterior", "slope"]
    species = run["constant_data", "species"].to_numpy()
    mass, male = run["constant_data", "mass"].to_numpy(), run["observed_data", "male"].to_numpy()
    for k, name in enumerate(even[even.dims[-1]].to_numpy()):
        own = mass[species == (k if species.dtype.kind in "iuf" else name)]
        x = np.linspace(own.min(), own.max(), 40)
        draws = sigmoid(slope.to_numpy()[:, [k]] * (x - even.to_numpy()[:, [k]]))
        band(axes, x, draws, f"C{k}", str(name))
    axes.plot(mass, male + 0.02 * np.sin(np.arange(len(mass))), **SEEN, alpha=0.3)
    axes.set_xlabel("body mass in kg")
    axes.set_ylabel("probability of being male")
    axes.legend()


def infant_deaths(run: Run, axes: Axes) -> None:
    deaths = run["observed_data", "deaths"].to_numpy()
    counts = np.arange(0, 26)
    for name, colour in (("infant_deaths", "C0"), ("infant_deaths_poisson", "C1")):
        drawn = Run(name)["posterior_predictive", "deaths"].to_numpy()[::4]
        shares = np.stack([(drawn >= count).sum(1) for count in counts], 1)
        label = "Poisson" if name.endswith("poisson") else "negative binomial"
        band(axes, counts, shares, colour, f"predicted, {label}")
    axes.plot(counts, [(deaths >= count).sum() for count in counts], **SEEN, label="observed")
    axes.set_yscale("symlog", linthresh=1)
    axes.set_xlabel("deaths")
    axes.set_ylabel("counties with so many or more")
    axes.legend()


def nile(run: Run, axes: Axes) -> None:
    volume = run["observed_data", "volume"]
    years = volume[volume.dims[0]].to_numpy().astype(int)
    band(axes, years, run["posterior", "level"].to_numpy(), label="level expected")
    ahead = years[-1] + np.arange(1, 11)
    band(axes, ahead, run["posterior_predictive", "flow"].to_numpy(), "C2", "local level, ahead")
    band(axes, ahead, Run("nile_ar")["posterior_predictive", "flow"].to_numpy(), "C1", "autoregression, ahead")
    axes.plot(years, volume, **SEEN)
    axes.set_xlabel("year")
    axes.set_ylabel("flow in 10⁸ m³")
    axes.legend()


def bills(run: Run, axes: Axes) -> None:
    table = np.genfromtxt(HERE / "bills.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    for species, colour in (("Adelie", "C0"), ("Chinstrap", "C1"), ("Gentoo", "C2")):
        own = table[table["species"] == species]
        axes.plot(own["length"], own["depth"], **{**SEEN, "color": colour}, label=species)
    mu, scale = run["posterior", "mu"].mean("sample").to_numpy(), run["posterior", "T"].mean("sample").to_numpy()
    angle = np.linspace(0, 2 * np.pi, 60)
    circle = np.stack([np.cos(angle), np.sin(angle)])
    for k in range(len(mu)):
        for radius in (1.0, 2.0):
            x, y = mu[k][:, None] + radius * scale @ circle
            axes.plot(x, y, color="black", alpha=1 / radius, linewidth=1)
    axes.set_xlabel("length of the bill in mm")
    axes.set_ylabel("depth in mm")
    axes.legend(title="species (not read)")


def breast_cancer(run: Run, axes: Axes) -> None:
    years, censored = run["observed_data", "years"].to_numpy(), run["constant_data", "censored"].to_numpy()
    hormone = run["constant_data", "x"].to_numpy()[:, 0]
    t = np.linspace(0.01, 7, 60)
    level, sigma = run["posterior", "expected"].to_numpy()[::20], run["posterior", "sigma"].to_numpy()[::20]
    for treated, colour in ((0, "C1"), (1, "C0")):
        z = (np.log(t) - level[:, hormone == treated, None]) / sigma[:, None, None]
        band(axes, t, _above(z).mean(1), colour, "hormonal treatment" if treated else "none")
        axes.step(
            *kaplan_meier(years[hormone == treated], censored[hormone == treated]), where="post", color="black", lw=1
        )
    axes.set_xlabel("years")
    axes.set_ylabel("without a relapse")
    axes.set_ylim(0, 1)
    axes.legend()


def _above(z: np.ndarray) -> np.ndarray:
    from scipy.special import ndtr

    return ndtr(-z)


def kaplan_meier(times: np.ndarray, censored: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The estimate that knows of no model: times of events, and the share that is left."""
    events = np.unique(times[censored == 0])
    left = np.cumprod([1 - ((times == t) & (censored == 0)).sum() / (times >= t).sum() for t in events])
    return np.concatenate([[0], events]), np.concatenate([[1], left])


def lung(run: Run, axes: Axes) -> None:
    names = {"age": "a decade of age", "female": "being a woman", "ecog": "a step of ECOG",
             "meals": "1,000 kcal more", "loss": "10 kg lost"}  # fmt: skip
    draws = [run["posterior", f"b_{name}"].to_numpy() for name in names]
    table = xarray.DataArray(
        np.exp(np.stack(draws, 1)), dims=("sample", "effect"), coords={"effect": [*names.values()]}
    )
    forest(axes, table)
    axes.axvline(1.0, color="black", linewidth=0.8)
    axes.set_xscale("log")
    axes.set_xticks([0.5, 0.7, 1, 1.5, 2], ["0.5", "0.7", "1", "1.5", "2"])
    axes.minorticks_off()
    axes.set_xlabel("survival is so many times as long")


def party(run: Run, axes: Axes) -> None:
    whole, part = run["posterior", "whole"].to_numpy(), run["posterior", "part"].to_numpy()
    rises = np.concatenate([np.zeros((len(whole), 1)), whole[:, None] * np.cumsum(part, 1)], 1)
    line = Run("party_linear")["posterior", "whole"].to_numpy()[:, None] * np.arange(7) / 6
    for rise, colour, label in ((rises, "C0", "steps of any size"), (line, "C1", "steps of one size")):
        band(axes, np.arange(1, 8), rise - rise[:, [3]], colour, label)
    axes.set_xlabel("view of oneself, 1 extremely liberal to 7 extremely conservative")
    axes.set_ylabel("log odds, compared with a moderate")
    axes.legend()


def engel(run: Run, axes: Axes) -> None:
    income, share = run["constant_data", "income"].to_numpy(), run["observed_data", "share"].to_numpy()
    order = np.argsort(income)
    band(axes, income[order], run["posterior", "curve"].to_numpy()[:, order], label="Gaussian process")
    band(axes, income[order], Run("engel_line")["posterior", "curve"].to_numpy()[:, order], "C1", "line")
    axes.plot(income, share, **SEEN)
    axes.set_xscale("log")
    axes.set_xticks([400, 700, 1000, 2000, 4000], ["400", "700", "1,000", "2,000", "4,000"])
    axes.minorticks_off()
    axes.set_xlabel("income in francs")
    axes.set_ylabel("share spent on food")
    axes.legend()


def poll(run: Run, axes: Axes) -> None:
    support = run["posterior", "support"]
    groups = support[support.dims[-1]].to_numpy()
    asked = np.genfromtxt(HERE / "poll.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    cells = np.genfromtxt(HERE / "poll_cells.csv", delimiter=",", names=True, dtype=None, encoding="utf-8")
    raw, true = [asked["dole"].mean()], [cells["voted_dole"].sum() / cells["people"].sum()]
    for group in groups:
        raw.append(asked["dole"][asked["income"] == group].mean())
        own = cells["cell_income"] == group
        true.append(cells["voted_dole"][own].sum() / cells["people"][own].sum())
    both = np.concatenate([run["posterior", "share"].to_numpy()[:, None], support.to_numpy()], 1)
    forest(
        axes, xarray.DataArray(both, dims=("sample", "group"), coords={"group": ["all", *groups]}), label="estimated"
    )
    axes.plot(raw, np.arange(6), "x", color="C1", label="as polled")
    axes.plot(true, np.arange(6), "|", color="black", markersize=14, label="true")
    axes.set_xlabel("share for Dole, by income")
    axes.legend(loc="lower left", bbox_to_anchor=(0.0, 1.0), ncols=3)


PICTURES: dict[str, Callable[[Run, Axes], None]] = {
    drawn.__name__: drawn
    for drawn in (investment, penguin_sex, infant_deaths, nile, bills, breast_cancer, lung, party, engel, poll)
}


def draw(name: str) -> None:
    with matplotlib.rc_context({"svg.fonttype": "none", "svg.hashsalt": name, "path.simplify_threshold": 0.5}):
        figure, axes = pyplot.subplots(figsize=(6.4, 4), layout="constrained")
        PICTURES[name](Run(name), axes)
        figure.savefig(HERE / f"{name}.svg", metadata={"Date": None})
        pyplot.close(figure)


if __name__ == "__main__":
    for each in sys.argv[1:] or PICTURES:
        draw(each)
