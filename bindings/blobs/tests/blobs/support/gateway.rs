//! A real S3 server, versitygw, on this machine. Where there is no Go to install it with, tests that need
//! it say so and are skipped.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use super::{Scratch, wait};
use nacre_blobs::{BlobOptions, open_blobs};
use std::ffi::OsStr;
use std::fs::File;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::thread;
use std::time::{Duration, Instant};

const VERSION: &str = "v1.8.0";
pub const BUCKET: &str = "bucket";

/// A running server, until it is dropped.
pub struct Gateway {
    process: Child,
    pub address: String,
    scheme: &'static str,
    _folder: Scratch,
}

impl Gateway {
    /// Starts a server with an empty bucket. `None` if it cannot be had here: the reason is printed.
    pub fn start() -> Option<Gateway> {
        let gateway = Gateway::start_with(Scratch::new(), "http", &[])?;
        let options = super::options(&gateway.endpoint());
        gateway.answers(&options)
    }

    /// Starts a server that speaks TLS, and returns its certificate in PEM, too.
    pub fn start_with_tls() -> Option<(Gateway, Vec<u8>)> {
        let folder = Scratch::new();
        let [config, key, certificate] =
            ["config", "key", "certificate"].map(|name| folder.path().join(name));
        let text = "[req]\nprompt=no\ndistinguished_name=dn\nx509_extensions=ext\n[dn]\nCN=test\n\
                    [ext]\nbasicConstraints=critical,CA:FALSE\nsubjectAltName=IP:127.0.0.1\n";
        std::fs::write(&config, text).unwrap();
        let made = Command::new("openssl")
            .args(["req", "-x509", "-nodes", "-newkey", "rsa:2048", "-days", "2", "-config"])
            .arg(&config)
            .arg("-keyout")
            .arg(&key)
            .arg("-out")
            .arg(&certificate)
            .output();
        if !made.is_ok_and(|made| made.status.success()) {
            println!("skipped: openssl makes no certificate here");
            return None;
        }
        let pem = std::fs::read(&certificate).unwrap();
        let arguments = [OsStr::new("--cert"), certificate.as_os_str()];
        let arguments = [&arguments[..], &[OsStr::new("--key"), key.as_os_str()]].concat();
        let gateway = Gateway::start_with(folder, "https", &arguments)?;
        let authorities = Some(pem.clone());
        let options = BlobOptions { authorities, ..super::options(&gateway.endpoint()) };
        Some((gateway.answers(&options)?, pem))
    }

    fn start_with(folder: Scratch, scheme: &'static str, arguments: &[&OsStr]) -> Option<Gateway> {
        static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let program = match PROGRAM.get_or_init(program) {
            Ok(program) => program,
            Err(reason) => {
                println!("skipped: no S3 server: {reason}");
                return None;
            }
        };
        let data = folder.path().join("data");
        std::fs::create_dir_all(data.join(BUCKET)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(program)
            .args(["--access", "tester", "--secret", "not-a-secret", "--quiet"])
            .args(["--port", &address])
            .args(arguments)
            .arg("posix")
            .arg(data)
            .env_remove("VGW_PORT")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        Some(Gateway { process, address, scheme, _folder: folder })
    }

    pub fn endpoint(&self) -> String {
        format!("{}://{}", self.scheme, self.address)
    }

    /// Waits until it answers. It needs extended attributes, and ends where the file system has none.
    fn answers(mut self, options: &BlobOptions) -> Option<Gateway> {
        let store = open_blobs(&format!("s3://{BUCKET}"), options).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(error) = wait(store.list("")) {
            assert!(Instant::now() < until, "the server does not answer: {error}");
            if let Some(status) = self.process.try_wait().unwrap() {
                println!("skipped: the S3 server ended with {status}");
                return None;
            }
            thread::sleep(Duration::from_millis(50));
        }
        Some(self)
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

/// The program, which is installed beside the build if it is not there.
fn program() -> Result<PathBuf, String> {
    if let Some(path) = std::env::var_os("NACRE_VERSITYGW") {
        return Ok(path.into());
    }
    // `…/target/debug/deps/test` is where this runs.
    let test = std::env::current_exe().map_err(|e| e.to_string())?;
    let target = test.ancestors().nth(3).ok_or("the build has no folder")?;
    let folder = target.join("tools").join(format!("versitygw-{VERSION}"));
    let program = folder.join("versitygw");
    std::fs::create_dir_all(&folder).map_err(|e| e.to_string())?;
    // Tests of several processes install it once.
    let lock = File::create(folder.join("lock")).map_err(|e| e.to_string())?;
    lock.lock().map_err(|e| e.to_string())?;
    if !program.is_file() {
        install(&folder)?;
    }
    Ok(program)
}

fn install(folder: &Path) -> Result<(), String> {
    let package = format!("github.com/versity/versitygw/cmd/versitygw@{VERSION}");
    println!("installing {package}, which takes a minute");
    let run = Command::new("go")
        .args(["install", &package])
        .env("GOBIN", folder)
        .output()
        .map_err(|error| format!("there is no Go: {error}"))?;
    match run.status.success() {
        true => Ok(()),
        false => {
            Err(format!("go install {package}: {}", String::from_utf8_lossy(&run.stderr).trim()))
        }
    }
}
