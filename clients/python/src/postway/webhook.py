"""Whether a call that claims to be a webhook's was made by the gateway, as Standard Webhooks has it."""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import json
import time
from typing import Any, Dict, Iterable, Mapping, Optional, Union

from .errors import InvalidWebhook

TOLERANCE_S = 300
"""How old a call may be, and how far ahead of this clock."""


def verify_webhook(
    secret: Union[str, Iterable[str]],
    headers: Mapping[str, str],
    body: bytes,
    *,
    tolerance: float = TOLERANCE_S,
    now: Optional[float] = None,
) -> Dict[str, Any]:
    """The event that a call brings. Raises `InvalidWebhook` unless the call is signed, and recent.

    `secret` is what `create_webhook` showed, `whsec_…`, or several of them while they are changed. `body` is what came: bytes,
    before anything parses them. A call may come twice, when its answer was lost: `webhook-id` is the same then.
    """
    given = {name.lower(): value for name, value in headers.items()}
    id_, stamp, signatures = (
        given.get(f"webhook-{name}") or given.get(f"svix-{name}") or ""
        for name in ("id", "timestamp", "signature")
    )
    if not id_ or not signatures:
        raise InvalidWebhook("the call is not signed")
    if not (stamp.isascii() and stamp.isdigit()) or len(stamp) > 12:
        raise InvalidWebhook("the call has no time")
    if abs((time.time() if now is None else now) - int(stamp)) > tolerance:
        raise InvalidWebhook("the call is too old, or its time is in the future")
    signed = f"{id_}.{stamp}.".encode() + body
    theirs = [one[3:].encode() for one in signatures.split(" ") if one.startswith("v1,")]
    for one in [secret] if isinstance(secret, str) else secret:
        ours = base64.b64encode(hmac.new(_key(one), signed, hashlib.sha256).digest())
        if any(hmac.compare_digest(ours, other) for other in theirs):
            return _event(body)
    raise InvalidWebhook("the signature is not of this secret")


def _key(secret: str) -> bytes:
    text = secret[len("whsec_") :] if secret.startswith("whsec_") else secret
    try:
        key = base64.b64decode(text, validate=True)
    except (binascii.Error, ValueError):
        raise ValueError("a webhook's secret is `whsec_` and base64") from None
    if not key:
        # An empty key would make a signature that anybody can make.
        raise ValueError("the webhook's secret is empty")
    return key


def _event(body: bytes) -> Dict[str, Any]:
    event = json.loads(body)
    if not isinstance(event, dict):
        raise InvalidWebhook("the call brings no event")
    return event
