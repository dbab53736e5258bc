import os
from sendgrid import SendGridAPIClient
from sendgrid.helpers.mail import Mail

client = SendGridAPIClient(os.environ["KEY"], host=os.environ["URL"] + "/compat/sendgrid")
mail = Mail(from_email="shop@example.com", to_emails="ada@example.net", subject="sendgrid python", plain_text_content="Hello from SendGrid.")
answer = client.send(mail)
assert answer.headers["X-Message-Id"]
print(answer.status_code)
