import { ServerClient } from "postmark";
const requestHost = `${process.env.URL}/compat/postmark`.replace("http://", "");
const client = new ServerClient(process.env.KEY, { requestHost, useHttps: false });
const sent = await client.sendEmail({
    From: "shop@example.com", To: "ada@example.net, bob@example.net", Subject: "postmark node", TextBody: "Hello from Postmark.",
});
if (sent.ErrorCode !== 0 || !sent.MessageID) throw new Error(JSON.stringify(sent));
console.log(sent.Message, sent.MessageID);
