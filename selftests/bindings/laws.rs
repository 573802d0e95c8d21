// SPDX-License-Identifier: GPL-2.0-only
//! laws NAME: one test of the Rust binding; shim_rust_test runs each. Exit code 0: passed.
use std::env;
use std::io::ErrorKind;
use std::thread;
use std::time::Duration;

const HOST: &str = "10.77.0.1";
const SOON: Duration = Duration::from_millis(50);

const EINVAL: i32 = 22;
const ECANCELED: i32 = 125;

fn patience() -> Duration {
    let slow = env::var("IBCHAN_SLOW").map_or(false, |slow| slow != "0");

    Duration::from_secs(if slow { 60 } else { 10 })
}

/// A pair of the short way.
fn pair(options: ibchan::Options) -> (ibchan::Stream, ibchan::Stream) {
    let server = options.serve(None, 0).unwrap();
    let port = server.port();
    let dialed = thread::spawn(move || options.dial(HOST, port).unwrap());
    let taken = server.take_timeout(patience()).unwrap();

    (dialed.join().unwrap(), taken)
}

fn messages_come_as_they_were_sent() {
    let (client, taken) = pair(ibchan::Options::new());
    let mut room = [0; 16];

    client.send(b"one").unwrap();
    client.send_timeout(b"two", patience()).unwrap();
    assert_eq!(taken.receive().unwrap(), b"one");
    assert_eq!(taken.receive_timeout(patience()).unwrap(), b"two");
    taken.send(b"three").unwrap();
    assert_eq!(client.receive_into(&mut room, Some(patience())).unwrap(), 5);
    assert_eq!(&room[..6], b"three\0");
    drop(client);
    assert!(taken.receive().unwrap().is_empty());
}

fn a_time_out_ends_a_wait_and_loses_nothing() {
    let (client, taken) = pair(ibchan::Options::new().messages(1).message_bytes(100));

    assert_eq!(
        taken.receive_timeout(SOON).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    client.send(b"fills the room").unwrap();
    let full = client.send_timeout(b"more", SOON).unwrap_err();
    assert_eq!((full.kind(), full.reason()), (ErrorKind::TimedOut, 74));
    assert_eq!(taken.receive().unwrap(), b"fills the room");
    client.send(b"more").unwrap();
    assert_eq!(taken.receive().unwrap(), b"more");
}

fn errors_have_the_text_of_the_library() {
    let refused = ibchan::dial(HOST, 7724).unwrap_err();
    let server = ibchan::serve(0).unwrap();

    assert_eq!(refused.kind(), ErrorKind::ConnectionRefused);
    assert!(refused.to_string().contains("nobody listens"), "{refused}");
    assert_eq!(
        server.take_timeout(SOON).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    assert_eq!(ibchan::dial("no\0name", 1).unwrap_err().errno(), EINVAL);
}

fn a_shutdown_ends_the_calls_of_other_threads() {
    let (client, _taken) = pair(ibchan::Options::new());

    thread::scope(|threads| {
        let receive = threads.spawn(|| client.receive().unwrap_err().errno());

        client.shutdown().unwrap();
        assert_eq!(receive.join().unwrap(), ECANCELED);
    });
}

macro_rules! laws {
    ($($name:ident)*) => {
        const LAWS: &[(&str, fn())] = &[ $( (stringify!($name), $name), )* ];
    };
}

laws! {
    messages_come_as_they_were_sent
    a_time_out_ends_a_wait_and_loses_nothing
    errors_have_the_text_of_the_library
    a_shutdown_ends_the_calls_of_other_threads
}

fn main() {
    let name = env::args().nth(1).expect("a name");
    let law = LAWS
        .iter()
        .find(|law| law.0 == name)
        .expect("a law of that name");

    law.1();
}
