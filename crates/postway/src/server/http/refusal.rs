//! The answer to a client whose connection gets no slot, and to a request over HTTP/2 that gets none.

use std::time::Duration;

use axum::body::Body;
use hyper::{
    Response, StatusCode,
    header::{CONTENT_TYPE, HeaderValue, RETRY_AFTER},
};
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::TcpStream,
    time::timeout,
};
use tokio_util::task::TaskTracker;

use super::connection_limit::SlotRefusal;

/// The most refusals in progress; beyond that connections are closed without an answer.
const REFUSED_MAX: usize = 256;
/// How long a refusal may take, and how much of the request is read: a connection closed with unread bytes is
/// reset, and a reset overtakes the answer.
const REFUSING_MAX: Duration = Duration::from_secs(2);
const UNREAD_BYTES_MAX: usize = 64 * 1024;

/// The refusals in progress.
#[derive(Default)]
pub struct ConnectionRefusals(TaskTracker);

impl ConnectionRefusals {
    /// Answers why there is no slot, and closes the connection. Under TLS there is no answer, because it would
    /// need a handshake first.
    pub fn refuse(&self, mut stream: TcpStream, why: SlotRefusal, is_tls: bool) {
        metrics::counter!("postway_http_connections_cut_total", "reason" => why.as_str()).increment(1);
        if is_tls || self.0.len() >= REFUSED_MAX {
            return;
        }
        self.0.spawn(async move {
            let say = async {
                if stream.write_all(answer(why).as_bytes()).await.is_err() || stream.shutdown().await.is_err()
                {
                    return;
                }
                let (mut unread, mut piece) = (0, [0; 4_096]);
                while unread < UNREAD_BYTES_MAX {
                    match stream.read(&mut piece).await {
                        Ok(0) | Err(_) => return,
                        Ok(read) => unread += read,
                    }
                }
            };
            // A client that does not read is not waited for.
            let _ = timeout(REFUSING_MAX, say).await;
        });
    }
}

fn answer(why: SlotRefusal) -> String {
    let message = match why {
        SlotRefusal::ForClient => {
            "there are too many connections from your address (http.max_connections_per_client): use fewer"
        }
        SlotRefusal::ForAnybody => "there are too many connections (http.max_connections): try again",
    };
    let body = error_body(message);
    format!(
        "HTTP/1.1 503 Service Unavailable\r\ncontent-type: application/json\r\ncontent-length: {}\r\n\
         retry-after: 1\r\nconnection: close\r\n\r\n{body}",
        body.len()
    )
}

fn error_body(message: &str) -> String {
    format!(r#"{{"error":{{"code":"unavailable","message":"{message}","details":[]}}}}"#)
}

/// The answer to a request over HTTP/2 that gets no slot.
pub fn answer_to_request(why: SlotRefusal) -> Response<Body> {
    let message = match why {
        SlotRefusal::ForClient => {
            "there are too many requests at once from your address (http.max_connections_per_client): send fewer"
        }
        SlotRefusal::ForAnybody => "there are too many requests at once (http.max_connections): try again",
    };
    let mut answer = Response::new(Body::from(error_body(message)));
    *answer.status_mut() = StatusCode::SERVICE_UNAVAILABLE;
    answer.headers_mut().insert(CONTENT_TYPE, HeaderValue::from_static("application/json"));
    answer.headers_mut().insert(RETRY_AFTER, HeaderValue::from_static("1"));
    answer
}
