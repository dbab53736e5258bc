import { Webhook as Standard } from "standardwebhooks";
import { Webhook as Svix } from "svix";

const { body, headers } = JSON.parse(process.env.CALL);
for (const [name, verifier] of [["standardwebhooks", new Standard(process.env.SECRET)], ["svix", new Svix(process.env.SECRET)]]) {
    verifier.verify(body, headers);
    let taken = true;
    try { verifier.verify(body.replace("email.sent", "email.lost"), headers); } catch { taken = false; }
    if (taken) throw new Error(`${name} takes another body`);
}
// As the guide of Resend reads them.
const named = Object.fromEntries(Object.entries(headers).filter(([name]) => name.startsWith("svix-")));
new Svix(process.env.SECRET).verify(body, named);
console.log("verified");
