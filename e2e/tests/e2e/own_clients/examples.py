"""The Flask application and the Django backend of the examples, used as their frameworks use them. Prints one JSON object."""

import base64
import hashlib
import hmac
import json
import os
import sys
import time

SECRET = b"a secret of some length"
os.environ["WEBHOOK_SECRET"] = "whsec_" + base64.b64encode(SECRET).decode()

import flask_app

told = {}
browser = flask_app.app.test_client()
told["ordered"] = [browser.post("/orders/7", data={"email": "ada@example.net"}).status_code for _ in range(2)]
refused = browser.post("/orders/8", data={"email": "nobody"})
told["refused"] = [refused.status_code, refused.json["wrong"]]
body = b'{"type":"email.sent","timestamp":"2030-01-01T00:00:00Z","data":{"id":"order-7"}}'
stamp = str(int(time.time()))
digest = base64.b64encode(hmac.new(SECRET, f"id-1.{stamp}.".encode() + body, hashlib.sha256).digest()).decode()
headers = {"webhook-id": "id-1", "webhook-timestamp": stamp, "webhook-signature": "v1," + digest}
told["hooks"] = [browser.post("/hooks/mail", data=body, headers=headers).status_code]
told["hooks"].append(browser.post("/hooks/mail", data=body + b" ", headers=headers).status_code)
told["seen"] = sorted(flask_app.seen)

from django.conf import settings
from django.core import mail

settings.configure(EMAIL_BACKEND="django_backend.PostwayBackend", DEFAULT_FROM_EMAIL="shop@example.com")
message = mail.EmailMultiAlternatives("Grüße", "Hi", to=["Ada <ada@example.net>"], bcc=["bob@example.net"])
message.attach_alternative("<p>Hi</p>", "text/html")
message.attach("a.txt", "hello", "text/plain")
told["django"] = [message.send(), mail.send_mail("Plain", "Hi", None, ["ada@example.net"])]
json.dump(told, sys.stdout)
