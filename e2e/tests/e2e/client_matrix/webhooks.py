import json, os
import standardwebhooks, svix

call = json.loads(os.environ["CALL"])
body, headers = call["body"], call["headers"]
secret = os.environ["SECRET"]
verifiers = {"standardwebhooks": standardwebhooks.Webhook(secret), "svix": svix.Webhook(secret)}
refused = {standardwebhooks.webhooks.WebhookVerificationError, svix.webhooks.WebhookVerificationError}
for name, verifier in verifiers.items():
    verifier.verify(body, headers)
    try:
        verifier.verify(body.replace("email.sent", "email.lost"), headers)
    except tuple(refused):
        continue
    raise SystemExit(f"{name} takes another body")
# As Resend's guide reads them.
named = {name: value for name, value in headers.items() if name.startswith("svix-")}
verifiers["svix"].verify(body, named)
print("verified")
