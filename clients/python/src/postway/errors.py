"""What may go wrong with a call. Every error of this package is a `PostwayError`."""

from __future__ import annotations

from typing import Dict, List, Optional, Type

from . import types


class PostwayError(Exception):
    """The root of all errors of this package."""


class NoAnswer(PostwayError):
    """The gateway could not be reached, or the connection was lost before its answer.

    `may_have_happened` says whether the request may have been carried out all the same.
    """

    def __init__(self, message: str, *, may_have_happened: bool) -> None:
        super().__init__(message)
        self.may_have_happened = may_have_happened


class UnreadableAnswer(PostwayError):
    """An answer came that the gateway does not give: something else listens there, or stands in between."""


class InvalidWebhook(PostwayError):
    """A call that is not proven to come from the gateway. Answer it with 401, and do not read it."""


class ApiError(PostwayError):
    """The gateway refused: `code` is a word for programs, `details` names every field at fault."""

    def __init__(self, status: int, error: types.ErrorBody, retry_after: Optional[float] = None) -> None:
        super().__init__(f"{status} {error['code']}: {error['message']}")
        self.status = status
        self.code: str = error["code"]
        self.message: str = error["message"]
        self.request_id: Optional[str] = error.get("request_id")
        self.details: List[types.FieldError] = list(error.get("details") or [])
        self.retry_after = retry_after


class Unauthorized(ApiError):
    """401: no key, or a wrong one."""


class Forbidden(ApiError):
    """403: the key may not do this."""


class NotFound(ApiError):
    """404: there is no such thing in this tenant."""


class Conflict(ApiError):
    """409: the id or key stands for something else, or the state does not allow it."""


class ValidationFailed(ApiError):
    """422: see `details`. Nothing was stored."""


class TooManyRequests(ApiError):
    """429: too often; `retry_after` says when to repeat."""


class Unavailable(ApiError):
    """503: the gateway cannot do it now; nothing was done."""


_BY_STATUS: Dict[int, Type[ApiError]] = {
    401: Unauthorized,
    403: Forbidden,
    404: NotFound,
    409: Conflict,
    422: ValidationFailed,
    429: TooManyRequests,
    503: Unavailable,
}


def api_error(status: int, error: types.ErrorBody, retry_after: Optional[float] = None) -> ApiError:
    """The error for an answer with this status."""
    return _BY_STATUS.get(status, ApiError)(status, error, retry_after)
