"""Makes the data files of the examples, each from a known truth under a fixed seed: `python examples/data/make.py`.

`eight_schools.csv` is not made: it is the table of Rubin (1981), "Estimation in parallel randomized experiments".
"""

from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def save(name: str, **columns: np.ndarray) -> None:
    rows = zip(*(column.tolist() for column in columns.values()), strict=True)
    lines = [",".join(columns), *(",".join(f"{cell:.6g}" for cell in row) for row in rows)]
    (HERE / f"{name}.csv").write_text("\n".join(lines) + "\n")


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def main() -> None:
    rng = np.random.default_rng(20240229)

    x = rng.uniform(-2, 2, 60)
    save("line", x=x, y=1.5 + 0.8 * x + 0.4 * rng.normal(size=60))
    noise = np.where(rng.random(60) < 0.1, 6.0, 0.4) * rng.normal(size=60)
    save("outliers", x=x, y=1.5 + 0.8 * x + noise)

    age, dose, smoker = rng.normal(size=150), rng.uniform(0, 2, 150), rng.integers(0, 2, 150)
    save("trial", age=age, dose=dose, smoker=smoker,
         cured=rng.binomial(1, logistic(-0.5 + 0.6 * age + 1.2 * dose - 1.0 * smoker)))  # fmt: skip

    exposure, traffic = rng.uniform(0.5, 4, 100), rng.normal(size=100)
    rate = exposure * np.exp(0.7 + 0.5 * traffic)
    save("accidents", exposure=exposure, traffic=traffic, accidents=rng.poisson(rate))
    save("visits", age=traffic, visits=rng.negative_binomial(2.0, 2.0 / (2.0 + np.exp(1.2 + 0.4 * traffic))))
    save("catches", hours=exposure,
         fish=np.where(rng.random(100) < 0.35, 0, rng.poisson(2.5 * exposure)))  # fmt: skip

    save("conversions", shown=np.array([1210, 1184]), bought=np.array([97, 131]))

    county = np.repeat(np.arange(12), rng.integers(3, 15, 12))
    ground = rng.integers(0, 2, len(county))
    base = rng.normal(1.4, 0.35, 12)
    save("radon", county=county, ground=ground,
         log_radon=base[county] - 0.65 * ground + 0.7 * rng.normal(size=len(county)))  # fmt: skip

    component = rng.choice(3, 200, p=[0.5, 0.3, 0.2])
    save(
        "galaxies",
        velocity=np.array([9.7, 20.0, 33.0])[component] + np.array([0.6, 1.6, 1.2])[component] * rng.normal(size=200),
    )

    time, treated = 8 * rng.weibull(1.5, 120), rng.integers(0, 2, 120)
    time = time * np.exp(0.5 * treated)
    stop = rng.uniform(4, 14, 120)
    save("survival", treated=treated, time=np.minimum(time, stop).round(4) + 1e-3, died=(time <= stop).astype(int))

    year = np.arange(80)
    save("disasters", year=year, disasters=rng.poisson(np.where(year < 37, 3.1, 0.9)))

    skill = rng.normal(size=8)
    first = rng.integers(0, 8, 160)
    second = (first + rng.integers(1, 8, 160)) % 8
    save("games", home=first, away=second, home_won=rng.binomial(1, logistic(0.3 + skill[first] - skill[second])))

    ability, difficulty = rng.normal(size=30), np.linspace(-1.5, 1.5, 10)
    student, item = np.repeat(np.arange(30), 10), np.tile(np.arange(10), 30)
    save("exam", student=student, item=item,
         correct=rng.binomial(1, logistic(1.3 * (ability[student] - difficulty[item]))))  # fmt: skip

    effort = rng.normal(size=150)
    latent = 1.1 * effort + rng.logistic(size=150)
    save("ratings", effort=effort, rating=np.digitize(latent, [-1.5, 0.0, 1.5]))

    covariates = rng.normal(size=(80, 8))
    columns = {f"x{index}": covariates[:, index] for index in range(8)}
    save("genes", **columns, y=1.8 * covariates[:, 1] - 1.2 * covariates[:, 5] + 0.5 * rng.normal(size=80))

    present = rng.random(40) < 0.6
    pond = np.repeat(np.arange(40), 5)
    save("frogs", pond=pond, heard=rng.binomial(1, np.where(present[pond], 0.45, 0.0)))

    topics = np.array(
        [[6, 5, 4, 3, 1, 1, 1, 1, 1, 1], [1, 1, 1, 1, 6, 5, 4, 1, 1, 1], [1, 1, 1, 1, 1, 1, 1, 6, 5, 4]], float
    )
    topics /= topics.sum(1, keepdims=True)
    mixture = rng.dirichlet([0.4] * 3, 20)
    document = np.repeat(np.arange(20), 30)
    topic = np.array([rng.choice(3, p=mixture[one]) for one in document])
    save("words", document=document, word=np.array([rng.choice(10, p=topics[one]) for one in topic]))

    code = rng.normal(size=(200, 2))
    loadings = rng.normal(size=(2, 6))
    readings = code @ loadings + 0.3 * rng.normal(size=(200, 6))
    np.savez(HERE / "sensors.npz", case=np.arange(200), reading=readings.astype(np.float32))
    angle = rng.uniform(0, 2 * np.pi, 400)
    ring = np.stack([np.cos(angle), np.sin(angle), np.cos(2 * angle), np.sin(2 * angle)], 1)
    ring = (ring + 0.1 * rng.normal(size=(400, 4))).astype(np.float32)
    np.savez(HERE / "ring.npz", x=ring, picture=ring)

    level = np.cumsum(0.3 * rng.normal(size=(256, 13)), 1)
    flow = (level + 0.2 * rng.normal(size=level.shape)).astype(np.float32)
    np.savez(HERE / "river.npz", x=flow[:, :12, None], next_flow=flow[:, 12:])

    state = np.zeros((300, 13), int)
    state[:, 0] = rng.integers(0, 2, 300)
    for step in range(1, 13):
        state[:, step] = np.where(rng.random(300) < 0.1, 1 - state[:, step - 1], state[:, step - 1])
    dice = np.array([[1 / 6] * 6, [0.1] * 5 + [0.5]])
    face = np.array([[rng.choice(6, p=dice[one]) for one in row] for row in state])
    np.savez(HERE / "dice.npz", x=face[:, :12], next_face=face[:, 12])

    centre = np.array([[5.0, 3.4, 1.5, 0.2], [5.9, 2.8, 4.3, 1.3], [6.6, 3.0, 5.6, 2.0]])
    kind = rng.integers(0, 3, 150)
    flowers = (centre[kind] + np.array([0.4, 0.3, 0.35, 0.2]) * rng.normal(size=(150, 4))).astype(np.float32)
    np.savez(HERE / "flowers.npz", x=flowers - flowers.mean(0), species=kind)

    push = rng.normal(size=(300, 20))
    angle, speed, seen = rng.normal(size=300), np.zeros(300), np.empty((300, 20, 3))
    for step in range(20):
        speed = 0.9 * speed - 0.5 * np.sin(angle) + 0.3 * push[:, step] + 0.05 * rng.normal(size=300)
        angle = angle + speed
        seen[:, step] = np.stack([np.sin(angle), np.cos(angle), speed], 1)
    seen += 0.2 * rng.normal(size=seen.shape)
    np.savez(HERE / "pendulum.npz", push=push[..., None].astype(np.float32), reading=seen.astype(np.float32))


if __name__ == "__main__":
    main()
