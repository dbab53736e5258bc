import sendgrid from "@sendgrid/mail";
sendgrid.setApiKey(process.env.KEY);
sendgrid.client.setDefaultRequest("baseUrl", `${process.env.URL}/compat/sendgrid`);
const [answer] = await sendgrid.send({
    to: ["ada@example.net", "Bob <bob@example.net>"], from: "Shop <shop@example.com>", subject: "sendgrid node",
    text: "Hello from SendGrid.", html: "<p>Hello from <b>SendGrid</b>.</p>",
});
if (!answer.headers["x-message-id"]) throw new Error("there is no id");
console.log(answer.statusCode);
