//! A real S3 server, versitygw, on this machine. Where there is no Go to install it with, tests that need
//! it say so and are skipped.

#![allow(clippy::print_stdout, reason = "a test that is skipped says so")]

use super::{Scratch, wait};
use nacre_blobs::open_blobs;
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
    _folder: Scratch,
}

impl Gateway {
    /// Starts a server with an empty bucket. `None` if it cannot be had here: the reason is printed.
    pub fn start() -> Option<Gateway> {
        static PROGRAM: OnceLock<Result<PathBuf, String>> = OnceLock::new();
        let program = match PROGRAM.get_or_init(program) {
            Ok(program) => program,
            Err(reason) => {
                println!("skipped: no S3 server: {reason}");
                return None;
            }
        };
        let folder = Scratch::new();
        std::fs::create_dir_all(folder.path().join(BUCKET)).unwrap();
        let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let address = format!("127.0.0.1:{port}");
        let process = Command::new(program)
            .args(["--access", "tester", "--secret", "not-a-secret", "--quiet"])
            .args(["--port", &address, "posix"])
            .arg(folder.path())
            .env_remove("VGW_PORT")
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let mut gateway = Gateway { process, address, _folder: folder };
        gateway.answers().then_some(gateway)
    }

    pub fn endpoint(&self) -> String {
        format!("http://{}", self.address)
    }

    /// Waits until it answers. It needs extended attributes, and ends where the file system has none.
    fn answers(&mut self) -> bool {
        let url = format!("s3://{BUCKET}");
        let store = open_blobs(&url, &super::options(&self.endpoint())).unwrap();
        let until = Instant::now() + Duration::from_secs(20);
        while let Err(error) = wait(store.list("")) {
            assert!(Instant::now() < until, "the server does not answer: {error}");
            if let Some(status) = self.process.try_wait().unwrap() {
                println!("skipped: the S3 server ended with {status}");
                return false;
            }
            thread::sleep(Duration::from_millis(50));
        }
        true
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
