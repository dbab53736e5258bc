//! lettre, with which programs in Rust send: as its page shows it, and with both forms of the text.

use ::lettre::{
    Message, SmtpTransport, Transport,
    message::{MultiPart, header::ContentType},
    transport::smtp::{authentication::Credentials, response::Response},
};

/// Sends two mails over one transport; what the door said of them.
pub fn send(host: &str, port: u16, key: &str) -> anyhow::Result<String> {
    let account = Credentials::new("default".to_owned(), key.to_owned());
    let door = SmtpTransport::builder_dangerous(host).port(port).credentials(account).build();
    let plain = Message::builder()
        .from("Shop <shop@example.com>".parse()?)
        .to("Ada <ada@example.net>".parse()?)
        .bcc("bob@example.net".parse()?)
        .subject("lettre plain")
        .header(ContentType::TEXT_PLAIN)
        .body("Hello from lettre.".to_owned())?;
    let (text, html) = ("Hello from lettre.".to_owned(), "<p>Hello from lettre.</p>".to_owned());
    let both = Message::builder()
        .from("shop@example.com".parse()?)
        .to("ada@example.net".parse()?)
        .subject("lettre Grüße")
        .multipart(MultiPart::alternative_plain_html(text, html))?;
    let said = |reply: Response| reply.message().collect::<Vec<_>>().join(" ");
    Ok([said(door.send(&plain)?), said(door.send(&both)?)].join("\n"))
}
