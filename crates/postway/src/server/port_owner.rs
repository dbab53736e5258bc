//! Finds the process that occupies a port, as far as the system shows it.

use std::{fs, io, net::SocketAddr};

/// The state of a listening socket in `/proc/net/tcp`.
const LISTENING: &str = "0A";
/// The most processes that are searched.
const PROCESSES_MAX: usize = 10_000;

/// Advice for an address that cannot be listened on. `setting` names the setting that chooses it.
pub fn advice(address: SocketAddr, error: &io::Error, setting: &str) -> String {
    match error.kind() {
        io::ErrorKind::AddrInUse => {
            let who = process_on_port(address.port()).map_or_else(String::new, |who| format!(" by {who}"));
            format!("{address} is in use{who}: end that program, or choose another address with {setting}")
        }
        io::ErrorKind::AddrNotAvailable => {
            format!("{address} is no address of this machine: choose one that is with {setting}")
        }
        io::ErrorKind::PermissionDenied => {
            format!("this user may not listen on {address}: choose a port above 1023 with {setting}")
        }
        _ => format!("cannot listen on {address} ({setting})"),
    }
}

/// The name and id of the process that listens on this port; `None` if that cannot be seen.
fn process_on_port(port: u16) -> Option<String> {
    let tables = ["/proc/net/tcp", "/proc/net/tcp6"].map(|file| fs::read_to_string(file).unwrap_or_default());
    let socket = format!("socket:[{}]", tables.iter().find_map(|table| inode(table, port))?);
    let processes = fs::read_dir("/proc").ok()?.filter_map(Result::ok).take(PROCESSES_MAX);
    let numbered = processes.filter(|entry| entry.file_name().to_string_lossy().parse::<u32>().is_ok());
    let mut holders = numbered.filter(|entry| {
        let files = fs::read_dir(entry.path().join("fd")).into_iter().flatten().filter_map(Result::ok);
        files.filter_map(|file| fs::read_link(file.path()).ok()).any(|link| link.to_string_lossy() == socket)
    });
    let holder = holders.next()?;
    let name = fs::read_to_string(holder.path().join("comm")).unwrap_or_default();
    Some(format!("{} (process {})", name.trim(), holder.file_name().to_string_lossy()))
}

/// The inode of the socket that listens on this port.
fn inode(table: &str, port: u16) -> Option<&str> {
    let port = format!(":{port:04X}");
    table.lines().skip(1).find_map(|line| {
        let mut columns = line.split_whitespace();
        let local = columns.nth(1)?;
        let state = columns.nth(1)?;
        let inode = columns.nth(5)?;
        (local.ends_with(&port) && state == LISTENING).then_some(inode)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whoever_has_a_port_is_named_with_what_to_do() {
        let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
        let address = taken.local_addr().unwrap();
        let error = std::net::TcpListener::bind(address).unwrap_err();
        let said = advice(address, &error, "http.listen (POSTWAY_HTTP_LISTEN)");
        assert!(said.contains(&format!("(process {})", std::process::id())), "{said}");
        assert!(said.ends_with("or choose another address with http.listen (POSTWAY_HTTP_LISTEN)"), "{said}");
    }

    #[test]
    fn a_socket_is_found_by_its_port_and_only_while_it_listens() {
        let table = "  sl  local_address rem_address   st tx_queue rx_queue tr tm->when retrnsmt   uid  timeout inode\n   \
             0: 0100007F:2148 00000000:0000 0A 00000000:00000000 00:00000000 00000000     0        0 4711 1\n   \
             1: 0100007F:2149 0100007F:C350 01 00000000:00000000 00:00000000 00000000     0        0 4712 1\n";
        assert_eq!(inode(table, 0x2148), Some("4711"));
        assert_eq!(inode(table, 0x2149), None);
    }
}
