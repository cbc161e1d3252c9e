"""URLs of live sources and sinks: `kafka://host/topic?format=json&map=m.rq`, `follow:wind.nq`.

The scheme names the connector, which is a module that is imported when it is used. The options of
the query part are its own, and those of `open_source`; an unknown one is an error.
"""

from __future__ import annotations

import re
from base64 import b64encode
from collections.abc import Callable, Collection
from dataclasses import dataclass, field
from difflib import get_close_matches
from importlib import import_module
from typing import Any, TypeVar
from urllib.parse import parse_qsl, quote, unquote, urlencode, urlsplit

from streamsparql.errors import SourceError
from streamsparql.text.durations import parse_duration
from streamsparql.text.extras import install

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9+.-]+):(?=//)|(follow|rotate|sqlite):")
_Value = TypeVar("_Value")
KNOWN = frozenset(
    "after agent columns delimiter events format idle map send stamp token unit zone".split()
)
"""The options of connectors over HTTP; others in their URLs are passed to the server."""


@dataclass
class ConnectorUrl:
    """A URL and its options, which connectors take one by one.

    >>> url = parse_url("mqtts://ann:secret@broker:8884/a/b?qos=0&idle=5s")
    >>> url.scheme, url.host, url.port, url.user, url.path, url.shown
    ('mqtts', 'broker', 8884, 'ann', 'a/b', 'mqtts://broker:8884/a/b')
    >>> url.number("qos", 1), url.seconds("idle", 1.0), url.text("client")
    (0, 5.0, None)
    """

    scheme: str
    hosts: str
    """The hosts and ports, as written."""
    user: str | None
    password: str | None
    path: str
    """The path, decoded, without its first slash if there is a host."""
    options: dict[str, str]
    known: set[str] = field(default_factory=set)
    """The options that the connector knows."""

    @property
    def shown(self) -> str:
        """The URL as messages show it: without a password, and without its options."""
        slashes = f"//{self.hosts}/" if self.hosts else ""
        return f"{self.scheme}:{slashes}{self.path}"

    @property
    def host(self) -> str:
        """The only host."""
        return urlsplit(f"//{self.hosts}").hostname or ""

    @property
    def port(self) -> int | None:
        """The port of the only host, if it is written."""
        try:
            return urlsplit(f"//{self.hosts}").port
        except ValueError:
            raise SourceError(f"{self.shown}: the port is not a number") from None

    @property
    def rest(self) -> str:
        """The URL without user, with those options that no connector knows."""
        options = [(n, value) for n, value in self.options.items() if n not in KNOWN]
        self.known |= {name for name, _ in options}
        query = f"?{urlencode(options)}" if options else ""
        return f"{self.scheme}://{self.hosts}/{quote(self.path)}{query}"

    @property
    def authorization(self) -> str:
        """The value of the header with the user and the password."""
        both = f"{self.user or ''}:{self.password or ''}"
        return f"Basic {b64encode(both.encode()).decode()}"

    def text(self, name: str, default: str | None = None, among: Collection[str] = ()) -> Any:
        """Return an option, which may be one `among` several values."""
        self.known.add(name)
        value = self.options.get(name, default)
        if among and value is not None and value not in among:
            raise SourceError(f"{self.shown}: {name}={value}: expected {', '.join(among)}")
        return value

    def number(self, name: str, default: int) -> int:
        """Return an option that is a whole number."""
        return self._parsed(name, default, _whole_number, "a whole number")

    def flag(self, name: str, default: bool = False) -> bool:
        """Return an option that is yes or no; it is yes if it has no value."""
        values = {"": True, "yes": True, "true": True, "no": False, "false": False}
        return self._parsed(name, default, values.__getitem__, "yes or no")

    def seconds(self, name: str, default: float) -> float:
        """Return an option that is a duration."""
        return self._parsed(name, default, lambda text: parse_duration(text) / 1000, "a duration")

    def _parsed(
        self, name: str, default: _Value, parse: Callable[[str], _Value], expected: str
    ) -> _Value:
        text = self.text(name)
        try:
            return default if text is None else parse(text)
        except (KeyError, ValueError):
            raise SourceError(f"{self.shown}: {name}={text}: expected {expected}") from None

    def check(self) -> None:
        """Raise an error for an option that nothing has asked for."""
        for name in self.options:
            if name not in self.known:
                near = get_close_matches(name, self.known, 1)
                hint = f"; did you mean {near[0]}?" if near else ""
                raise SourceError(
                    f"{self.shown}: unknown option {name}{hint}; the options are"
                    f" {', '.join(sorted(self.known))}"
                )


def _whole_number(text: str) -> int:
    if not (text.isascii() and text.isdigit() and len(text) < 16):
        raise ValueError(text)
    return int(text)


def scheme_of(source: Any) -> str | None:
    """Return the scheme of a URL; None for anything else, such as a path, or a `file:` URL.

    >>> scheme_of("kafka://b/t"), scheme_of("follow:a.nq"), scheme_of("file:///a"), scheme_of("a:b")
    ('kafka', 'follow', None, None)
    """
    match = _SCHEME.match(source) if isinstance(source, str) else None
    scheme = (match[1] or match[2]).lower() if match else None
    return None if scheme == "file" else scheme


def parse_url(text: str) -> ConnectorUrl:
    """Return the parts of a URL.

    >>> parse_url("kafka://a:1,b:2/t?x=%26").hosts, parse_url("follow:/a%20b.nq?format=nq").path
    ('a:1,b:2', '/a b.nq')
    """
    scheme, _, rest = text.partition(":")
    rest, _, query = rest.partition("?")
    hosts, user, password = "", None, None
    if rest.startswith("//"):
        hosts, _, rest = rest[2:].partition("/")
        if "@" in hosts:
            name, _, hosts = hosts.rpartition("@")
            user, colon, secret = name.partition(":")
            user, password = unquote(user), unquote(secret) if colon else None
        if not hosts:
            rest = f"/{rest}"
    options = dict(parse_qsl(query, keep_blank_values=True))
    return ConnectorUrl(scheme.lower(), hosts, user, password, unquote(rest), options)


def connector(url: ConnectorUrl, modules: dict[str, str], what: str) -> Any:
    """Import the module of a connector; raise an error for an unknown scheme."""
    name = modules.get(url.scheme)
    if name is None:
        raise SourceError(
            f"{url.shown}: unknown {what} {url.scheme}:; there are"
            f" {', '.join(f'{scheme}:' for scheme in modules)}"
        )
    return import_module(f"streamsparql.connectors.{name}")


def client(module: str, extra: str) -> Any:
    """Import the client library of a connector, which an extra installs."""
    try:
        return import_module(module)
    except ImportError as error:
        raise SourceError(f"{module} is not installed; run {install(extra)}") from error
