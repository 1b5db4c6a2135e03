//! A small HTTP server that answers as a test says, also with answers that break off.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// A request that came.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub target: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    pub body: Vec<u8>,
    /// How many came before it.
    pub number: usize,
}

impl Request {
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(n, _)| n == name).map(|(_, value)| &**value)
    }
}

/// What is answered.
#[derive(Clone, Debug)]
pub struct Reply {
    /// The first line and the headers, with an empty line at the end.
    pub head: String,
    pub body: Vec<u8>,
    /// Before the head is sent.
    pub delay: Duration,
    /// So much of the body is sent, and then the connection closed.
    pub cut_at: Option<usize>,
    /// After each KiB of the body.
    pub pause: Duration,
}

impl Reply {
    /// An answer with a body. `headers` are lines.
    pub fn new(status: &str, headers: &[&str], body: impl Into<Vec<u8>>) -> Reply {
        let body = body.into();
        let mut head = format!("HTTP/1.1 {status}\r\nContent-Length: {}\r\n", body.len());
        headers.iter().for_each(|line| head += &format!("{line}\r\n"));
        head += "\r\n";
        Reply { head, body, delay: Duration::ZERO, cut_at: None, pause: Duration::ZERO }
    }

    /// An error as S3 reports it.
    pub fn error(status: &str, code: &str) -> Reply {
        let body = format!("<Error><Code>{code}</Code><Message>as the test says</Message></Error>");
        Reply::new(status, &["Content-Type: application/xml"], body)
    }

    /// An object, or the part of it that is asked for.
    pub fn object(request: &Request, content: &[u8]) -> Reply {
        let fixed = ["ETag: \"tag\"", "Last-Modified: Sun, 06 Nov 1994 08:49:37 GMT"];
        let range = request.header("range").map(|range| {
            let (start, end) = range.trim_start_matches("bytes=").split_once('-').unwrap();
            (start.parse::<usize>().unwrap(), end.parse::<usize>().unwrap())
        });
        match range {
            None => Reply::new("200 OK", &fixed, content),
            Some((start, _)) if start >= content.len() => {
                Reply::error("416 Range Not Satisfiable", "InvalidRange")
            }
            Some((start, end)) => {
                let end = end.min(content.len() - 1);
                let line = format!("Content-Range: bytes {start}-{end}/{}", content.len());
                let headers = [fixed[0], fixed[1], &line];
                Reply::new("206 Partial Content", &headers, &content[start..=end])
            }
        }
    }

    fn send(&self, stream: &mut TcpStream, is_head: bool) -> std::io::Result<()> {
        thread::sleep(self.delay);
        stream.write_all(self.head.as_bytes())?;
        if is_head {
            return Ok(());
        }
        let end = self.cut_at.unwrap_or(self.body.len()).min(self.body.len());
        if self.pause.is_zero() {
            stream.write_all(&self.body[..end])?;
        } else {
            for part in self.body[..end].chunks(1024) {
                stream.write_all(part)?;
                thread::sleep(self.pause);
            }
        }
        stream.flush()
    }
}

/// Answers requests; `None` closes the connection without an answer.
type Handler = dyn Fn(&Request) -> Option<Reply> + Send + Sync;

/// A server on this machine, until it is dropped.
pub struct Server {
    address: SocketAddr,
    requests: Arc<Mutex<Vec<Request>>>,
    is_over: Arc<AtomicBool>,
}

impl Server {
    pub fn start(handler: impl Fn(&Request) -> Option<Reply> + Send + Sync + 'static) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let address = listener.local_addr().unwrap();
        let requests = Arc::new(Mutex::new(Vec::new()));
        let is_over = Arc::new(AtomicBool::new(false));
        let shared = (Arc::new(handler) as Arc<Handler>, requests.clone(), is_over.clone());
        thread::spawn(move || {
            let count = Arc::new(AtomicUsize::new(0));
            for stream in listener.incoming().flatten() {
                let (handler, requests, is_over) = shared.clone();
                if is_over.load(Ordering::Relaxed) {
                    return;
                }
                let count = count.clone();
                thread::spawn(move || serve(stream, &*handler, &requests, &count));
            }
        });
        Server { address, requests, is_over }
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// What came until now.
    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().unwrap().clone()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Relaxed);
        let _ = TcpStream::connect(self.address);
    }
}

fn serve(
    mut stream: TcpStream,
    handler: &Handler,
    requests: &Mutex<Vec<Request>>,
    count: &AtomicUsize,
) {
    let Ok(reading) = stream.try_clone() else { return };
    let mut reading = BufReader::new(reading);
    while let Some(request) = read_request(&mut reading, count) {
        requests.lock().unwrap().push(request.clone());
        let Some(reply) = handler(&request) else { break };
        let is_whole = reply.cut_at.is_none()
            && !reply.head.to_ascii_lowercase().contains("connection: close");
        if reply.send(&mut stream, request.method == "HEAD").is_err() || !is_whole {
            break;
        }
    }
    let _ = stream.shutdown(Shutdown::Both);
}

fn read_request(reading: &mut BufReader<TcpStream>, count: &AtomicUsize) -> Option<Request> {
    let mut line = String::new();
    reading.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_string(), words.next()?.to_string());
    let mut headers = Vec::new();
    loop {
        let mut line = String::new();
        reading.read_line(&mut line).ok()?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        headers.push((name.to_ascii_lowercase(), value.trim().to_string()));
    }
    let len = headers.iter().find(|(name, _)| name == "content-length");
    let mut body = vec![0; len.map_or(0, |(_, len)| len.parse().unwrap())];
    reading.read_exact(&mut body).ok()?;
    let number = count.fetch_add(1, Ordering::Relaxed);
    Some(Request { method, target, headers, body, number })
}
