//! The table: each program, what it is run by, what it says, and what must come of it.

use postway_testkit::ClientScript;

use super::lettre;
use ClientRun::{Library, Script};
use ClientScript::{Node, Python, RootShell, Shell};

/// A program, and what it does.
pub struct ClientProgram {
    pub name: &'static str,
    pub run: ClientRun,
    /// What it prints of the reply that it got.
    pub prints: &'static str,
    pub mails: &'static [ClientMail],
}

/// How it is run.
#[derive(Clone, Copy)]
pub enum ClientRun {
    /// By what its script is written for.
    Script(ClientScript),
    /// Here: it is a library for Rust. It gets host, port and key of the SMTP door; what it says of the
    /// reply.
    Library(fn(&str, u16, &str) -> anyhow::Result<String>),
}

/// A mail that must arrive.
pub struct ClientMail {
    pub subject: &'static str,
    pub recipients: &'static [&'static str],
    /// What its text part says.
    pub text: &'static str,
    pub keeps: &'static [KeptPart],
}

/// What must be left of a mail besides its text.
#[derive(Clone, Copy, Debug)]
pub enum KeptPart {
    /// The Message-ID that the program gave it.
    MessageId(&'static str),
    /// A DKIM signature that verifies.
    Signature,
    /// A part of this type.
    Part(&'static str),
    /// An HTML part that says this.
    Html(&'static str),
    /// A header that says this.
    Header(&'static str, &'static str),
}

const ADA: &[&str] = &["ada@example.net"];
const ADA_AND_BOB: &[&str] = &["ada@example.net", "bob@example.net"];
/// As Postfix says it, which is where programs look for the queue's id.
const QUEUED: &str = "Ok: queued as ";

const fn mail(
    subject: &'static str,
    recipients: &'static [&'static str],
    text: &'static str,
    keeps: &'static [KeptPart],
) -> ClientMail {
    ClientMail { subject, recipients, text, keeps }
}

pub const PROGRAMS: &[ClientProgram] = &[
    ClientProgram {
        name: "smtplib",
        run: Script(Python(include_str!("smtplib.py"))),
        prints: QUEUED,
        mails: &[
            mail("smtplib send_message", ADA, "Hello from smtplib.", &[]),
            mail("smtplib sendmail", ADA_AND_BOB, "Hello from smtplib.", &[]),
            mail("smtplib data", ADA, "Hello from smtplib.", &[]),
        ],
    },
    ClientProgram {
        name: "aiosmtplib",
        run: Script(Python(include_str!("aiosmtplib.py"))),
        prints: QUEUED,
        mails: &[mail("aiosmtplib send", ADA, "Hello from aiosmtplib.", &[])],
    },
    ClientProgram {
        name: "nodemailer",
        run: Script(Node(include_str!("nodemailer.mjs"))),
        prints: QUEUED,
        mails: &[
            mail(
                "nodemailer plain",
                &["ada@example.net", "bob@example.net", "carl@example.net"],
                "Hello from nodemailer.",
                &[],
            ),
            mail("nodemailer ical", ADA, "Hello from nodemailer.", &[KeptPart::Part("text/calendar")]),
            mail(
                "nodemailer amp",
                ADA,
                "Hello from nodemailer.",
                &[KeptPart::Part("text/x-amp-html"), KeptPart::Html("Hello from nodemailer.")],
            ),
            mail(
                "nodemailer dkim",
                ADA,
                "Hello from nodemailer.",
                &[
                    KeptPart::Signature,
                    KeptPart::MessageId("ticket-77.1@desk.example.com"),
                    KeptPart::Html("Grüße"),
                ],
            ),
            mail("nodemailer pool 1", ADA, "Hello from nodemailer.", &[]),
            mail("nodemailer pool 2", ADA, "Hello from nodemailer.", &[]),
            mail("nodemailer pool 3", ADA, "Hello from nodemailer.", &[]),
            mail("nodemailer pool 4", ADA, "Hello from nodemailer.", &[]),
            mail("nodemailer pool 5", ADA, "Hello from nodemailer.", &[]),
        ],
    },
    ClientProgram {
        name: "emailjs",
        run: Script(Node(include_str!("emailjs.mjs"))),
        prints: "",
        mails: &[mail(
            "emailjs send",
            ADA_AND_BOB,
            "Hello from emailjs.",
            &[KeptPart::Html("<p>Hello from emailjs.</p>")],
        )],
    },
    ClientProgram {
        name: "lettre",
        run: Library(lettre::send),
        prints: QUEUED,
        mails: &[
            mail("lettre plain", ADA_AND_BOB, "Hello from lettre.", &[]),
            mail("lettre Grüße", ADA, "Hello from lettre.", &[KeptPart::Html("<p>Hello from lettre.</p>")]),
        ],
    },
    ClientProgram {
        name: "swaks",
        run: Script(Shell(include_str!("swaks.sh"))),
        prints: QUEUED,
        mails: &[mail("swaks default", ADA, "This is a test mailing", &[])],
    },
    ClientProgram {
        name: "curl",
        run: Script(Shell(include_str!("curl.sh"))),
        prints: QUEUED,
        mails: &[mail("curl upload", ADA, "Hello from curl.", &[])],
    },
    ClientProgram {
        name: "msmtp",
        run: Script(Shell(include_str!("msmtp.sh"))),
        prints: QUEUED,
        mails: &[
            mail("msmtp cron", ADA, "Hello from cron.", &[]),
            mail("msmtp monitor", ADA, "A disk is full.", &[]),
            mail("msmtp scram", ADA, "Hello by SCRAM.", &[]),
        ],
    },
    ClientProgram {
        name: "s-nail",
        run: Script(Shell(include_str!("s-nail.sh"))),
        prints: "",
        mails: &[mail("s-nail default", ADA, "Hello from s-nail.", &[])],
    },
    ClientProgram {
        name: "Postfix",
        run: Script(RootShell(include_str!("postfix.sh"))),
        prints: QUEUED,
        mails: &[mail(
            "postfix list",
            ADA_AND_BOB,
            "Hello from a list.",
            &[
                KeptPart::MessageId("kept-by-postfix@example.com"),
                KeptPart::Header("From", "list@example.com"),
            ],
        )],
    },
    ClientProgram {
        name: "Exim",
        run: Script(RootShell(include_str!("exim.sh"))),
        prints: QUEUED,
        mails: &[mail("exim smarthost", ADA, "Hello from Exim.", &[])],
    },
    ClientProgram {
        name: "Django, with anymail and without",
        run: Script(Python(include_str!("anymail.py"))),
        prints: "anymail resend ",
        mails: &[
            mail(
                "anymail postmark",
                ADA,
                "Hello from Django.",
                &[KeptPart::Html("<p>Hello from Django.</p>")],
            ),
            mail("anymail resend", ADA, "Hello from Django.", &[KeptPart::Html("<p>Hello from Django.</p>")]),
            mail(
                "anymail sendgrid",
                ADA,
                "Hello from Django.",
                &[KeptPart::Html("<p>Hello from Django.</p>")],
            ),
            mail(
                "anymail mailgun",
                ADA,
                "Hello from Django.",
                &[KeptPart::Html("<p>Hello from Django.</p>")],
            ),
            mail("django smtp", ADA, "Hello from Django.", &[KeptPart::Html("<p>Hello from Django.</p>")]),
        ],
    },
    ClientProgram {
        name: "resend for Node",
        run: Script(Node(include_str!("resend.mjs"))),
        prints: "",
        // Resend makes the text of the html.
        mails: &[mail(
            "resend node",
            ADA,
            "Hello from Resend.",
            &[KeptPart::Part("text/plain"), KeptPart::Html("<b>Resend</b>")],
        )],
    },
    ClientProgram {
        name: "resend for Python",
        run: Script(Python(include_str!("resend.py"))),
        prints: "",
        mails: &[mail(
            "resend python",
            ADA,
            "Hello from Resend.",
            &[KeptPart::Part("text/plain"), KeptPart::Html("<b>Resend</b>")],
        )],
    },
    ClientProgram {
        name: "postmark for Node",
        run: Script(Node(include_str!("postmark.mjs"))),
        prints: "OK",
        mails: &[mail("postmark node", ADA_AND_BOB, "Hello from Postmark.", &[])],
    },
    ClientProgram {
        name: "postmarker",
        run: Script(Python(include_str!("postmarker.py"))),
        prints: "OK",
        mails: &[mail("postmarker send", ADA, "Hello from Postmarker.", &[])],
    },
    ClientProgram {
        name: "SendGrid for Node",
        run: Script(Node(include_str!("sendgrid.mjs"))),
        prints: "202",
        mails: &[mail(
            "sendgrid node",
            ADA_AND_BOB,
            "Hello from SendGrid.",
            &[KeptPart::Html("<b>SendGrid</b>")],
        )],
    },
    ClientProgram {
        name: "SendGrid for Python",
        run: Script(Python(include_str!("sendgrid.py"))),
        prints: "202",
        mails: &[mail("sendgrid python", ADA, "Hello from SendGrid.", &[])],
    },
    ClientProgram {
        name: "Mailgun for Node",
        run: Script(Node(include_str!("mailgun.mjs"))),
        prints: "Queued",
        mails: &[mail(
            "mailgun node",
            ADA_AND_BOB,
            "Hello from Mailgun.",
            &[KeptPart::Html("<b>Mailgun</b>")],
        )],
    },
    ClientProgram {
        name: "Mailgun for Python",
        run: Script(Python(include_str!("mailgun.py"))),
        prints: "Queued",
        mails: &[mail("mailgun python", ADA, "Hello from Mailgun.", &[])],
    },
];
