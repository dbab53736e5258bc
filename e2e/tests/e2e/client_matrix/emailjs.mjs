import { SMTPClient } from "emailjs";
const { HOST, PORT, KEY } = process.env;
const client = new SMTPClient({ host: HOST, port: Number(PORT), user: "default", password: KEY, ssl: false, tls: false });
await client.sendAsync({
    from: "Shop <shop@example.com>", to: "Ada <ada@example.net>, bob@example.net", subject: "emailjs send",
    text: "Hello from emailjs.", attachment: [{ data: "<p>Hello from emailjs.</p>", alternative: true }],
});
