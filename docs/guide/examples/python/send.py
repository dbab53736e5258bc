"""Hands over a mail, repeats itself, and waits for the outcome."""

import time

from postway import Refused, call

mail = {
    "id": "order-1001",
    "from": "Shop <shop@example.com>",
    "to": ["Ada <ada@example.net>"],
    "subject": "Your order",
    "text": "Thank you.",
    "tags": ["receipt"],
}
accepted = call("POST", "/v1/messages", mail)  # it is on disk now
assert call("POST", "/v1/messages", mail) == accepted  # the same id and content: the same message

try:
    call("POST", "/v1/messages", {**mail, "subject": "Another order"})
except Refused as refusal:
    print(refusal.status, refusal.code)  # 409 conflict: that id stands for something else

while True:
    message = call("GET", "/v1/messages/order-1001")
    if message["status"] in ("sent", "captured", "failed", "invalid", "suppressed", "cancelled", "expired"):
        break
    print([gate["reason"] for gate in call("GET", "/v1/messages/order-1001/explain")["gates"]])
    time.sleep(0.5)
print(message["id"], message["status"], [event["type"] for event in message["events"]])
