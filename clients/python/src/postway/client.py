"""How calls are made: one at a time on a kept connection, again where that is safe, with answers checked.

A `Client` may be shared by threads: each has a connection of its own.
"""

from __future__ import annotations

import http.client
import json
import os
import random
import ssl
import threading
import time
import uuid
from typing import Any, Callable, Dict, Iterator, Mapping, Optional, Tuple
from urllib.parse import urlencode, urlsplit

from . import types
from .errors import ApiError, NoAnswer, UnreadableAnswer, api_error
from .operations import Operations

VERSION = "0.1.0"
ENDED = frozenset({"sent", "captured", "failed", "invalid", "suppressed", "cancelled", "expired"})
"""The states in which nothing more happens to a message by itself. `in_doubt` is not one of them: it may be sent again."""

_WAIT_S_MIN, _WAIT_S_MAX = 0.25, 30.0
_POLL_S_MIN, _POLL_S_MAX = 0.1, 2.0
# Whether the request was carried out is known to be "no": it may be repeated whatever it does.
_NOTHING_DONE = frozenset({429, 503})
# Not known; only what may be done twice is repeated.
_UNKNOWN = frozenset({500, 502, 504})
_SAFE = frozenset({"GET", "HEAD", "PUT"})


class Client(Operations):
    """Calls one gateway with one key. Without arguments, `POSTWAY_URL` and `POSTWAY_API_KEY` say where and with what.

    `timeout` is for one try, in seconds, `retries` how often one is made again. `tenant` is for an admin key.
    """

    def __init__(
        self,
        url: Optional[str] = None,
        key: Optional[str] = None,
        *,
        tenant: Optional[str] = None,
        timeout: float = 60.0,
        retries: int = 5,
        ssl_context: Optional[ssl.SSLContext] = None,
        sleep: Callable[[float], None] = time.sleep,
    ) -> None:
        url = url or os.environ.get("POSTWAY_URL") or "http://127.0.0.1:8520"
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname or parts.query or parts.fragment:
            raise ValueError("url is `http://` or `https://`, a host, and a path at most")
        if parts.username is not None or parts.password is not None:
            raise ValueError("url must not have a password in it; give the key as `key`")
        key = key or os.environ.get("POSTWAY_API_KEY")
        if not key:
            raise ValueError("give a key, or set POSTWAY_API_KEY")
        self._scheme, self._host, self._port = parts.scheme, parts.hostname, parts.port
        self._base = parts.path.rstrip("/")
        self._headers = {"Authorization": f"Bearer {key}", "User-Agent": f"postway-python/{VERSION}"}
        if tenant is not None:
            self._headers["X-Tenant"] = tenant
        self._timeout, self._retries, self._sleep = timeout, retries, sleep
        self._context = ssl_context
        self._local = threading.local()

    def __repr__(self) -> str:
        return f"Client({self._scheme}://{self._host}:{self._port}{self._base})"

    def __enter__(self) -> Client:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Closes this thread's connection. The next call opens another."""
        connection: Optional[http.client.HTTPConnection] = getattr(self._local, "connection", None)
        if connection is not None:
            self._local.connection = None
            connection.close()

    def follow_events(
        self, after: Optional[str] = None, *, wait: int = 25, limit: Optional[int] = None
    ) -> Iterator[types.FeedEntry]:
        """What happens to messages, in order, without an end.

        Keep the `cursor` of an entry once you have dealt with it, and give it as `after` the next time; `now` begins with
        what comes from now on.
        """
        while True:
            page = self.read_events(after=after, wait=wait, limit=limit)
            yield from page["data"]
            after = page["next_cursor"]

    def wait_for_message(self, id: str, *, timeout: float = 60.0) -> types.Message:
        """The message once nothing more happens to it by itself, or as it is after `timeout` seconds."""
        deadline, pause = time.monotonic() + timeout, _POLL_S_MIN
        while True:
            message = self.get_message(id)
            left = deadline - time.monotonic()
            if message["status"] in ENDED or left <= 0:
                return message
            self._sleep(min(pause, left))
            pause = min(pause * 1.5, _POLL_S_MAX)

    def call(self, method: str, path: str, body: Any = None, query: Optional[Mapping[str, Any]] = None) -> Any:
        """Any call of a later gateway that this package does not know: JSON in, JSON out."""
        return self._call(method, path, answer="json", query=dict(query or {}), body=body)

    def _each(self, path: str, query: Dict[str, Any]) -> Iterator[Any]:
        cursor: Optional[str] = None
        while True:
            page = self._call("GET", path, answer="json", query={**query, "cursor": cursor})
            yield from page["data"]
            following = page.get("next_cursor")
            if following is None:
                return
            if following == cursor:
                raise UnreadableAnswer(f"{path} does not go on after {cursor}")
            cursor = following

    def _call(
        self,
        method: str,
        path: str,
        *,
        answer: str,
        query: Optional[Dict[str, Any]] = None,
        headers: Optional[Dict[str, Optional[str]]] = None,
        body: Any = None,
        body_type: str = "application/json",
        keyed: bool = False,
    ) -> Any:
        target = self._base + path + _query(query or {})
        sent = {**self._headers, "Accept": "application/json" if answer == "json" else "*/*"}
        sent.update({name: value for name, value in (headers or {}).items() if value is not None})
        if keyed and "Idempotency-Key" not in sent and not (isinstance(body, Mapping) and body.get("id")):
            # Tries of this call find each other by it. A message that has an id is found by that.
            sent["Idempotency-Key"] = str(uuid.uuid4())
        data = None
        if body is not None:
            sent["Content-Type"] = body_type
            data = bytes(body) if isinstance(body, (bytes, bytearray)) else json.dumps(body).encode()
        repeatable = keyed or method in _SAFE
        for tries_left in range(self._retries, -1, -1):
            tried = self._retries - tries_left
            try:
                status, answered, content = self._try(method, target, sent, data, repeatable)
            except NoAnswer as error:
                if tries_left == 0 or (error.may_have_happened and not repeatable):
                    raise
                self._sleep(_pause(tried))
                continue
            if 200 <= status < 300:
                return _read(answer, content)
            failure = _failure(status, answered, content)
            may_repeat = status in _NOTHING_DONE or (status in _UNKNOWN and repeatable)
            asked = failure.retry_after if isinstance(failure, ApiError) else None
            if tries_left == 0 or not may_repeat or (asked or 0) > _WAIT_S_MAX:
                raise failure
            self._sleep(max(_pause(tried), asked or 0))
        raise AssertionError("the last try returns or raises")

    def _try(
        self, method: str, target: str, headers: Dict[str, str], data: Optional[bytes], repeatable: bool
    ) -> Tuple[int, http.client.HTTPMessage, bytes]:
        if not repeatable:
            # The gateway may be closing a connection that nobody used for a while. What must not be done twice gets one
            # of its own, so that a loss means a loss.
            self.close()
        connection: Optional[http.client.HTTPConnection] = getattr(self._local, "connection", None)
        if connection is None:
            connection = self._connect()
        self._local.connection = None
        try:
            connection.request(method, target, body=data, headers=headers)
            response = connection.getresponse()
            content = response.read()
        except (OSError, http.client.HTTPException) as error:
            connection.close()
            raise NoAnswer(f"{self._host} did not answer: {error}", may_have_happened=True) from error
        except BaseException:
            connection.close()
            raise
        if response.will_close:
            connection.close()
        else:
            self._local.connection = connection
        return response.status, response.headers, content

    def _connect(self) -> http.client.HTTPConnection:
        connection: http.client.HTTPConnection
        if self._scheme == "https":
            context = self._context or ssl.create_default_context()
            connection = http.client.HTTPSConnection(
                self._host, self._port, timeout=self._timeout, context=context
            )
        else:
            connection = http.client.HTTPConnection(self._host, self._port, timeout=self._timeout)
        try:
            connection.connect()
        except OSError as error:
            connection.close()
            raise NoAnswer(f"{self._host} cannot be reached: {error}", may_have_happened=False) from error
        return connection


def _query(query: Dict[str, Any]) -> str:
    def plain(value: Any) -> Any:
        return ("true" if value else "false") if isinstance(value, bool) else value

    pairs = [(name, value) for name, value in query.items() if value is not None]
    flat = [
        (name, plain(one))
        for name, value in pairs
        for one in (value if isinstance(value, (list, tuple)) else [value])
    ]
    return "?" + urlencode(flat) if flat else ""


def _pause(tried: int) -> float:
    # Chance keeps the clients of a gateway that was away from coming back all at once.
    return random.uniform(_WAIT_S_MIN, max(_WAIT_S_MIN * 2, min(_WAIT_S_MAX, 0.5 * 2.0**tried)))


def _read(answer: str, content: bytes) -> Any:
    if answer == "nothing":
        return None
    if answer == "bytes":
        return content
    try:
        return content.decode() if answer == "text" else json.loads(content) if content else None
    except ValueError as error:
        raise UnreadableAnswer(f"the answer is not {answer}: {error}") from None


def _failure(status: int, headers: http.client.HTTPMessage, content: bytes) -> Exception:
    asked = headers.get("Retry-After", "")
    retry_after = float(asked) if asked.isascii() and asked.isdigit() else None
    try:
        error = json.loads(content)["error"]
        body: types.ErrorBody = {
            "code": error["code"],
            "message": error["message"],
            "request_id": error.get("request_id"),
            "details": error.get("details") or [],
        }
        return api_error(status, body, retry_after)
    except (ValueError, KeyError, TypeError, AttributeError):
        kind = headers.get("Content-Type", "no type")
        message = f"the answer is not the gateway's ({kind})"
        if status in _NOTHING_DONE or status in _UNKNOWN:
            # A proxy in between says so in words of its own.
            return api_error(status, {"code": "unavailable", "message": message, "details": []}, retry_after)
        return UnreadableAnswer(f"{status}: {message}")
