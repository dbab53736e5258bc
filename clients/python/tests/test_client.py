"""The client against a server that misbehaves as it is told to: `python -m unittest discover clients/python/tests`."""

import base64
import hashlib
import hmac
import http.server
import json
import threading
import unittest
from typing import Any, Callable, Dict, List, Optional, Tuple

import postway

RECEIPT = {"id": "order-1", "uid": "0192", "status": "accepted"}
MAIL: postway.types.MessageRequest = {"from": "shop@example.com", "to": "ada@example.net", "text": "Hi"}
KEY = "a-key-that-nobody-shows"


def refusal(code: str) -> Dict[str, Any]:
    return {"error": {"code": code, "message": "no", "request_id": "r-1", "details": [{"field": "to", "message": "no @"}]}}


Answer = Optional[Tuple[int, Dict[str, str], Any]]


class Server:
    """Answers requests in turn: with a status, headers and a body, or, where it is told None, by hanging up."""

    def __init__(self, answers: List[Answer]) -> None:
        self.answers = answers
        self.requests: List[Tuple[str, str, Dict[str, str], bytes]] = []
        outer = self

        class Handler(http.server.BaseHTTPRequestHandler):
            protocol_version = "HTTP/1.1"

            def answer(self) -> None:
                body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
                outer.requests.append((self.command, self.path, dict(self.headers.items()), body))
                answer = outer.answers.pop(0)
                if answer is None:
                    self.close_connection = True
                    return
                status, headers, content = answer
                data = content if isinstance(content, bytes) else json.dumps(content).encode()
                self.send_response(status)
                for name, value in {"Content-Length": str(len(data)), **headers}.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(data)

            do_GET = do_POST = do_PUT = do_DELETE = do_PATCH = answer

            def log_message(self, *_: Any) -> None:
                pass

        self.server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        threading.Thread(target=self.server.serve_forever, args=(0.01,), daemon=True).start()
        self.url = f"http://127.0.0.1:{self.server.server_port}"

    def __enter__(self) -> "Server":
        return self

    def __exit__(self, *_: object) -> None:
        self.server.shutdown()
        self.server.server_close()

    def keys(self) -> List[Optional[str]]:
        return [headers.get("Idempotency-Key") for _, _, headers, _ in self.requests]


class Calls(unittest.TestCase):
    def setUp(self) -> None:
        self.waits: List[float] = []

    def client(self, server: Server, **options: Any) -> postway.Client:
        client = postway.Client(server.url, KEY, sleep=self.waits.append, timeout=30, **options)
        self.addCleanup(client.close)
        return client

    def test_tries_of_one_call_have_one_key_and_calls_have_their_own(self) -> None:
        good: Answer = (202, {}, RECEIPT)
        with Server([None, (500, {}, refusal("internal")), (502, {}, b"<html>"), good, good]) as server:
            client = self.client(server)
            self.assertEqual(client.send_message(MAIL), RECEIPT)
            client.send_message(MAIL)
            first, second = server.keys()[:4], server.keys()[4]
        self.assertEqual(len(set(first)), 1)
        self.assertIsNotNone(first[0])
        self.assertNotEqual(first[0], second)
        self.assertEqual(len(self.waits), 3)

    def test_a_message_with_an_id_needs_no_key(self) -> None:
        with Server([None, (202, {}, RECEIPT)]) as server:
            self.client(server).send_message({**MAIL, "id": "order-1"})
            self.assertEqual(server.keys(), [None, None])

    def test_what_must_not_be_done_twice_is_not_repeated_after_a_loss(self) -> None:
        with Server([None, (201, {}, {})]) as server:
            with self.assertRaises(postway.NoAnswer) as caught:
                self.client(server).create_account({"id": "relay-1"})
            self.assertTrue(caught.exception.may_have_happened)
            self.assertEqual(len(server.requests), 1)

    def test_it_is_repeated_where_nothing_was_done(self) -> None:
        busy: Answer = (503, {"Retry-After": "7"}, refusal("unavailable"))
        with Server([busy, (429, {}, refusal("too_many_requests")), (201, {}, {"id": "relay-1"})]) as server:
            self.client(server).create_account({"id": "relay-1"})
            self.assertEqual(len(server.requests), 3)
        self.assertGreaterEqual(self.waits[0], 7)

    def test_a_wait_that_is_too_long_is_the_callers(self) -> None:
        with Server([(429, {"Retry-After": "3600"}, refusal("too_many_requests"))]) as server:
            with self.assertRaises(postway.TooManyRequests) as caught:
                self.client(server).send_message(MAIL)
            self.assertEqual(caught.exception.retry_after, 3600)
        self.assertEqual(self.waits, [])

    def test_a_gateway_that_stays_away_is_an_error_in_the_end(self) -> None:
        with Server([]) as server:
            url = server.url
        client = postway.Client(url, KEY, sleep=self.waits.append, retries=3)
        with self.assertRaises(postway.NoAnswer) as caught:
            client.create_account({"id": "relay-1"})
        self.assertFalse(caught.exception.may_have_happened)
        self.assertEqual(len(self.waits), 3)
        self.assertTrue(all(0.25 <= wait <= 4 for wait in self.waits), self.waits)

    def test_refusals_have_types_and_are_not_repeated(self) -> None:
        kinds = [(401, postway.Unauthorized), (403, postway.Forbidden), (404, postway.NotFound), (409, postway.Conflict)]
        for status, kind in [*kinds, (422, postway.ValidationFailed), (413, postway.ApiError)]:
            with Server([(status, {}, refusal("word"))]) as server:
                with self.assertRaises(kind) as caught:
                    self.client(server).send_message(MAIL)
                error = caught.exception
                self.assertEqual((error.status, error.code, error.request_id), (status, "word", "r-1"))
                self.assertEqual(error.details[0]["field"], "to")

    def test_redirects_are_not_followed(self) -> None:
        with Server([(302, {"Location": "http://127.0.0.1:9/"}, b"")]) as server:
            with self.assertRaises(postway.UnreadableAnswer):
                self.client(server).send_message(MAIL)

    def test_answers_of_something_else_are_not_believed(self) -> None:
        with Server([(200, {"Content-Type": "text/html"}, b"<html>")]) as server:
            with self.assertRaises(postway.UnreadableAnswer):
                self.client(server).get_message("order-1")

    def test_pages_are_gone_through(self) -> None:
        pages = [{"data": [{"id": "a"}], "next_cursor": "x"}, {"data": [], "next_cursor": "y"}, {"data": [{"id": "b"}]}]
        with Server([(200, {}, page) for page in pages]) as server:
            found = list(self.client(server).all_messages(status="sent", limit=1))
            self.assertEqual([one["id"] for one in found], ["a", "b"])
            paths = [path for _, path, _, _ in server.requests]
        self.assertEqual(paths[0], "/v1/messages?status=sent&limit=1")
        self.assertTrue(paths[1].endswith("&cursor=x") and paths[2].endswith("&cursor=y"), paths)

    def test_a_list_that_does_not_go_on_ends(self) -> None:
        page: Answer = (200, {}, {"data": [], "next_cursor": "x"})
        with Server([page, page]) as server:
            with self.assertRaises(postway.UnreadableAnswer):
                list(self.client(server).all_messages())

    def test_ids_stay_within_their_part_of_the_path(self) -> None:
        with Server([(200, {}, {"id": "x"})]) as server:
            client = self.client(server)
            client.get_message("a/../b?c#d")
            self.assertEqual(server.requests[0][1], "/v1/messages/a%2F..%2Fb%3Fc%23d")
            for wrong in ["", ".", ".."]:
                with self.assertRaises(ValueError):
                    client.get_message(wrong)

    def test_a_message_is_waited_for(self) -> None:
        states = ["ready", "sending", "sent"]
        with Server([(200, {}, {"status": state}) for state in states]) as server:
            self.assertEqual(self.client(server).wait_for_message("order-1")["status"], "sent")
        self.assertEqual(len(self.waits), 2)

    def test_raw_mail_and_answers_stay_bytes(self) -> None:
        mail = b"Subject: \xff\r\n\r\nHi\r\n"
        with Server([(202, {}, RECEIPT), (200, {}, mail)]) as server:
            client = self.client(server)
            client.send_raw_message(mail, id="raw-1", from_="shop@example.com")
            self.assertEqual(client.get_raw_message("raw-1"), mail)
            _, path, headers, body = server.requests[0]
        self.assertEqual((path, body), ("/v1/messages/raw?id=raw-1&from=shop%40example.com", mail))
        self.assertEqual(headers["Content-Type"], "message/rfc822")

    def test_the_key_is_not_shown(self) -> None:
        self.assertNotIn(KEY, repr(postway.Client("https://mail.example.com/gateway/", KEY)))
        for url in ["ftp://example.com", "http://user:secret@example.com", "http://example.com?x=1", "example.com"]:
            with self.assertRaises(ValueError):
                postway.Client(url, KEY)


class Webhooks(unittest.TestCase):
    secret = "whsec_" + base64.b64encode(b"a secret of some length").decode()
    body = b'{"type":"email.sent","data":{"id":"order-1"}}'

    def signed(self, **changed: str) -> Dict[str, str]:
        stamp = changed.pop("timestamp", "1900000000")
        digest = hmac.new(b"a secret of some length", f"id-1.{stamp}.".encode() + self.body, hashlib.sha256).digest()
        signature = "v1,bm90IG91cnM= v1," + base64.b64encode(digest).decode()
        return {"Webhook-Id": "id-1", "Webhook-Timestamp": stamp, "Webhook-Signature": signature, **changed}

    def verify(self, headers: Dict[str, str], body: Optional[bytes] = None, secret: Any = None, now: float = 1900000010) -> Any:
        return postway.verify_webhook(secret or self.secret, headers, body or self.body, now=now)

    def test_what_is_signed_is_believed(self) -> None:
        self.assertEqual(self.verify(self.signed())["type"], "email.sent")
        other = "whsec_" + base64.b64encode(b"another").decode()
        self.assertEqual(self.verify(self.signed(), secret=[other, self.secret])["type"], "email.sent")
        named: Callable[[str], str] = lambda name: name.lower().replace("webhook-", "svix-")
        self.verify({named(name): value for name, value in self.signed().items()})

    def test_nothing_else_is(self) -> None:
        wrong = [
            (self.signed(), b'{"type":"email.sent"}', None, 1900000010),
            (self.signed(), None, "whsec_" + base64.b64encode(b"another").decode(), 1900000010),
            (self.signed(), None, None, 1900000301),
            (self.signed(), None, None, 1899999699),
            (self.signed(timestamp="-1900000000"), None, None, 1900000010),
            (self.signed(**{"Webhook-Id": "id-2"}), None, None, 1900000010),
            (self.signed(**{"Webhook-Signature": "v1,"}), None, None, 1900000010),
            (self.signed(**{"Webhook-Signature": "v1,\u00e9"}), None, None, 1900000010),
            ({}, None, None, 1900000010),
        ]
        for headers, body, secret, now in wrong:
            with self.assertRaises(postway.InvalidWebhook):
                self.verify(headers, body, secret, now)

    def test_an_empty_secret_is_no_secret(self) -> None:
        for secret in ["whsec_", "whsec_***"]:
            with self.assertRaises(ValueError):
                self.verify(self.signed(), secret=secret)


if __name__ == "__main__":
    unittest.main()
