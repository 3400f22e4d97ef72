"""`[lengths=n]`: chains of unequal length have the density of their own elements, and no others."""

from __future__ import annotations

import math
from itertools import pairwise, product

import pytest
import torch
from scipy import stats
from torch import Tensor

from qvr_core.dsl import loads
from qvr_core.inference import ELBO, MCMC, SVI, AutoNormalGuide, NUTSKernel, Predictive
from qvr_core.runtime.programs.handlers import by_rows, condition, keep, pointwise, substitute, unconstrained
from qvr_core.runtime.programs.program import ProgramModule
from qvr_core.runtime.values.errors import InputProblem

NAN = math.nan
HEAD = """
object Input : Real 1
object Subject : {a, b}
object Time : FinSet 4
object Row : FinSet 3

program p : Input -> Input
    data n : Subject -> Nat
"""
CHAIN = """
    sample s <- HalfNormal(1.0)
    sample h[g : Subject, t : Time] <- Normal(0.9 * h[g, t - 1], s) [lengths=n] from Normal(0.0, 2.0)
    observe y[g : Subject, t : Time] <- Normal(h[g, t], 0.5) [lengths=n]
    return s
"""


def doubles(numbers: list[list[float]]) -> Tensor:
    return torch.tensor(numbers, dtype=torch.float64)


Y = doubles([[0.3, -0.2, 0.8, 1.1], [0.5, 1.2, NAN, NAN]])
H = doubles([[0.1, 0.4, 0.2, 0.9], [0.7, 0.3, NAN, NAN]])
S = torch.tensor(0.6, dtype=torch.float64)
LENGTHS = torch.tensor([4, 2])


def made(body: str) -> ProgramModule:
    return loads(HEAD + body).morphism


def of_chain(h: Tensor, s: float) -> float:
    h = h[~h.isnan()]
    later = stats.norm.logpdf(h[1:], 0.9 * h[:-1], s).sum()
    return float(stats.norm.logpdf(h[:1], 0.0, 2.0).sum() + later)


def by_hand(h: Tensor, y: Tensor, s: float) -> float:
    there = ~h.isnan()
    seen = stats.norm.logpdf(y[there], h[there], 0.5).sum()
    return float(stats.halfnorm.logpdf(s) + sum(of_chain(one, s) for one in h) + seen)


def test_only_elements_that_exist_have_a_density() -> None:
    found = made(CHAIN).log_joint(None, {"h": H, "s": S, "y": Y, "n": LENGTHS})
    assert float(found) == pytest.approx(by_hand(H, Y, 0.6), abs=1e-10)


def test_what_stands_beyond_the_end_does_not_matter() -> None:
    model = made(CHAIN)
    other = {"h": H.nan_to_num(1e6), "s": S, "y": Y.nan_to_num(-9.0), "n": LENGTHS}
    assert torch.equal(model.log_joint(None, other), model.log_joint(None, {"h": H, "s": S, "y": Y, "n": LENGTHS}))


def test_a_chain_without_elements_adds_nothing() -> None:
    h, y = H.clone(), Y.clone()
    h[1], y[1] = NAN, NAN
    found = made(CHAIN).log_joint(None, {"h": h, "s": S, "y": y, "n": torch.tensor([4, 0])})
    assert float(found) == pytest.approx(by_hand(h, y, 0.6), abs=1e-10)


def test_unconstrained_numbers_move_what_exists_and_others_rest() -> None:
    body = """
    sample s <- HalfNormal(1.0)
    sample h[g : Subject, t : Time] <- Gamma(2.0, s) [lengths=n]
    observe y[g : Subject, t : Time] <- Normal(log(h[g, t]) / s, 0.5) [lengths=n]
    return s
"""
    free = torch.randn(1, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(1))
    moved = {"s": torch.tensor([0.2], dtype=torch.float64, requires_grad=True), "h": free.requires_grad_()}
    run = made(body).run(None, condition({"y": Y, "n": LENGTHS}), unconstrained(moved), by_rows(1))
    s, there = math.exp(0.2), ~Y.isnan()
    h = free.detach()[0][there].exp()
    wanted = stats.halfnorm.logpdf(s) + stats.gamma(2.0, scale=1 / s).logpdf(h).sum()
    wanted += stats.norm(h.log() / s, 0.5).logpdf(Y[there]).sum()
    assert float(run.log_joint().detach()) == pytest.approx(float(wanted), abs=1e-10)
    jacobian = run.sites["h"].log_jacobian
    assert jacobian is not None
    rest = stats.norm.logpdf(free.detach()[0][~there]).sum()
    assert float(jacobian.detach()) == pytest.approx(float(h.log().sum() + rest), abs=1e-10)
    total = run.log_joint() + jacobian
    first, second = torch.autograd.grad(total.sum(), [moved["s"], moved["h"]])
    assert bool(first.isfinite().all()) and bool(second.isfinite().all())
    assert torch.allclose(second[0][~there], -free.detach()[0][~there])


def test_gradients_are_those_of_differences() -> None:
    model, data = made(CHAIN), condition({"y": Y, "n": LENGTHS})

    def density(s: Tensor, h: Tensor) -> Tensor:
        run = model.run(None, data, unconstrained({"s": s, "h": h}), by_rows(1))
        jacobians = [site.log_jacobian for site in run.sites.values() if site.log_jacobian is not None]
        return run.log_joint() + sum(jacobians)

    s = torch.tensor([0.1], dtype=torch.float64, requires_grad=True)
    h = torch.randn(1, 2, 4, dtype=torch.float64, generator=torch.Generator().manual_seed(2)).requires_grad_()
    assert torch.autograd.gradcheck(density, (s, h))


def test_pointwise_numbers_and_returned_values_say_what_does_not_exist() -> None:
    body = CHAIN.replace("return s", "let m[g : Subject, t : Time] = 2.0 * h[g, t]\n    return (h, m)")
    given = condition({"y": Y, "n": LENGTHS}), substitute({"h": H, "s": S})
    run = made(body).run(None, *given, pointwise, keep(["m"]), by_rows(1))
    each = run.sites["y"].pointwise
    assert each is not None
    assert each.isnan()[0].tolist() == Y.isnan().tolist()
    assert torch.allclose(each[0][:1], torch.from_numpy(stats.norm.logpdf(Y[:1], H[:1], 0.5)))
    h, m = run.output  # pyright: ignore
    assert torch.allclose(h[0], H, equal_nan=True)
    assert torch.allclose(m[0], 2 * H, equal_nan=True)
    assert torch.allclose(run.kept["m"][0], 2 * H, equal_nan=True)


def test_a_recursion_over_an_observed_chain_stops_where_it_ends() -> None:
    body = """
    sample a <- HalfNormal(1.0)
    let v[g : Subject, t : Time] = 0.2 + a * y[g, t - 1]^2 + 0.5 * v[g, t - 1] from 1.0
    observe y[g : Subject, t : Time] <- Normal(0.0, sqrt(v[g, t])) [lengths=n]
    return v
"""
    run = made(body).run(None, condition({"y": Y, "n": LENGTHS}), substitute({"a": S}), by_rows(1))
    wanted = stats.halfnorm.logpdf(0.6)
    for row in Y.tolist():
        v = 1.0
        for at, y in enumerate(one for one in row if not math.isnan(one)):
            v = 0.2 + 0.6 * row[at - 1] ** 2 + 0.5 * v if at else v
            wanted += stats.norm.logpdf(y, 0.0, math.sqrt(v))
    assert float(run.log_joint().detach()) == pytest.approx(float(wanted), abs=1e-10)
    assert run.output.isnan()[0].tolist() == Y.isnan().tolist()  # pyright: ignore


@pytest.mark.parametrize("start", ["z[g, 0]", "(z[g, 0], 0.5 * z[g, 1])"])
def test_what_a_recursion_starts_from_need_not_exist_where_its_chain_has_no_such_element(start: str) -> None:
    lag = 2 if start.startswith("(") else 1
    body = f"""
    sample z[g : Subject, t : Time] <- Normal(0.0, 1.0) [lengths=n]
    let a[g : Subject, t : Time] = 0.5 * a[g, t - {lag}] + z[g, t] from {start}
    sample h[g : Subject, t : Time] <- Normal(h[g, t - 1], 1.0) [lengths=n] from Normal(z[g, 0], 2.0)
    observe y[g : Subject, t : Time] <- Normal(a[g, t] + h[g, t], 0.5) [lengths=n]
    return a
"""
    z = doubles([[0.4, -0.6, 0.3, 1.0], [0.9, NAN, NAN, NAN]])
    for counts in ([4, 1], [4, 0], [1, 0], [0, 0]):
        there = torch.arange(4) < torch.tensor(counts).unsqueeze(-1)
        drawn = {name: torch.where(there, value.nan_to_num(0.7), NAN) for name, value in (("z", z), ("h", H), ("y", Y))}
        wanted = 0.0
        for row, many in enumerate(counts):
            zs, hs, ys = (drawn[name][row, :many].tolist() for name in "zhy")
            a = list[float]()
            for at in range(many):
                first = zs[0] if lag == 1 or at == 0 else 0.5 * zs[at]
                a.append(first if at < lag else 0.5 * a[at - lag] + zs[at])
            before = zip([zs[0], *hs[:-1]] if many else [], hs, strict=True)
            wanted += sum(stats.norm.logpdf(h, m, 1.0 if at else 2.0) for at, (m, h) in enumerate(before))
            wanted += sum(stats.norm.logpdf(one) for one in zs)
            wanted += sum(stats.norm.logpdf(y, m + h, 0.5) for y, m, h in zip(ys, a, hs, strict=True))
        found = made(body).log_joint(None, {**drawn, "n": torch.tensor(counts)})
        assert float(found) == pytest.approx(float(wanted), abs=1e-10)


def test_two_sets_of_other_sizes_may_have_the_same_lengths() -> None:
    body = """
    sample a[g : Subject, r : Row] <- Normal(0.0, 1.0) [lengths=n]
    sample b[g : Subject, t : Time] <- Normal(1.0, 1.0) [lengths=n]
    let twice[g : Subject, t : Time] = 2.0 * b[g, t]
    sample c[r : Row] <- Normal(0.0, 2.0) [lengths=2]
    sample d[t : Time] <- Normal(0.0, 3.0) [lengths=2]
    return d
"""
    model = made(body)
    given = {
        "a": doubles([[0.1, 0.2, NAN], [0.3, 0.4, 0.5]]),
        "b": doubles([[0.6, 0.7, NAN, NAN], [0.8, 0.9, 1.0, NAN]]),
        "c": doubles([[0.2, 0.4, NAN]])[0],
        "d": doubles([[0.1, 0.3, NAN, NAN]])[0],
    }
    spread = {"a": (0.0, 1.0), "b": (1.0, 1.0), "c": (0.0, 2.0), "d": (0.0, 3.0)}
    run = model.run(None, condition({"n": torch.tensor([2, 3])}), substitute(given), keep({"twice"}))
    exact = sum(stats.norm.logpdf(value[~value.isnan()], *spread[name]).sum() for name, value in given.items())
    assert float(run.log_joint()) == pytest.approx(exact, abs=1e-9)
    assert run.kept["twice"].isnan().squeeze().tolist() == given["b"].isnan().tolist()
    assert run.output.isnan().squeeze().tolist() == [False, False, True, True]  # pyright: ignore


def test_a_single_chain_takes_a_number() -> None:
    body = """
    sample h[t : Time] <- Normal(h[t - 1], 1.0) [lengths=2] from Normal(0.0, 1.0)
    observe k[t : Time] <- Poisson(exp(h[t])) [lengths=2]
    return h
"""
    h, k = doubles([[0.3, 0.5, NAN, NAN]])[0], doubles([[1.0, 2.0, NAN, NAN]])[0]
    wanted = stats.norm.logpdf(0.3) + stats.norm.logpdf(0.2) + stats.poisson.logpmf([1, 2], h[:2].exp()).sum()
    text = HEAD.replace("    data n : Subject -> Nat\n", "") + body
    assert float(loads(text).morphism.log_joint(None, {"h": h, "k": k})) == pytest.approx(float(wanted), abs=1e-10)


def test_vectors_whose_entries_are_drawn_one_by_one_end_with_their_chain() -> None:
    body = """
    sample v[g : Subject, t : Time] : Real 2 <- Normal(0.5 * v[g, t - 1], 1.5) [lengths=n] from Normal(0.0, 2.0)
    observe w[g : Subject, t : Time] : Real 2 <- Normal(v[g, t], 0.5) [lengths=n]
    return v
"""
    v = torch.randn(2, 4, 2, dtype=torch.float64, generator=torch.Generator().manual_seed(3))
    w, gone = v + 0.3, H.isnan()
    wanted = 2 * (4 + 2) * stats.norm.logpdf(0.3, 0.0, 0.5)
    for chain, length in ((v[0], 4), (v[1], 2)):
        wanted += stats.norm.logpdf(chain[0], 0.0, 2.0).sum()
        wanted += stats.norm.logpdf(chain[1:length], 0.5 * chain[: length - 1], 1.5).sum()
    v[gone], w[gone] = NAN, NAN
    model = made(body)
    assert float(model.log_joint(None, {"v": v, "w": w, "n": LENGTHS})) == pytest.approx(float(wanted), abs=1e-6)
    run = model.run(None, condition({"w": w, "n": LENGTHS}), substitute({"v": v}), pointwise, by_rows(1))
    drawn = Predictive(model, num_samples=3)(None, {"n": LENGTHS})["w"]
    each = run.sites["w"].pointwise
    assert each is not None
    assert each[0].isnan().tolist() == v.isnan().tolist()
    assert drawn.reshape(3, 2, 4, 2).isnan().any(0).tolist() == v.isnan().tolist()


LONG = """
    data subject : Row -> Subject
    data time : Row -> Time
    sample h[g : Subject, t : Time] <- Normal(0.0, 1.0) [lengths=n]
    let m[g : Subject] = mean(h[g, t] for t : Time if t < n[g])
    observe z[i : Row] <- Normal(h[subject[i], time[i]] + m[subject[i]], 1.0)
    return m
"""


def test_rows_read_elements_that_exist_and_are_refused_others() -> None:
    z = torch.tensor([0.1, 0.2, 0.3], dtype=torch.float64)
    data = {"n": LENGTHS, "subject": torch.tensor([0, 1, 1]), "time": torch.tensor([3, 1, 0]), "z": z, "h": H}
    m = H.nanmean(-1)
    wanted = stats.norm.logpdf(H[~H.isnan()]).sum()
    wanted += stats.norm.logpdf(z, torch.tensor([0.9 + m[0], 0.3 + m[1], 0.7 + m[1]])).sum()
    model = made(LONG)
    assert float(model.log_joint(None, data)) == pytest.approx(float(wanted), abs=1e-6)
    with pytest.raises(InputProblem, match=r"`z` reads an element of `h`, for its element \[1\], that does not exist"):
        model.log_joint(None, {**data, "time": torch.tensor([3, 2, 0])})


@pytest.mark.parametrize(
    ("lengths", "words"),
    [([4, 5], r"lengths from 0 to 4, found 5 in `n\[b\]`"), ([1, 2, 3], "shape")],
)
def test_lengths_that_cannot_be_are_refused(lengths: list[int], words: str) -> None:
    with pytest.raises(InputProblem, match=words):
        made(CHAIN).log_joint(None, {"h": H, "s": S, "y": Y, "n": torch.tensor(lengths)})


def test_a_value_that_exists_must_be_given() -> None:
    y = Y.clone()
    y[1, 0] = NAN
    told = r"a value for each element up to `n`, found none for `y\[b, 0\]`: give it, or end the sequence"
    with pytest.raises(InputProblem, match=told):
        made(CHAIN).log_joint(None, {"h": H, "s": S, "y": y, "n": LENGTHS})


def test_what_is_drawn_ends_with_its_chain() -> None:
    draws = Predictive(made(CHAIN), num_samples=5)(None, {"n": LENGTHS})
    assert draws["y"].isnan().any(0).reshape(2, 4).tolist() == Y.isnan().tolist()


HIDDEN = """
    data p : Row * Row -> Real 1
    marginalize z[g : Subject, t : Time] : Row <- Categorical(p[z[g, t - 1]]) [lengths=n] from Categorical(p[0])
        observe y[g : Subject, t : Time] <- Normal(1.5 * z[g, t], 0.7) [lengths=n]
    return n
"""
TABLE = doubles([[0.7, 0.2, 0.1], [0.2, 0.6, 0.2], [0.3, 0.3, 0.4]])


def paths(y: list[float]) -> float:
    """log p(y) of one chain, every path written out."""
    found = 0.0
    for path in product(range(3), repeat=len(y)):
        start = float(TABLE[0, path[0]])
        moves = math.prod(float(TABLE[a, b]) for a, b in pairwise(path))
        found += start * moves * math.prod(stats.norm.pdf(one, 1.5 * z, 0.7) for one, z in zip(y, path, strict=True))
    return math.log(found)


def test_a_hidden_chain_ends_with_its_lengths() -> None:
    model = made(HIDDEN)
    found = model.log_joint(None, {"p": TABLE, "y": Y, "n": LENGTHS})
    assert float(found) == pytest.approx(paths(Y[0].tolist()) + paths(Y[1, :2].tolist()), abs=1e-6)


def test_a_hidden_state_beyond_the_end_is_not_read() -> None:
    model = made(HIDDEN.replace("0.7) [lengths=n]", "0.7)"))
    complete = Y.nan_to_num(0.0)
    assert model.log_joint(None, {"p": TABLE, "y": complete, "n": torch.tensor([4, 4])}).isfinite().all()
    with pytest.raises(InputProblem, match=r"states of `z` up to `n`, found a read of `z\[1, 2\]`"):
        model.log_joint(None, {"p": TABLE, "y": complete, "n": LENGTHS})


def test_nuts_finds_the_posterior_of_two_chains_written_apart() -> None:
    apart = """
object Input : Real 1
object Long : FinSet 4
object Short : FinSet 2
program p : Input -> Input
    sample a[t : Long] <- Normal(0.9 * a[t - 1], 0.6) from Normal(0.0, 2.0)
    sample b[t : Short] <- Normal(0.9 * b[t - 1], 0.6) from Normal(0.0, 2.0)
    observe u[t : Long] <- Normal(a[t], 0.5)
    observe v[t : Short] <- Normal(b[t], 0.5)
    return a
"""
    text = HEAD + CHAIN.replace("    sample s <- HalfNormal(1.0)\n", "").replace(", s)", ", 0.6)")
    text = text.replace("return s", "return h")
    one = MCMC(NUTSKernel(), 300, 2000, 2, seed=4).run(loads(text).morphism, None, {"y": Y, "n": LENGTHS})
    two = MCMC(NUTSKernel(), 300, 2000, 2, seed=5).run(loads(apart).morphism, None, {"u": Y[0], "v": Y[1, :2]})
    h = one.samples["h"].reshape(-1, 2, 4)
    wanted = [f"h[{g}, {t}]" for g, size in (("a", 4), ("b", 2)) for t in range(size)]
    assert one.summary()["name"].to_list() == wanted
    assert h.isnan().any(0).tolist() == Y.isnan().tolist() == h.isnan().all(0).tolist()
    for found, wanted in ((h[:, 0], two.samples["a"].reshape(-1, 4)), (h[:, 1, :2], two.samples["b"].reshape(-1, 2))):
        assert torch.allclose(found.mean(0), wanted.mean(0), atol=0.06)
        assert torch.allclose(found.std(0), wanted.std(0), atol=0.05)


def test_every_report_ends_with_the_chain() -> None:
    later = "predict f[g : Subject, t : Time] <- Normal(h[g, t], 1.0) [lengths=n]"
    body = CHAIN.replace("return s", f"{later}\n    return s")
    found = MCMC(NUTSKernel(), 50, 10, 1, seed=4).run(made(body), None, {"y": Y, "n": LENGTHS})
    tree = found.to_arviz(prior_draws=3)
    for group, name in (
        ("posterior", "h"),
        ("posterior_predictive", "y"),
        ("posterior_predictive", "f"),
        ("prior", "h"),
        ("prior_predictive", "y"),
    ):
        values = torch.as_tensor(tree[group][name].to_numpy()).flatten(0, 1)
        assert values.isnan().any(0).tolist() == values.isnan().all(0).tolist() == Y.isnan().tolist(), (group, name)
    assert tree["log_likelihood"]["y"].shape[-1] == 6


@pytest.mark.statistical
def test_a_guide_fits_the_posterior_of_what_exists() -> None:
    body = """
    sample h[g : Subject, t : Time] <- Normal(0.0, 1.0) [lengths=n]
    observe y[g : Subject, t : Time] <- Normal(h[g, t], 0.5) [lengths=n]
    return h
"""
    torch.manual_seed(0)
    model, data = made(body), {"y": Y, "n": LENGTHS}
    guide = AutoNormalGuide(model, list(data))
    fit = SVI(model, guide, torch.optim.Adam(guide.parameters(), lr=0.02), ELBO(num_particles=8))
    losses = [fit.step(None, data) for _ in range(900)]
    there = ~Y.isnan()
    wanted = -stats.norm.logpdf(Y[there], 0.0, math.sqrt(1.25)).sum()
    assert sum(losses[-300:]) / 300 == pytest.approx(wanted, abs=0.1)


LIMITED = """
    data late : Subject * Time
    sample s <- HalfNormal(1.0)
    sample h[g : Subject, t : Time] <- Normal(1.5, s) [lengths=n{more}]
    observe y[g : Subject, t : Time] : Real 1 [low=-0.5] <- Normal(h[g, t], 0.5) [lengths=n, right_censored=late]
    return s
"""
LATE = doubles([[0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 1.0, 0.0]])


def of_limited(h: Tensor, s: float) -> float:
    found = float(stats.halfnorm.logpdf(s))
    for g, t in ((g, t) for g, n in enumerate(LENGTHS.tolist()) for t in range(n)):
        mean = float(h[g, t])
        known = stats.norm.logsf if LATE[g, t] else stats.norm.logpdf
        found += stats.norm.logpdf(mean, 1.5, s) + known(float(Y[g, t]), mean, 0.5) - stats.norm.logsf(-0.5, mean, 0.5)
    return found


@pytest.mark.parametrize("more", ["", ", noncentred"])
def test_limits_are_those_of_the_elements_that_exist(more: str) -> None:
    model = made(LIMITED.format(more=more))
    given = {"n": LENGTHS, "y": Y, "late": LATE, "h": H, "s": S}
    assert model.log_joint(None, given).item() == pytest.approx(of_limited(H, S.item()), abs=1e-9)


def test_a_standardised_value_has_the_density_of_its_value_with_the_jacobian() -> None:
    """What does not exist rests: a standard normal density of its number."""
    model = made(LIMITED.format(more=", noncentred"))
    free = {"s": torch.tensor([0.2], dtype=torch.float64), "h": torch.randn(1, 2, 4, dtype=torch.float64)}
    run = model.run(None, condition({"n": LENGTHS, "y": Y, "late": LATE}), unconstrained(free), by_rows(1))
    s, h = run.sites["s"].value.item(), run.sites["h"].value[0]
    there = ~H.isnan()
    torch.testing.assert_close(h[there], 1.5 + s * free["h"][0][there])
    assert run.log_joint().item() == pytest.approx(of_limited(h, s), abs=1e-9)
    rest = stats.norm.logpdf(free["h"][0][~there]).sum()
    assert run.sites["h"].log_jacobian.item() == pytest.approx(6 * math.log(s) + rest, abs=1e-9)


@pytest.mark.parametrize("more", ["", ", noncentred"])
def test_chains_of_limited_elements_are_machine_code(more: str) -> None:
    mcmc = MCMC(NUTSKernel(), 20, 10, 1, seed=4, engine="compiled")
    found = mcmc.run(made(LIMITED.format(more=more)), None, {"n": LENGTHS, "y": Y, "late": LATE})
    assert found.engine == "compiled"
    assert bool((found.samples["h"].isnan() == H.isnan()).all())


def test_one_number_for_each_of_several_indices_may_be_ascribed() -> None:
    body = "    sample s <- HalfNormal(1.0)\n"
    body += "    observe y[g : Subject, t : Time] : Real 1 <- Normal(0.0, s)\n    return s\n"
    y = Y.nan_to_num(0.5)
    expected = stats.halfnorm.logpdf(0.6) + stats.norm.logpdf(y, 0.0, 0.6).sum()
    assert made(body).log_joint(None, {"y": y, "s": S}).item() == pytest.approx(expected, abs=1e-9)
