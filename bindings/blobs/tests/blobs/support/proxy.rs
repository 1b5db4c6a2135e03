//! Misbehaves between a client and a real S3 server, as networks and overloaded servers do.

use super::server::{Reply, Request, Server};
use std::io::{Read, Write};
use std::net::TcpStream;
use std::thread;
use std::time::Duration;

/// What goes wrong with a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// The answer takes its time.
    Slow,
    /// The server fails, and has done nothing.
    Fails,
    /// The server wants fewer requests.
    SlowDown,
    /// The connection ends before the request is passed on.
    NoRequest,
    /// The connection ends after the request took effect.
    NoAnswer,
    /// The server fails after the request took effect.
    FailsLate,
    /// The answer stands still until the client gives up, after the request took effect.
    Stuck,
    /// The body of the answer breaks off.
    Cut,
}

impl Trouble {
    pub const ALL: [Trouble; 8] = [
        Trouble::Slow,
        Trouble::Fails,
        Trouble::SlowDown,
        Trouble::NoRequest,
        Trouble::NoAnswer,
        Trouble::FailsLate,
        Trouble::Stuck,
        Trouble::Cut,
    ];
}

/// Starts a proxy in front of a server. `plan` says what goes wrong with a request.
pub fn start(
    server: &str,
    plan: impl Fn(&Request) -> Option<Trouble> + Send + Sync + 'static,
) -> Server {
    let server = server.to_string();
    Server::start(move |request| {
        let forward = || forward(&server, request);
        match plan(request) {
            None => forward(),
            Some(Trouble::Slow) => {
                thread::sleep(Duration::from_millis(100));
                forward()
            }
            Some(Trouble::Fails) => {
                Some(Reply::error("500 Internal Server Error", "InternalError"))
            }
            Some(Trouble::SlowDown) => Some(Reply::error("503 Service Unavailable", "SlowDown")),
            Some(Trouble::NoRequest) => None,
            Some(Trouble::NoAnswer) => forward().and(None),
            Some(Trouble::FailsLate) => {
                forward();
                Some(Reply::error("500 Internal Server Error", "InternalError"))
            }
            Some(Trouble::Stuck) => {
                let reply = forward();
                thread::sleep(Duration::from_millis(1_000));
                reply
            }
            Some(Trouble::Cut) => forward().map(|mut reply| {
                if reply.body.len() > 1 {
                    reply.cut_at = Some(reply.body.len() / 2);
                }
                reply
            }),
        }
    })
}

/// Sends a request on, and returns the answer.
fn forward(server: &str, request: &Request) -> Option<Reply> {
    let mut stream = TcpStream::connect(server).ok()?;
    let mut head = format!("{} {} HTTP/1.1\r\n", request.method, request.target);
    for (name, value) in request.headers.iter().filter(|(name, _)| name != "connection") {
        head += &format!("{name}: {value}\r\n");
    }
    head += "connection: close\r\n\r\n";
    stream.write_all(head.as_bytes()).ok()?;
    stream.write_all(&request.body).ok()?;
    let mut answer = Vec::new();
    stream.read_to_end(&mut answer).ok()?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n")? + 4;
    let head = String::from_utf8_lossy(&answer[..end]).into_owned();
    let body = answer[end..].to_vec();
    Some(Reply { head, body, delay: Duration::ZERO, cut_at: None, pause: Duration::ZERO })
}
