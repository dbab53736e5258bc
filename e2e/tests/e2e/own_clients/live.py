"""What a program does with the Python client, against a real gateway. Prints one JSON object."""

import json
import sys
from typing import Any, Dict, List

import postway

gateway = postway.Client()
told: Dict[str, Any] = {}
mail: postway.types.MessageRequest = {"from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": "Hello", "text": "Hi"}
receipt = gateway.send_message({**mail, "id": "python-1"})
assert gateway.send_message({**mail, "id": "python-1"}) == receipt
told["sent"] = gateway.wait_for_message("python-1")["status"]
told["raw"] = gateway.get_raw_message("python-1").decode()
by_itself = gateway.send_message(mail)
told["own"] = by_itself["id"] == by_itself["uid"]
assert gateway.send_message(mail, idempotency_key="k-1") == gateway.send_message(mail, idempotency_key="k-1")
messages: List[postway.types.MessageRequest] = [{"id": f"python-b{number}", "tags": ["b"]} for number in range(7)]
batch = gateway.send_batch({"defaults": mail, "messages": [*messages, {"to": "nobody"}]})
told["batch"] = [batch["accepted"], batch["rejected"]]
told["pages"] = sorted(message["id"] for message in gateway.all_messages(tag="b", limit=2))
ready = b"From: shop@example.com\r\nTo: ada@example.net\r\nSubject: Ready-made\r\n\r\nHi\r\n"
told["ready"] = gateway.send_raw_message(ready, id="python-raw", to=["ada@example.net", "bob@example.net"], tag=["one", "two"])["id"]
told["recipients"] = len(gateway.get_message("python-raw")["recipients"])
for call, kind in [
    (lambda: gateway.get_message("none"), postway.NotFound),
    (lambda: gateway.cancel_message("python-1"), postway.Conflict),
    (lambda: gateway.send_message({**mail, "id": "python-1", "subject": "Other"}), postway.Conflict),
    (lambda: gateway.send_message({"from": "shop@example.com", "to": "nobody", "text": "Hi"}), postway.ValidationFailed),
    (lambda: postway.Client(key="wrong-key-of-nobody-at-all-anywhere").get_stats(), postway.Unauthorized),
]:
    try:
        call()
    except kind as refusal:
        told.setdefault("refused", []).append(refusal.code)
for entry in gateway.follow_events(limit=1):
    if entry["type"] == "email.sent":
        message = entry.get("message")
        told["feed"] = message["id"] if message else None
        break
template = gateway.create_template({"name": "python", "subject": "Hi {{ name }}", "html": "<p>Hi</p>", "sample": {"name": "Ada"}})
told["template"] = [template["name"], [one["name"] for one in gateway.all_templates()]]
gateway.delete_template("python")
told["suppressed"] = gateway.import_suppressions(b"gone@example.net\n")["imported"]
told["exported"] = gateway.export_suppressions()
told["stats"] = sum(gateway.get_stats()["by_status"].values()) > 0
told["unknown"] = gateway.call("GET", "/v1/messages", query={"limit": 1})["data"][0]["id"] is not None
gateway.close()
json.dump(told, sys.stdout)
