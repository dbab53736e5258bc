"""A template, a batch that is held back, and its release."""

from postway import call

call("PUT", "/v1/templates/news", {
    "subject": "News for {{ name }}",
    "html": "<p>Hello {{ name }}, there is news.</p>",
    "sample": {"name": "Ada"},
})
preview = call("POST", "/v1/templates/news/preview", {"variables": {"name": "Grace"}})
print(preview["subject"], preview["warnings"])

call("POST", "/v1/batches/news-2030-01/suspend")  # nothing of it leaves until somebody has looked
readers = {"ada@example.net": "Ada", "grace@example.net": "Grace", "not an address": "Nobody"}
answer = call("POST", "/v1/messages/batch", {
    "defaults": {"from": "News <news@example.com>", "batch": "news-2030-01", "priority": "low"},
    "messages": [
        {"id": f"news-2030-01-{number}", "to": address, "template": {"name": "news", "variables": {"name": name}}}
        for number, (address, name) in enumerate(readers.items())
    ],
})
print(answer["accepted"], "accepted,", answer["rejected"], "rejected")
for result in answer["results"]:
    if "error" in result:
        print(result["id"], result["error"]["message"])  # a refused one stops nobody

explained = call("GET", "/v1/messages/news-2030-01-0/explain")
print(explained["status"], [gate["gate"] for gate in explained["gates"]])
call("POST", "/v1/batches/news-2030-01/activate")
