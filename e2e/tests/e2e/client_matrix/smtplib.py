import os, smtplib
from email.message import EmailMessage

def mail(subject):
    message = EmailMessage()
    message["From"], message["To"], message["Subject"] = "Shop <shop@example.com>", "Ada <ada@example.net>", subject
    message.set_content("Hello from smtplib.\n.\n")
    return message

with smtplib.SMTP(os.environ["HOST"], int(os.environ["PORT"])) as smtp:
    smtp.login("default", os.environ["KEY"])
    assert smtp.send_message(mail("smtplib send_message")) == {}
    # What most scripts do: the bytes of a message have bare LFs.
    by_hand = mail("smtplib sendmail").as_bytes()
    assert b"\r" not in by_hand
    assert smtp.sendmail("shop@example.com", ["ada@example.net", "bob@example.net"], by_hand) == {}
    # And the reply, which programs read the queue's id from.
    smtp.mail("shop@example.com"); smtp.rcpt("ada@example.net")
    print(*smtp.data(mail("smtplib data").as_bytes()))
