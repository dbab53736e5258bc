// A program that the compiler must take, and lines that it must refuse.
import { Client, Conflict, verifyWebhook, type Message, type MessageRequest } from "postway";

const gateway = new Client({ url: "http://127.0.0.1:8520", key: "pw_key", retries: 2 });

export async function send(signal: AbortSignal): Promise<string[]> {
  const mail: MessageRequest = { from: "shop@example.com", to: ["ada@example.net"], text: "Hi", on_doubt: "hold", priority: "high" };
  // @ts-expect-error: a closed list has no such word
  const wrong: MessageRequest = { ...mail, on_doubt: "perhaps" };
  // @ts-expect-error: there is no such field
  await gateway.sendMessage({ ...mail, subjekt: "Hello" });
  // @ts-expect-error: there is no such filter
  await gateway.listMessages({ color: "red" });
  const receipt = await gateway.sendMessage(wrong, { idempotency_key: "k", signal });
  const ids: string[] = [receipt.id];
  for await (const one of gateway.allMessages({ status: "sent", limit: 10 })) ids.push(one.subject);
  const message: Message = await gateway.waitForMessage(receipt.id, { timeoutMs: 1000 });
  const raw: Uint8Array = await gateway.getRawMessage(message.uid);
  const event = verifyWebhook("whsec_eA==", new Headers(), raw);
  try {
    await gateway.deleteTenant("acme", { confirm: "acme" });
    // @ts-expect-error: it must be confirmed
    await gateway.deleteTenant("acme");
  } catch (error) {
    if (error instanceof Conflict) ids.push(error.code, ...error.details.map((one) => one.field));
  }
  return [...ids, event.type];
}
