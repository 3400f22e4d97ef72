"""Pictures of the site suit the page that they stand on."""

from __future__ import annotations

from scripts.website.pages import to_shades


def test_a_picture_with_two_shades_is_both() -> None:
    line = "![Chains](images/chains-dark.png)"
    light, dark = "images/chains-light.png#only-light", "images/chains-dark.png#only-dark"
    assert to_shades(line) == f"![Chains]({light}) ![Chains]({dark})"
    assert to_shades("![A plot](bills.svg)") == "![A plot](bills.svg)"
