// What can be said about a webhook.

const EVENTS = [
  ..."accepted deferred sent failed recipient_failed invalid in_doubt resent resolved replayed cancelled".split(" "),
  ..."expired suppressed delivered delayed bounced complained auto_replied unproven_report received opened clicked".split(" "),
];

export const webhookFields = () => [
  {
    name: "url",
    label: "Address to call",
    required: true,
    wide: true,
    placeholder: "https://app.example.com/hooks/mail",
  },
  {
    name: "events",
    label: "Events",
    kind: "checks",
    options: [["*", "all of them"], ...EVENTS.map((name) => [`email.${name}`, name.replaceAll("_", " ")])],
  },
  { name: "form", label: "In whose words", kind: "choice", options: ["postway", "resend"] },
  { name: "description", label: "What it is for", wide: true },
  { name: "active", label: "It is called", kind: "check" },
];
