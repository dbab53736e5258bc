import os
import django
from django.conf import settings

url = os.environ["URL"]
settings.configure(
    SECRET_KEY="x",
    EMAIL_HOST=os.environ["HOST"], EMAIL_PORT=int(os.environ["PORT"]), EMAIL_HOST_USER="default", EMAIL_HOST_PASSWORD=os.environ["KEY"],
    ANYMAIL={
        "POSTMARK_SERVER_TOKEN": os.environ["KEY"], "POSTMARK_API_URL": url + "/compat/postmark/",
        "RESEND_API_KEY": os.environ["KEY"], "RESEND_API_URL": url + "/compat/resend/",
        "SENDGRID_API_KEY": os.environ["KEY"], "SENDGRID_API_URL": url + "/compat/sendgrid/v3/",
        "MAILGUN_API_KEY": os.environ["KEY"], "MAILGUN_API_URL": url + "/compat/mailgun/v3/",
    },
)
django.setup()
from django.core.mail import EmailMultiAlternatives, get_connection

backends = {
    "anymail postmark": "anymail.backends.postmark.EmailBackend",
    "anymail resend": "anymail.backends.resend.EmailBackend",
    "anymail sendgrid": "anymail.backends.sendgrid.EmailBackend",
    "anymail mailgun": "anymail.backends.mailgun.EmailBackend",
    "django smtp": "django.core.mail.backends.smtp.EmailBackend",
}
for subject, backend in backends.items():
    mail = EmailMultiAlternatives(subject, "Hello from Django.", "Shop <shop@example.com>", ["ada@example.net"], connection=get_connection(backend))
    mail.attach_alternative("<p>Hello from Django.</p>", "text/html")
    assert mail.send() == 1
    status = getattr(mail, "anymail_status", None)
    assert status is None or status.status == {"queued"} or status.status == {"sent"}, status
    print(subject, status and status.message_id)
