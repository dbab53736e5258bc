import FormData from "form-data";
import Mailgun from "mailgun.js";
const client = new Mailgun(FormData).client({ username: "api", key: process.env.KEY, url: `${process.env.URL}/compat/mailgun` });
const answer = await client.messages.create("mg.example.com", {
    from: "Shop <shop@example.com>", to: ["ada@example.net", "Bob <bob@example.net>"], subject: "mailgun node",
    text: "Hello from Mailgun.", html: "<p>Hello from <b>Mailgun</b>.</p>",
});
if (!answer.id) throw new Error("there is no id");
console.log(answer.message);
