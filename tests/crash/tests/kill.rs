//! A few kills in every test run. `nacre-crash drive --times 1000` runs more.

use std::process::{Command, Output};

fn nacre_crash(command: &str, arguments: &[&str]) -> (Output, String) {
    let output = Command::new(env!("CARGO_BIN_EXE_nacre-crash"))
        .arg(command)
        .args(arguments)
        .output()
        .unwrap();
    let text = String::from_utf8_lossy(&output.stdout).into_owned()
        + &String::from_utf8_lossy(&output.stderr);
    (output, text)
}

fn drive(arguments: &[&str]) -> (Output, String) {
    nacre_crash("drive", arguments)
}

fn power(arguments: &[&str]) -> (Output, String) {
    nacre_crash("power", arguments)
}

#[test]
fn nothing_acknowledged_is_lost() {
    let (output, text) = drive(&["--times", "6", "--kills-per-folder", "3"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("crash: runs=6 lost=0 phantom=0"), "{text}");
}

#[test]
fn a_loss_is_noticed() {
    let folder = std::env::temp_dir().join(format!("nacre-crash-relaxed-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let (output, text) =
        drive(&["--times", "8", "--relaxed", "1", "--folder", folder.to_str().unwrap()]);
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("was committed and is not there"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn what_was_uploaded_survives_the_disk() {
    for held in ["0", "1"] {
        let (output, text) = nacre_crash("disk", &["--times", "4", "--held", held]);
        assert!(output.status.success(), "{text}");
        assert!(text.contains("disk: runs=4 lost=0 phantom=0"), "{text}");
    }
}

#[test]
fn a_commit_that_goes_with_the_disk_is_noticed() {
    let folder = std::env::temp_dir().join(format!("nacre-crash-held-{}", std::process::id()));
    std::fs::create_dir_all(&folder).unwrap();
    let options = ["--times", "8", "--held", "1", "--relaxed", "1", "--folder"];
    let (output, text) = nacre_crash("disk", &[&options[..], &[folder.to_str().unwrap()]].concat());
    assert_eq!(output.status.code(), Some(1), "{text}");
    assert!(text.contains("was committed and is not there"), "{text}");
    std::fs::remove_dir_all(&folder).unwrap();
}

#[test]
fn nothing_acknowledged_is_lost_by_power_cuts() {
    let (output, text) = power(&["--times", "40", "--kills-per-folder", "8", "--seed", "1"]);
    assert!(output.status.success(), "{text}");
    assert!(text.contains("power: runs=40 lost=0 phantom=0"), "{text}");
}

#[test]
fn a_sync_that_is_not_done_is_noticed_whatever_the_file() {
    for prefix in ["log-", "snap-", "seg-"] {
        let (output, text) =
            power(&["--times", "200", "--kills-per-folder", "8", "--seed", "1", "--lie", prefix]);
        assert_eq!(output.status.code(), Some(1), "{prefix}: {text}");
    }
}
