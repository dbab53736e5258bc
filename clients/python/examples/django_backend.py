"""An email backend for Django: everything that `django.core.mail` sends goes through the gateway.

    EMAIL_BACKEND = "django_backend.PostwayBackend"
    POSTWAY = {"url": "http://127.0.0.1:8520", "key": "pw_…"}      # or POSTWAY_URL and POSTWAY_API_KEY
"""

from django.conf import settings
from django.core.mail.backends.base import BaseEmailBackend

from postway import Client, PostwayError


class PostwayBackend(BaseEmailBackend):
    def __init__(self, fail_silently=False, **options):
        super().__init__(fail_silently=fail_silently)
        self.gateway = Client(**getattr(settings, "POSTWAY", {}))

    def send_messages(self, email_messages):
        sent = 0
        for message in email_messages:
            recipients = message.recipients()
            if not recipients:
                continue
            try:
                # Django composes the mail; `to` carries those whom its header does not name.
                self.gateway.send_raw_message(message.message().as_bytes(linesep="\r\n"), to=recipients)
                sent += 1
            except PostwayError:
                if not self.fail_silently:
                    raise
        return sent

    def close(self):
        self.gateway.close()
