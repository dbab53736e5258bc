import os
from mailgun.client import Client

client = Client(auth=("api", os.environ["KEY"]), api_url=os.environ["URL"] + "/compat/mailgun")
answer = client.messages.create(domain="mg.example.com", data={
    "from": "shop@example.com", "to": "ada@example.net", "subject": "mailgun python", "text": "Hello from Mailgun.",
})
print(answer.json()["message"])
