import nodemailer from "nodemailer";
const { HOST, PORT, KEY, DKIM_KEY } = process.env;
const server = { host: HOST, port: Number(PORT), auth: { user: "default", pass: KEY } };
const mail = (subject, more) => ({ from: "Shop <shop@example.com>", to: "Ada <ada@example.net>", subject, text: "Hello from nodemailer.", ...more });

const one = nodemailer.createTransport(server);
console.log((await one.sendMail(mail("nodemailer plain", { cc: "bob@example.net", bcc: "carl@example.net" }))).response);
const invitation = "BEGIN:VCALENDAR\r\nMETHOD:REQUEST\r\nVERSION:2.0\r\nPRODID:-//x//EN\r\nBEGIN:VEVENT\r\nUID:1\r\nDTSTART:20300101T090000Z\r\nEND:VEVENT\r\nEND:VCALENDAR\r\n";
await one.sendMail(mail("nodemailer ical", { icalEvent: { method: "REQUEST", content: invitation } }));
await one.sendMail(mail("nodemailer amp", { html: "<p>Hello from nodemailer.</p>", amp: "<!doctype html><html ⚡4email><body>Hello</body></html>" }));

const dkim = { domainName: "example.com", keySelector: "matrix", privateKey: DKIM_KEY };
const signing = nodemailer.createTransport({ ...server, dkim });
await signing.sendMail(mail("nodemailer dkim", { messageId: "<ticket-77.1@desk.example.com>", html: "<p>Grüße</p>" }));

const pool = nodemailer.createTransport({ ...server, pool: true, maxConnections: 2 });
await Promise.all([1, 2, 3, 4, 5].map((number) => pool.sendMail(mail(`nodemailer pool ${number}`))));
pool.close();
