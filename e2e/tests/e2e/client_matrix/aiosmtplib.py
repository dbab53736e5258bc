import asyncio, os, aiosmtplib
from email.message import EmailMessage

message = EmailMessage()
message["From"], message["To"], message["Subject"] = "shop@example.com", "ada@example.net", "aiosmtplib send"
message.set_content("Hello from aiosmtplib.")
account = dict(hostname=os.environ["HOST"], port=int(os.environ["PORT"]), username="apikey", password=os.environ["KEY"])
errors, reply = asyncio.run(aiosmtplib.send(message, **account))
assert errors == {}, errors
print(reply)
