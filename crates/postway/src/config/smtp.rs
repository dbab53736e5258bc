//! `[smtp]`: our name towards relays, and the submission listener.

use std::net::SocketAddr;

use super::layers::Layers;
use super::listen_address;

/// What concerns SMTP on both sides.
#[derive(Clone, Debug)]
pub struct Smtp {
    /// Where the submission listener listens; none: it is off.
    pub listen: Option<SocketAddr>,
    /// The name given in EHLO.
    pub ehlo_name: String,
}

impl Smtp {
    pub(super) fn read(layers: &mut Layers) -> Option<Self> {
        let listen = layers.take_optional("smtp.listen", |text| match text {
            "off" => Ok(None),
            _ => listen_address(text).map(Some),
        });
        let host = host_name();
        let ehlo_name = layers.take("smtp.ehlo_name", host.clone(), &host, |text| match is_host(text) {
            true => Ok(text.to_owned()),
            false => {
                Err("must be a host name or an address literal, such as mail.example.com or [192.0.2.1]"
                    .into())
            }
        });
        Some(Self { listen: listen?.flatten(), ehlo_name: ehlo_name? })
    }
}

fn is_host(text: &str) -> bool {
    let allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"-._:[]".contains(&byte);
    (1..=255).contains(&text.len()) && text.bytes().all(allowed)
}

/// This machine's name as the system has it; `localhost` where it has none that SMTP could carry.
fn host_name() -> String {
    ["/proc/sys/kernel/hostname", "/etc/hostname"]
        .iter()
        .filter_map(|path| std::fs::read_to_string(path).ok())
        .map(|name| name.trim().to_owned())
        .find(|name| is_host(name))
        .unwrap_or_else(|| "localhost".to_owned())
}
