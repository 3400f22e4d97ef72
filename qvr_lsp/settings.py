"""The user's settings, as the editor sends them under `qvr` (or as initializationOptions)."""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from typing import Any

from qvr_lsp.json_values import is_object

# Key as the editor writes it -> field of Settings.
KEYS = {
    "diagnostics.mode": "diagnostics_mode",
    "diagnostics.maximum": "diagnostics_maximum",
    "inlayHints.letTypes": "inlay_let_types",
    "inlayHints.holes": "inlay_holes",
    "inlayHints.pipelines": "inlay_pipelines",
    "inlayHints.direction": "inlay_direction",
    "inlayHints.parameterNames": "inlay_parameter_names",
    "inlayHints.posterior": "inlay_posterior",
    "diagnostics.fits": "diagnostics_fits",
    "codeLens.enable": "code_lens",
    "run.python": "python",
    "live": "live",
    "liveBudget": "live_budget",
    "log.level": "log_level",
    "completion.snippets": "snippets",
}


BEFORE = "prior.asYouType"
"""What `live` = prior was called; it is read for one release more."""

RANGES: dict[str, tuple[float, float]] = {"diagnostics_maximum": (1, 100_000), "live_budget": (0.1, 10.0)}
CHOICES: dict[str, tuple[str, ...]] = {
    "diagnostics_mode": ("push", "pull"),
    "live": ("off", "prior", "posterior"),
    "log_level": ("debug", "info", "warning", "error"),
}


@dataclass(frozen=True, slots=True)
class Settings:
    """All settings with their defaults.

    `diagnostics_mode` is 'push' (published after each edit, by default: nothing is faster) or 'pull' (the editor asks).
    `python` is the interpreter that runs are started with; empty: the server's own.
    `live` is what is drawn while somebody types: 'off', 'prior' or 'posterior', the latter for at most `live_budget`
    seconds.
    """

    diagnostics_mode: str = "push"
    diagnostics_maximum: int = 1000
    inlay_let_types: bool = True
    inlay_holes: bool = True
    inlay_pipelines: bool = True
    inlay_direction: bool = True
    inlay_parameter_names: bool = True
    inlay_posterior: bool = True
    diagnostics_fits: bool = True
    code_lens: bool = True
    python: str = ""
    live: str = "off"
    live_budget: float = 2.0
    log_level: str = "warning"
    snippets: bool = True

    @staticmethod
    def read(given: dict[str, Any], base: Settings | None = None) -> Settings:
        """The settings in nested or dotted form; unknown keys and values of the wrong type keep what was, and
        a number outside its range counts as the nearest one inside."""
        settings = base or Settings()
        kinds: dict[str, type[Any]] = {field.name: type(getattr(settings, field.name)) for field in fields(Settings)}
        found = {KEYS[key]: value for key, value in flattened(given) if key in KEYS}
        if asks_as_before(given) and found.get("live", "off") == "off":
            found["live"] = "prior"
        found = {name: float(one) if (kinds[name], type(one)) == (float, int) else one for name, one in found.items()}
        good = {name: within(name, value) for name, value in found.items() if type(value) is kinds[name]}
        return replace(settings, **{name: value for name, value in good.items() if value is not None})


def asks_as_before(given: dict[str, Any]) -> bool:
    """Whether the setting is on that `live` has replaced."""
    return dict(flattened(given)).get(BEFORE) is True


def within(name: str, value: Any) -> Any:
    """A value, moved into its range; None for a word that is no choice."""
    if name in RANGES:
        low, high = RANGES[name]
        return min(max(value, low), high)
    return None if name in CHOICES and value not in CHOICES[name] else value


def flattened(given: dict[str, Any], prefix: str = "") -> list[tuple[str, Any]]:
    """`{"a": {"b": 1}}` as `[("a.b", 1)]`."""
    pairs: list[tuple[str, Any]] = []
    for key, value in given.items():
        name = f"{prefix}{key}"
        pairs += flattened(value, f"{name}.") if is_object(value) else [(name, value)]
    return pairs
