import os
from postmarker.core import PostmarkClient

# It knows its server as a host, not as a path.
client = PostmarkClient(server_token=os.environ["KEY"], root_api_url=os.environ["URL"])
sent = client.emails.send(From="shop@example.com", To="ada@example.net", Subject="postmarker send", TextBody="Hello from Postmarker.")
assert sent["ErrorCode"] == 0, sent
print(sent["Message"], sent["MessageID"])
