import os, resend

resend.api_key, resend.api_url = os.environ["KEY"], os.environ["URL"] + "/compat/resend"
sent = resend.Emails.send({
    "from": "Shop <shop@example.com>", "to": ["ada@example.net"], "subject": "resend python",
    "html": "<p>Hello from <b>Resend</b>.</p>",
})
print(sent["id"])
