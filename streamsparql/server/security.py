"""Who may do what: tokens for changes, and no requests that other web pages make in secret.

A page in a browser can send requests to a server on the same machine. It cannot read the answers
unless the server allows its origin, but it could change something: so a request with an `Origin` of
another place is refused unless it is allowed. A name that resolves to this machine only for an
attack shows in the `Host` of the request, which must be one of this server.
"""

from __future__ import annotations

import hmac
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from urllib.parse import urlsplit

from streamsparql.errors import EngineError

LOOPBACK = ("127.0.0.1", "localhost", "::1")


def is_loopback(host: str) -> bool:
    """Return whether only this machine reaches a host.

    >>> is_loopback("localhost"), is_loopback("0.0.0.0")
    (True, False)
    """
    return host in LOOPBACK or host.startswith("127.")


@dataclass(frozen=True)
class Refusal:
    """Why a request is refused, with the status of its answer."""

    status: int
    reason: str


@dataclass(frozen=True)
class Security:
    """The rules of a server.

    >>> Security("127.0.0.1").refusal("GET", {"host": "evil.example"})
    Refusal(status=421, reason="this server is not 'evil.example'")
    >>> Security("0.0.0.0", token="secret").refusal("PUT", {"host": "a"}).status
    401
    >>> Security("0.0.0.0", token="secret").refusal("GET", {"host": "a"})
    """

    host: str
    token: str | None = None
    origins: Collection[str] = ()
    """The origins whose pages may use this server; `*` for all."""

    def check(self) -> None:
        """Raise an error if others than this machine could make changes without a token."""
        if not is_loopback(self.host) and not self.token:
            raise EngineError(
                f"{self.host} is reached by other machines: set a token for changes (--token-file)"
            )

    def refusal(self, method: str, headers: Mapping[str, str]) -> Refusal | None:
        """Return why a request is refused; None if it is not."""
        host = _name(headers.get("host", ""))
        if is_loopback(self.host) and host not in (self.host, *LOOPBACK):
            return Refusal(421, f"this server is not {host!r}")
        origin = headers.get("origin")
        upgrade = headers.get("upgrade", "").lower() == "websocket"
        changes = method not in ("GET", "HEAD", "OPTIONS")
        if origin is not None and (changes or upgrade) and not self.allows(origin, headers):
            return Refusal(403, f"requests of pages of {origin} are not allowed (--allow-origin)")
        if changes and self.token and not self._has_token(headers):
            return Refusal(401, "changes need the token: Authorization: Bearer TOKEN")
        return None

    def allows(self, origin: str, headers: Mapping[str, str]) -> bool:
        """Return whether pages of an origin may use this server."""
        own = urlsplit(origin).netloc == headers.get("host", "")
        return own or origin in self.origins or "*" in self.origins

    def _has_token(self, headers: Mapping[str, str]) -> bool:
        sort, _, token = headers.get("authorization", "").partition(" ")
        sent = token.strip().encode() if sort.lower() == "bearer" else b""
        return hmac.compare_digest(sent, (self.token or "").encode())


def _name(host: str) -> str:
    """Return the name in a `Host`, without the port.

    >>> _name("localhost:8080"), _name("[::1]:8080"), _name("")
    ('localhost', '::1', '')
    """
    try:
        return urlsplit(f"//{host}").hostname or ""
    except ValueError:
        return ""
