"""A client in one small file: JSON in, JSON out, and a repeat where the gateway could not be reached.

POSTWAY_URL says where the gateway is, POSTWAY_API_KEY has a key of a tenant. Standard library only.
"""

import json
import os
import time
import urllib.error
import urllib.request

URL = os.environ.get("POSTWAY_URL", "http://127.0.0.1:8520")
KEY = os.environ["POSTWAY_API_KEY"]


class Refused(Exception):
    """The gateway said no: `code` is a word, `details` names every field at fault."""

    def __init__(self, status, error):
        super().__init__(f"{status} {error['code']}: {error['message']}")
        self.status, self.code, self.details = status, error["code"], error["details"]


def call(method, path, body=None, tries=5):
    """One call. A mail that has an `id` may be handed over again and again: it is sent once."""
    headers = {"Authorization": f"Bearer {KEY}", "Content-Type": "application/json"}
    data = None if body is None else json.dumps(body).encode()
    for attempt in range(tries):
        request = urllib.request.Request(URL + path, data, headers, method=method)
        try:
            with urllib.request.urlopen(request, timeout=60) as answer:
                text = answer.read()
                return json.loads(text) if text else None
        except urllib.error.HTTPError as refusal:
            if refusal.code not in (429, 503):
                raise Refused(refusal.code, json.load(refusal)["error"]) from None
            wait = int(refusal.headers.get("Retry-After", 0)) or 2**attempt
        except (urllib.error.URLError, ConnectionError, TimeoutError):
            wait = 2**attempt
        time.sleep(wait)
    raise ConnectionError(f"{URL} cannot be reached")
