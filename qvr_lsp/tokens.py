"""What a peer on a socket must know."""

from __future__ import annotations

import hmac
from urllib.parse import parse_qs, urlsplit


def same_token(given: object, token: str) -> bool:
    """Whether a peer's token is the server's; takes as long whatever is wrong with it."""
    return isinstance(given, str) and hmac.compare_digest(given.encode("utf-8", "replace"), token.encode())


def token_of(path: str) -> str:
    """The token in the address of a WebSocket, '' where there is none."""
    return parse_qs(urlsplit(path).query).get("token", [""])[0]
