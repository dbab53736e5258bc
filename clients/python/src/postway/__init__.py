"""A client for Postway, a durable email gateway.

    from postway import Client

    with Client("http://127.0.0.1:8520", "pw_…") as gateway:
        gateway.send_message({"id": "order-7", "from": "shop@example.com", "to": "ada@example.net",
                              "subject": "Your order", "text": "Thank you."})
"""

from . import types
from .client import ENDED, VERSION, Client
from .errors import (
    ApiError,
    Conflict,
    Forbidden,
    InvalidWebhook,
    NoAnswer,
    NotFound,
    PostwayError,
    TooManyRequests,
    Unauthorized,
    Unavailable,
    UnreadableAnswer,
    ValidationFailed,
)
from .webhook import verify_webhook

__version__ = VERSION
__all__ = [
    "ApiError",
    "Client",
    "Conflict",
    "ENDED",
    "Forbidden",
    "InvalidWebhook",
    "NoAnswer",
    "NotFound",
    "PostwayError",
    "TooManyRequests",
    "Unauthorized",
    "Unavailable",
    "UnreadableAnswer",
    "VERSION",
    "ValidationFailed",
    "types",
    "verify_webhook",
]
