//! A name server for one zone: it answers over UDP with the records that were set; any other name does not exist.

use std::{
    collections::BTreeMap,
    net::{Ipv4Addr, SocketAddr},
    sync::{Arc, Mutex, PoisonError},
};

use tokio::{net::UdpSocket, task::JoinHandle};

/// The largest query that is read.
const QUERY_BYTES_MAX: usize = 1_500;
/// Types and class of records (RFC 1035).
const A: u16 = 1;
const MX: u16 = 15;
const TXT: u16 = 16;
const IN: u16 = 1;

/// The data of the records of each name and type.
type Zone = BTreeMap<(String, u16), Vec<Vec<u8>>>;

/// A running name server. It ends when it is dropped.
#[derive(Debug)]
pub struct NameServer {
    address: SocketAddr,
    zone: Arc<Mutex<Zone>>,
    task: JoinHandle<()>,
}

impl NameServer {
    /// Starts one with an empty zone.
    pub async fn start() -> std::io::Result<Self> {
        let socket = UdpSocket::bind(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let address = socket.local_addr()?;
        let zone = Arc::<Mutex<Zone>>::default();
        let task = tokio::spawn(serve(socket, zone.clone()));
        Ok(Self { address, zone, task })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Sets the TXT record of a name, in place of the one before.
    pub fn txt(&self, name: &str, value: &str) {
        let strings = value.as_bytes().chunks(255);
        let data = strings.flat_map(|part| [&[part.len() as u8][..], part].concat()).collect();
        self.set(name, TXT, data);
    }

    /// Sets the MX record of a name.
    pub fn mx(&self, name: &str, host: &str) {
        self.set(name, MX, [&10_u16.to_be_bytes()[..], &wire_name(host)].concat());
    }

    /// Sets the address of a name.
    pub fn a(&self, name: &str, address: Ipv4Addr) {
        self.set(name, A, address.octets().to_vec());
    }

    fn set(&self, name: &str, kind: u16, data: Vec<u8>) {
        let mut zone = self.zone.lock().unwrap_or_else(PoisonError::into_inner);
        zone.insert((name.to_lowercase(), kind), vec![data]);
    }
}

impl Drop for NameServer {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn serve(socket: UdpSocket, zone: Arc<Mutex<Zone>>) {
    let mut buffer = [0; QUERY_BYTES_MAX];
    while let Ok((length, client)) = socket.recv_from(&mut buffer).await {
        let answer = {
            let zone = zone.lock().unwrap_or_else(PoisonError::into_inner);
            answer(&buffer[..length], &zone)
        };
        if let Some(answer) = answer {
            let _ = socket.send_to(&answer, client).await;
        }
    }
}

/// The response to a query with one question (RFC 1035, 4.1); nothing for what is no query.
fn answer(query: &[u8], zone: &Zone) -> Option<Vec<u8>> {
    let (mut labels, mut at) = (Vec::new(), 12);
    loop {
        let length = usize::from(*query.get(at)?);
        at += 1;
        if length == 0 {
            break;
        }
        labels.push(String::from_utf8_lossy(query.get(at..at + length)?).to_lowercase());
        at += length;
    }
    let name = labels.join(".");
    let kind = u16::from_be_bytes([*query.get(at)?, *query.get(at + 1)?]);
    let none = Vec::new();
    let found = zone.get(&(name.clone(), kind)).unwrap_or(&none);
    let exists = zone.keys().any(|(known, _)| *known == name);
    let code = if exists { 0 } else { 3 };
    let mut out = query.get(..2)?.to_vec();
    // A response with recursion, and what came of it.
    out.extend([0x81, 0x80 | code, 0, 1, 0, found.len() as u8, 0, 0, 0, 0]);
    out.extend(query.get(12..at + 4)?);
    for data in found {
        // The name of the question, its type and class, no time to live.
        out.extend([0xc0, 12]);
        out.extend(kind.to_be_bytes());
        out.extend(IN.to_be_bytes());
        out.extend([0; 4]);
        out.extend((data.len() as u16).to_be_bytes());
        out.extend(data);
    }
    Some(out)
}

fn wire_name(host: &str) -> Vec<u8> {
    let labels = host.split('.').filter(|label| !label.is_empty());
    let mut out: Vec<u8> =
        labels.flat_map(|label| [&[label.len() as u8], label.as_bytes()].concat()).collect();
    out.push(0);
    out
}
