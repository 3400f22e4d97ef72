"""Makes the data of these programs from known truths under a fixed seed: `python examples/statistics/make.py`."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

HERE = Path(__file__).parent
LETTERS = np.array(list("abcdefghijklmnopqrstuvwxyz"))


def save(name: str, columns: Mapping[str, Any]) -> None:
    """Write a table; numbers are rounded to six digits."""
    rows = zip(*(np.asarray(column).tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(map(_cell, row)) for row in rows)]
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n", encoding="utf-8")


def _cell(value: object) -> str:
    return f"{value:.6g}" if isinstance(value, float) else str(value)


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def chain(rng: np.random.Generator, P: np.ndarray, start: int, length: int) -> np.ndarray:
    """A path of a Markov chain whose transition matrix is P."""
    path = [start]
    while len(path) < length:
        path.append(int(rng.choice(len(P), p=P[path[-1]])))
    return np.array(path)


def autoregression(rng: np.random.Generator, length: int, phi: list[float], sd: float, mean: float) -> np.ndarray:
    values = [0.0] * len(phi)
    while len(values) < length + 50:
        values.append(sum(p * values[-1 - j] for j, p in enumerate(phi)) + sd * rng.normal())
    return mean + np.array(values[-length:])


def hierarchies(rng: np.random.Generator) -> None:
    uranium = rng.normal(0, 0.4, 9)
    level = 1.4 + 0.7 * uranium + 0.15 * rng.normal(size=9)
    names = np.array(["Aitkin", "Anoka", "Becker", "Benton", "Clay", "Cook", "Dakota", "Itasca", "Ramsey"])
    county, floor = np.repeat(np.arange(9), [4, 12, 3, 4, 5, 2, 14, 6, 8]), rng.integers(0, 2, 58)
    radon = level[county] - 0.6 * floor + 0.6 * rng.normal(size=58)
    save("radon", {"county": names[county], "floor": floor, "log_radon": radon})
    save("radon_counties", {"County": names, "log_uranium": uranium})

    subject, days = np.repeat(np.arange(8), 6), np.tile(np.arange(6), 8)
    slopes = rng.multivariate_normal([2.6, 0.12], [[0.04, 0.004], [0.004, 0.003]], 8)
    reaction = slopes[subject, 0] + slopes[subject, 1] * days + 0.15 * rng.normal(size=48)
    save("varying_slopes", {"subject": 300 + subject, "days": days, "reaction": reaction})

    ability, difficulty = rng.normal(size=15), np.linspace(-1.5, 1.5, 6)
    slope = rng.lognormal(0.2, 0.4, 6)
    student, item = np.repeat(np.arange(15), 6), np.tile(np.arange(6), 15)
    right = rng.binomial(1, logistic(slope[item] * (ability[student] - difficulty[item])))
    save("item_response", {"student": student + 1, "item": item + 1, "correct": right})

    person, kinds = np.repeat(np.arange(8), 5), np.array(["car", "bus", "train"])
    cost, minutes = rng.uniform(1, 8, (40, 3)), rng.uniform(1, 6, (40, 3))
    weights = rng.normal([-0.4, -0.6], 0.2, (8, 2))
    utility = np.array([0.5, 0, 0.2]) + weights[person, :1] * cost + weights[person, 1:] * minutes
    mode = (utility + rng.gumbel(size=(40, 3))).argmax(1)
    columns = {f"{kind}_cost": cost[:, k] for k, kind in enumerate(kinds)}
    columns |= {f"{kind}_minutes": minutes[:, k] for k, kind in enumerate(kinds)}
    save("multinomial_choice", {"person": person + 1, **columns, "mode": kinds[mode]})

    ward, dose = rng.integers(0, 4, 50), rng.integers(0, 5, 50)
    felt = -0.7 * dose + np.array([0.3, -0.5, 0.1, 0.4])[ward] + rng.logistic(size=50)
    steps = np.array(["none", "mild", "moderate", "severe", "unbearable"])
    pain = steps[np.digitize(felt, [-3.0, -1.8, -0.6, 0.8])]
    save("ordinal", {"ward": LETTERS[ward], "dose": dose, "pain": pain})

    error = rng.uniform(0.5, 2.5, 30)
    eaten = rng.normal(9, 2, 30)
    pressure = 105 + 1.8 * eaten + 4 * rng.normal(size=30)
    save("measurement_error", {"salt": eaten + error * rng.normal(size=30), "error": error, "pressure": pressure})

    viewer, film = np.nonzero(rng.random((10, 8)) < 0.5)
    u, q = rng.normal(size=(10, 2)), rng.normal(0, [0.8, 0.4], (8, 2))
    stars = np.clip(np.round(2 * (3 + (u[viewer] * q[film]).sum(1) + 0.5 * rng.normal(size=len(film)))) / 2, 0.5, 5)
    films = np.array(["Alien", "Brazil", "Casablanca", "Duel", "Eraserhead", "Fargo", "Gilda", "Heat"])
    save("ratings", {"viewer": viewer + 1, "film": films[film], "stars": stars})

    x = rng.normal(size=(40, 12))
    tonnes = 5 + x @ np.array([0, 0.9, 0, 0, 0, -0.7, 0, 0, 0, 0, 0.4, 0]) + 0.5 * rng.normal(size=40)
    save("horseshoe", {**{f"x_{g}": x[:, g] for g in range(12)}, "tonnes": tonnes})

    weights = rng.normal(size=(5, 2))
    skulls = rng.normal(size=(25, 2)) @ weights.T + 0.4 * rng.normal(size=(25, 5))
    save("factor_analysis", dict(zip(["length", "width", "height", "jaw", "nose"], skulls.T, strict=True)))

    time = 12 * rng.weibull(1.4, 40)
    x = np.stack([rng.integers(0, 2, 40), rng.normal(size=40), rng.normal(size=40)], 1)
    time = time * np.exp(x @ [0.6, -0.1, -0.4])
    stop = rng.uniform(6, 30, 40)
    table = {"treated": x[:, 0].astype(int), "age": x[:, 1], "stage": x[:, 2]}
    save("survival", {**table, "months": np.minimum(time, stop) + 0.01, "censored": (time > stop).astype(int)})


def series(rng: np.random.Generator) -> None:
    quarters = [f"{year}-Q{quarter}" for year in range(2001, 2016) for quarter in range(1, 5)]
    save("autoregression", {"Quarter": quarters, "rate": autoregression(rng, 60, [1.3, -0.4], 0.25, 5.2)})

    value, change = 1.0, []
    for _ in range(120):
        change.append(0.05 + np.sqrt(value) * rng.normal())
        value = 0.08 + 0.12 * (change[-1] - 0.05) ** 2 + 0.8 * value
    save("garch", {"Day": np.arange(1, 121), "change": np.array(change)})

    slope = 0.02 * rng.normal(size=40).cumsum()
    level = 10 + np.concatenate([[0.0], (slope[:-1] + 0.08 * rng.normal(size=39)).cumsum()])
    save("local_linear_trend", {"Year": np.arange(1981, 2021), "height": level + 0.1 * rng.normal(size=40)})

    h = autoregression(rng, 100, [0.95], 0.25, -1.0)
    save("stochastic_volatility", {"Day": np.arange(1, 101), "change": np.exp(h / 2) * rng.normal(size=100)})

    season = np.tile([12.0, 55.0, -10.0, -57.0], 9)
    sold = 410 + 1.5 * np.arange(36) + season + 8 * rng.normal(size=36)
    save("holt_winters", {"Quarter": quarters[:36], "sold": sold})

    save("change_point", {"Year": np.arange(1861, 1901), "disasters": rng.poisson(np.repeat([3.1, 0.9], [24, 16]))})

    P = np.array([[0.85, 0.1, 0.05], [0.1, 0.85, 0.05], [0.1, 0.1, 0.8]])
    states = chain(rng, P, 0, 60)
    save("hidden_markov", {"Year": np.arange(1900, 1960), "quakes": rng.poisson(np.array([9, 16, 28])[states])})


def hidden(rng: np.random.Generator) -> None:
    rows: dict[str, list[Any]] = {"elk": [], "hour": [], "step": []}
    for elk, length in {"Ada": 20, "Bo": 12, "Cy": 16}.items():
        states = chain(rng, np.array([[0.8, 0.2], [0.3, 0.7]]), 0, length)
        rows["elk"] += [elk] * length
        rows["hour"] += range(1, length + 1)
        rows["step"] += list(rng.gamma(2.0, 1.0, length) * np.array([0.1, 0.9])[states] + 0.01)
    save("hidden_markov_subjects", rows)

    ringed = rng.integers(0, 5, 25)
    visits: dict[str, list[Any]] = {"dipper": [], "spring": [], "seen": []}
    for dipper, first in enumerate(ringed):
        alive = True
        for spring in range(first + 1, 6):
            alive = alive and rng.random() < 0.6
            visits["dipper"].append(f"d{dipper + 1}")
            visits["spring"].append(1981 + spring)
            visits["seen"].append(int(alive and rng.random() < 0.85))
    save("capture_recapture", visits)
    save("capture_recapture_dippers", {"Dipper": [f"d{d + 1}" for d in range(25)], "ringed": 1981 + ringed})

    reeds, temperature = rng.normal(size=30), rng.normal(size=(30, 3))
    there = rng.random(30) < logistic(0.3 + 1.0 * reeds)
    heard = there[:, None] & (rng.random((30, 3)) < logistic(0.2 + 0.8 * temperature))
    visits = {"pond": [], "visit": [], "heard": [], "temperature": []}
    for i, j in np.ndindex(30, 3):
        visits["pond"].append(i + 1)
        visits["visit"].append(["first", "second", "third"][j])
        visits["heard"].append(int(heard[i, j]))
        visits["temperature"].append(float(temperature[i, j]))
    save("occupancy", visits)
    save("occupancy_ponds", {"Pond": np.arange(1, 31), "reeds": reeds})

    kind = rng.random(50) < 0.4
    save("mixture", {"wait": np.round(np.where(kind, rng.normal(54, 6, 50), rng.normal(80, 6, 50)))})

    topics, words = rng.dirichlet([0.2] * 12, 3), np.array(["bank", "bear", "bond", "calf", "coin", "deer",
        "exam", "fund", "lynx", "mark", "tutor", "wolf"])  # fmt: skip
    mixed = rng.dirichlet([0.5] * 3, 6)
    document = np.repeat(np.arange(6), 15)
    topic = [int(rng.choice(3, p=mixed[d])) for d in document]
    word = [int(rng.choice(12, p=topics[k])) for k in topic]
    save("topic_model", {"document": document + 1, "word": words[word]})


def fields(rng: np.random.Generator) -> None:
    age = np.sort(rng.choice(np.arange(1, 61), 20, replace=False))
    height = 3 / (1 + np.exp(-(age - 30) / 8)) - 1.5 + 0.2 * rng.normal(size=20)
    save("gaussian_process", {"age": age, "height": height})

    traffic = rng.uniform(0.5, 3.0, 25)
    rate = traffic * np.exp(0.5 + np.sin(np.arange(25) / 4))
    table = {"Kilometre": np.arange(1, 26), "accidents": rng.poisson(rate), "traffic": traffic}
    save("gaussian_process_counts", table)

    width = 4
    pairs = [(i, i + 1) for i in range(16) if i % width < width - 1] + [(i, i + width) for i in range(16 - width)]
    farming = rng.normal(size=16)
    expected = rng.uniform(3, 20, 16)
    smooth = np.array([(i % width + i // width - 3) / 4 for i in range(16)])
    cases = rng.poisson(expected * np.exp(0.1 + 0.3 * farming + smooth))
    content = {"cases": cases.tolist(), "expected": expected.round(3).tolist(), "farming": farming.round(4).tolist()}
    edges = [[i + 1, j + 1] for i, j in pairs]
    (HERE / "icar.json").write_text(json.dumps({**content, "edges": edges}) + "\n", encoding="utf-8")


def surveys(rng: np.random.Generator) -> None:
    states, ages = np.array(["Ohio", "Utah", "Iowa", "Maine"]), np.array(["young", "middle", "old"])
    state, age = rng.integers(0, 4, 80), rng.choice(3, 80, p=[0.15, 0.25, 0.6])
    yes = rng.binomial(1, logistic(np.array([0.5, -0.8, 0.0, 0.6])[state] + np.array([0.7, 0.0, -0.5])[age]))
    save("mrp", {"state": states[state], "age": ages[age], "yes": yes})
    cells = {"cell_state": np.repeat(states, 3), "cell_age": np.tile(ages, 4)}
    save("mrp_cells", {**cells, "people": rng.integers(100, 900, 12)})

    controls, treated = rng.integers(40, 200, (2, 9))
    base = rng.normal(-1.8, 0.4, 9)
    died = rng.binomial(treated, logistic(base - 0.4 + 0.2 * rng.normal(size=9)))
    table = {"treated": treated, "treated_died": died, "controls": controls}
    save("meta_analysis", {**table, "controls_died": rng.binomial(controls, logistic(base))})

    grades = np.array(["benign", "atypical", "malignant"])
    truth, (slide, reader) = rng.choice(3, 12, p=[0.5, 0.3, 0.2]), np.nonzero(rng.random((12, 4)) < 0.8)
    right = rng.random(len(slide)) < np.array([0.9, 0.8, 0.7, 0.85])[reader]
    read = np.where(right, truth[slide], (truth[slide] + rng.integers(1, 3, len(slide))) % 3)
    save("raters", {"slide": slide + 1, "reader": LETTERS[reader], "grade": grades[read]})

    x = rng.normal(size=(30, 2))
    percent = 60 + 15 * np.tanh(x[:, 0] - x[:, 1]) - 5 * x[:, 1] ** 2 + 3 * rng.normal(size=30)
    save("neural_network", {"x_0": x[:, 0], "x_1": x[:, 1], "percent": percent})


def gaps(rng: np.random.Generator) -> None:
    age = rng.normal(size=40)
    fed = rng.gamma(2.0, 2.5 * np.exp(0.3 * age))
    marks = 85 + 1.2 * fed + 3 * age + 5 * rng.normal(size=40)
    known = rng.random(40) < logistic(1.5 - age)  # depends on what is known, so the gaps need no model
    written = ["" if not there else f"{value:.6g}" for value, there in zip(fed, known, strict=True)]
    save("missing_predictors", {"age": age, "fed": written, "marks": marks})


def main() -> None:
    rng = np.random.default_rng(20260115)
    hierarchies(rng)
    series(rng)
    hidden(rng)
    fields(rng)
    surveys(rng)
    gaps(rng)


if __name__ == "__main__":
    main()
