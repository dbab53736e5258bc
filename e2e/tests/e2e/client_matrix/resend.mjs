import { Resend } from "resend";
const resend = new Resend(process.env.KEY, { baseUrl: `${process.env.URL}/compat/resend` });
const { data, error } = await resend.emails.send({
    from: "Shop <shop@example.com>", to: ["ada@example.net"], subject: "resend node", html: "<p>Hello from <b>Resend</b>.</p>",
});
if (error || !data.id) throw new Error(JSON.stringify(error));
console.log(data.id);
