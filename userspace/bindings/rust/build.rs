// SPDX-License-Identifier: LGPL-2.1-or-later
//! Tells the linker where libibchan is: the folder IBCHAN_LIB_DIR, or what pkg-config says.
use std::env;
use std::process::Command;

fn main() {
    println!("cargo:rerun-if-env-changed=IBCHAN_LIB_DIR");
    println!("cargo:rerun-if-env-changed=PKG_CONFIG_PATH");
    if let Ok(folder) = env::var("IBCHAN_LIB_DIR") {
        println!("cargo:rustc-link-search=native={folder}");
        return;
    }
    let output = Command::new("pkg-config")
        .args(["--libs-only-L", "ibchan"])
        .output();
    // Without an answer the linker looks where it always does.
    let words = output.map(|output| output.stdout).unwrap_or_default();
    for word in String::from_utf8_lossy(&words).split_whitespace() {
        if let Some(folder) = word.strip_prefix("-L") {
            println!("cargo:rustc-link-search=native={folder}");
        }
    }
}
