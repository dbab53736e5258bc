"""A shop in Flask: mails an order's receipt, and hears what became of it.

    pip install flask postway
    POSTWAY_API_KEY=pw_… WEBHOOK_SECRET=whsec_… flask --app flask_app run
"""

import os

from flask import Flask, request

from postway import Client, InvalidWebhook, ValidationFailed, verify_webhook

app = Flask(__name__)
gateway = Client()
seen = set()  # in your program: a table with a unique key


@app.post("/orders/<int:number>")
def order(number):
    try:
        # The id makes a repeat harmless: however often the browser asks, one mail is sent.
        receipt = gateway.send_message(
            {
                "id": f"order-{number}",
                "from": "Shop <shop@example.com>",
                "to": request.form["email"],
                "subject": f"Your order {number}",
                "text": "Thank you.",
            }
        )
    except ValidationFailed as refusal:
        return {"wrong": [one["field"] for one in refusal.details]}, 422
    return {"mail": receipt["id"]}, 202


@app.post("/hooks/mail")
def hook():
    try:
        event = verify_webhook(os.environ["WEBHOOK_SECRET"], request.headers, request.get_data())
    except InvalidWebhook:
        return "", 401
    if request.headers["webhook-id"] not in seen:  # a call is repeated when its answer was lost
        seen.add(request.headers["webhook-id"])
        app.logger.info("%s %s", event["type"], event["data"].get("id"))
    return "", 204
