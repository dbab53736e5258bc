"""Receives webhooks: believes only what is signed, deals with each event once."""

import base64
import hashlib
import hmac
import http.server
import json
import os
import time

SECRET = os.environ["WEBHOOK_SECRET"]  # whsec_…, as `POST /v1/webhooks` showed it
SEEN = set()  # in your program: a table with a unique key


def is_ours(secret, headers, body):
    """`body` as it came: bytes, before any JSON is parsed."""
    stamp = headers.get("webhook-timestamp", "")
    if not stamp.isdigit() or abs(time.time() - int(stamp)) > 300:  # a call that somebody recorded
        return False
    key = base64.b64decode(secret.removeprefix("whsec_"))
    signed = f"{headers.get('webhook-id')}.{stamp}.".encode() + body
    ours = "v1," + base64.b64encode(hmac.new(key, signed, hashlib.sha256).digest()).decode()
    given = headers.get("webhook-signature", "").split(" ")  # one for each secret while they rotate
    return any(hmac.compare_digest(ours, one) for one in given)


class Receiver(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        body = self.rfile.read(int(self.headers["Content-Length"]))
        if not is_ours(SECRET, self.headers, body):
            return self.answer(401)
        if self.headers["webhook-id"] not in SEEN:  # a call is repeated when its answer was lost
            event = json.loads(body)
            print(event["type"], event["data"].get("id", ""), flush=True)
            SEEN.add(self.headers["webhook-id"])
        self.answer(204)

    def answer(self, status):
        self.send_response(status)
        self.end_headers()

    def log_message(self, *_):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", int(os.environ.get("PORT", "8600"))), Receiver)
print("listening on", server.server_port, flush=True)
server.serve_forever()
