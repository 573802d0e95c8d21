// SPDX-License-Identifier: GPL-2.0-only
//! laws NAME: one test of the Rust binding; shim_rust_test runs each. Exit code 0: passed.
use ibchan::channel::{Channel, QueuePairEndpoint, ScopeError};
use ibchan::memory::{GatherElement, RegisteredBuffer, RemoteMemoryRegion};
use ibchan::work::{ReadWorkRequest, ReceiveWorkRequest, SendWorkRequest, WriteWorkRequest};
use ibchan::{By, Error, Happening, ProtectionDomain};
use std::env;
use std::io::ErrorKind;
use std::mem;
use std::panic::{catch_unwind, AssertUnwindSafe};
use std::process;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const HOST: &str = "10.77.0.1";
const SOON: Duration = Duration::from_millis(50);

const EPERM: i32 = 1;
const EBUSY: i32 = 16;
const EINVAL: i32 = 22;
const ECANCELED: i32 = 125;

fn patience() -> Duration {
    let slow = env::var("IBCHAN_SLOW").map_or(false, |slow| slow != "0");

    Duration::from_secs(if slow { 60 } else { 10 })
}

fn domain() -> ProtectionDomain {
    ibchan::open_device_for(HOST, None)
        .unwrap()
        .allocate_pd()
        .unwrap()
}

/// A channel to itself.
fn ring(pd: &ProtectionDomain) -> Channel {
    let prepared = Channel::builder().pd(pd).build().unwrap();
    let endpoint = QueuePairEndpoint::from_bytes(&prepared.endpoint().to_bytes()).unwrap();

    assert_eq!(endpoint, prepared.endpoint());
    prepared.handshake(endpoint).unwrap()
}

fn buffer(pd: &ProtectionDomain, byte: u8, length: usize) -> RegisteredBuffer {
    pd.register_buffer(vec![byte; length]).unwrap()
}

/// What an allocator gives out for memory that was freed too early.
fn others(byte: u8, length: usize) -> Vec<Vec<u8>> {
    (0..100).map(|_| vec![byte; length]).collect()
}

fn all_are(vectors: &[Vec<u8>], byte: u8) -> bool {
    vectors.iter().flatten().all(|other| *other == byte)
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
    assert_eq!(taken.receive().unwrap().unwrap(), b"one");
    let two = taken.receive_timeout(patience()).unwrap();
    assert_eq!(two.unwrap(), b"two");
    taken.send(b"three").unwrap();
    let length = client.receive_into(&mut room, Some(patience())).unwrap();
    assert_eq!(length, Some(5));
    assert_eq!(&room[..6], b"three\0");
    client.send(b"").unwrap();
    assert_eq!(taken.receive().unwrap().unwrap(), b"");
    let long = vec![7; 100_000];
    thread::scope(|threads| {
        threads.spawn(|| client.send(&long).unwrap());
        assert!(taken.receive().unwrap().unwrap() == long);
    });
    drop(client);
    assert_eq!(taken.receive().unwrap(), None);
}

fn a_time_out_ends_a_wait_and_loses_nothing() {
    let (client, taken) = pair(ibchan::Options::new().messages(1).message_bytes(100));

    assert_eq!(
        taken.receive_timeout(SOON).unwrap_err().kind(),
        ErrorKind::TimedOut
    );
    client.send(b"fills the room").unwrap();
    let full = client.send_timeout(b"more", SOON).unwrap_err();
    assert_eq!((full.kind(), full.reason()), (ErrorKind::TimedOut, 107));
    assert_eq!(taken.receive().unwrap().unwrap(), b"fills the room");
    client.send(b"more").unwrap();
    assert_eq!(taken.receive().unwrap().unwrap(), b"more");
}

/// A loop with a server, a client elsewhere, and the stream to that, whose token is 7.
fn looped() -> (ibchan::Loop, ibchan::Server, ibchan::Stream, ibchan::Stream) {
    let options = ibchan::Options::new().messages(2).message_bytes(256);
    let all = ibchan::Loop::new().unwrap();
    let server = options.serve_in(&all, None, 0).unwrap();
    let port = server.port();
    let dialed = thread::spawn(move || options.dial(HOST, port).unwrap());

    match all.next(Some(patience())).unwrap() {
        Happening::Connected(taken) => {
            taken.set_token(7);
            (all, server, dialed.join().unwrap(), taken)
        }
        other => panic!("{other:?}"),
    }
}

fn a_loop_tells_of_clients_messages_and_the_end() {
    let (all, _server, client, taken) = looped();
    let none = all.next(Some(Duration::ZERO)).unwrap_err();

    assert_eq!(none.kind(), ErrorKind::WouldBlock);
    assert_eq!(taken.message_bytes(), 256);
    client.send(b"one").unwrap();
    match all.next(Some(patience())).unwrap() {
        Happening::Message { token, length } => assert_eq!((token, length), (7, 3)),
        other => panic!("{other:?}"),
    }
    assert_eq!(taken.receive().unwrap().unwrap(), b"one");
    taken.post(b"two".to_vec()).unwrap();
    taken.post(b"three".to_vec()).unwrap();
    let (full, message) = taken.post(b"four".to_vec()).unwrap_err();
    assert_eq!(
        (full.kind(), &message[..]),
        (ErrorKind::WouldBlock, &b"four"[..])
    );
    assert_eq!(client.receive().unwrap().unwrap(), b"two");
    assert_eq!(client.receive().unwrap().unwrap(), b"three");
    match all.next(Some(patience())).unwrap() {
        Happening::Writable { token } => assert_eq!(token, 7),
        other => panic!("{other:?}"),
    }
    drop(client);
    match all.next(Some(patience())).unwrap() {
        Happening::Ended { token, error, by } => {
            assert_eq!((token, by), (7, By::Peer));
            assert!(error.is_none(), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
}

fn a_long_message_that_is_posted_comes_back_when_it_was_received() {
    let (all, _server, client, taken) = looped();
    let long = vec![5; 100_000];
    let (refused, long) = client.post(long).unwrap_err();

    assert_eq!(refused.errno(), EINVAL);
    taken.post(long).unwrap();
    let _others = others(6, 100_000);
    assert_eq!(client.receive().unwrap().unwrap(), vec![5; 100_000]);
    match all.next(Some(patience())).unwrap() {
        Happening::Sent {
            token,
            message,
            error,
        } => {
            assert_eq!((token, message.len()), (7, 100_000));
            assert!(error.is_none(), "{error:?}");
        }
        other => panic!("{other:?}"),
    }
}

fn a_stream_that_is_dropped_frees_what_was_lent_when_no_peer_reads_it() {
    let (_all, _server, client, taken) = looped();

    taken.post(vec![5; 100_000]).unwrap();
    drop(taken);
    let others = others(6, 100_000);
    assert!(client.receive_timeout(patience()).is_err());
    assert!(all_are(&others, 6));
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
    assert_eq!(ibchan::open_device("no\0name").unwrap_err().errno(), EINVAL);
    assert!(ibchan::open_device("nothing").is_err());
}

fn a_shutdown_ends_the_calls_of_other_threads() {
    let (client, _taken) = pair(ibchan::Options::new());

    thread::scope(|threads| {
        let receive = threads.spawn(|| client.receive().unwrap_err().errno());

        client.shutdown().unwrap();
        assert_eq!(receive.join().unwrap(), ECANCELED);
    });
}

fn a_buffer_comes_back_with_what_it_has_received() {
    let pd = domain();
    let channel = ring(&pd);
    let receive = channel.post_receive(buffer(&pd, 0, 64)).unwrap();
    let send = channel.post_send(vec![7; 32]).unwrap().wait();
    let receive = receive.wait();

    assert!(send.result.is_ok() && send.buffer == [7; 32]);
    assert_eq!(receive.result.unwrap().bytes(), 32);
    assert_eq!(&receive.buffer[..32], [7; 32]);
    assert_eq!(receive.buffer.into_vec()[32..], [0; 32]);
}

fn a_receive_before_the_handshake_gets_the_first_message() {
    let pd = domain();
    let prepared = Channel::builder().pd(&pd).build().unwrap();
    let receive = prepared.post_receive(buffer(&pd, 0, 64)).unwrap();
    let endpoint = prepared.endpoint();
    let channel = prepared.handshake(endpoint).unwrap();

    channel
        .post_send(&b"first"[..])
        .unwrap()
        .wait()
        .result
        .unwrap();
    assert_eq!(&receive.wait().buffer[..5], b"first");
}

/// Until the message arrives, all that is allocated is asked for once more.
fn receive_without_asking(leave: impl FnOnce(ibchan::PendingWork<RegisteredBuffer>)) {
    let pd = domain();
    let channel = ring(&pd);

    leave(channel.post_receive(buffer(&pd, 1, 9000)).unwrap());
    let others = others(b'z', 9000);
    channel
        .post_send(vec![b'y'; 9000])
        .unwrap()
        .wait()
        .result
        .unwrap();
    assert!(all_are(&others, b'z'));
}

fn a_receive_that_is_dropped_writes_into_nobody_elses_memory() {
    receive_without_asking(drop);
}

fn a_receive_that_is_forgotten_writes_into_nobody_elses_memory() {
    receive_without_asking(mem::forget);
}

/// Nothing takes the message before all that is allocated is asked for once more.
fn send_without_asking(leave: impl FnOnce(ibchan::PendingWork<Vec<u8>>)) {
    let pd = domain();
    let channel = ring(&pd);

    leave(channel.post_send(vec![b'y'; 9000]).unwrap());
    let others = others(b'z', 9000);
    let received = channel.post_receive(buffer(&pd, 0, 9000)).unwrap().wait();
    assert_eq!(received.result.unwrap().bytes(), 9000);
    assert!(received.buffer.iter().all(|byte| *byte == b'y'));
    assert!(all_are(&others, b'z'));
}

fn a_send_that_is_dropped_comes_whole() {
    send_without_asking(drop);
}

fn a_send_that_is_forgotten_comes_whole() {
    send_without_asking(mem::forget);
}

fn works_that_are_dropped_make_room_when_they_have_ended() {
    let pd = domain();
    let channel = ring(&pd);

    for _ in 0..200 {
        drop(channel.post_receive(buffer(&pd, 0, 8)).unwrap());
        channel
            .post_send(vec![1; 8])
            .unwrap()
            .wait()
            .result
            .unwrap();
    }
}

fn a_buffer_that_is_shared_while_it_is_sent_stays_readable() {
    let pd = domain();
    let channel = ring(&pd);
    let bytes: Arc<[u8]> = vec![5; 3000].into();
    let send = channel.post_send(Arc::clone(&bytes)).unwrap();

    assert!(bytes.iter().all(|byte| *byte == 5));
    let received = channel.post_receive(buffer(&pd, 0, 3000)).unwrap().wait();
    assert_eq!(&received.buffer[..], &bytes[..]);
    send.wait().result.unwrap();
}

fn a_channel_that_is_dropped_gives_the_buffers_back() {
    let pd = domain();
    let channel = ring(&pd);
    let mut receive = channel.post_receive(buffer(&pd, 3, 64)).unwrap();

    assert!(!receive.has_ended() && !receive.wait_timeout(Duration::from_millis(1)));
    drop(channel);
    let receive = receive.wait();
    assert_eq!(receive.result.unwrap_err().errno(), ECANCELED);
    assert_eq!(&receive.buffer[..], [3; 64]);
}

fn a_post_that_is_refused_gives_the_buffer_back() {
    let pd = domain();
    let channel = ring(&pd);

    channel.shutdown().unwrap();
    let refused = channel.post_send(vec![9; 9]).unwrap_err();
    assert_eq!(refused.buffer, [9; 9]);
    assert!(!refused.to_string().is_empty());
}

fn a_region_whose_memory_is_gone_takes_no_elements() {
    let pd = domain();
    let channel = ring(&pd);
    let mut bytes = vec![2; 1 << 20];
    let mr = pd.register_local_mr_slice(&bytes).unwrap();

    bytes.resize(1 << 24, 2);
    assert!(GatherElement::new_checked(&mr, &bytes[1 << 20..]).is_err());
    let outside = [GatherElement::new_unchecked(
        &mr,
        &bytes[1 << 20..(1 << 20) + 64],
    )];
    let refused = channel.send(SendWorkRequest::new(&outside)).unwrap_err();
    assert_eq!((refused.errno(), refused.status()), (EINVAL, None));
    assert!(bytes.iter().all(|byte| *byte == 2));
}

fn threads_send_and_receive_on_one_channel() {
    let pd = domain();
    let channel = ring(&pd);
    let (tx, mut rx) = ([6; 64], [0; 64]);
    let out = pd.register_local_mr_slice(&tx).unwrap();
    let into = pd.register_local_mr_slice(&rx).unwrap();

    thread::scope(|threads| {
        threads.spawn(|| {
            let elements = [out.gather_element(&tx)];

            channel
                .send(SendWorkRequest::new(&elements).with_immediate(4711))
                .unwrap();
        });
        let mut elements = [into.scatter_element(&mut rx)];
        let received = channel
            .receive(ReceiveWorkRequest::new(&mut elements))
            .unwrap();

        assert_eq!((received.bytes(), received.immediate()), (64, Some(4711)));
    });
    assert_eq!(rx, tx);
}

fn a_peer_writes_and_reads_a_shared_region() {
    let pd = domain();
    let channel = ring(&pd);
    let shared = pd.allocate_shared_mr(100).unwrap();
    let remote = RemoteMemoryRegion::from_bytes(&shared.remote().to_bytes()).unwrap();
    let mut bytes = [8; 16];
    let mr = pd.register_local_mr_slice(&bytes).unwrap();
    let mut seen = [1; 20];

    let from = [mr.gather_element(&bytes)];
    channel
        .write(WriteWorkRequest::new(&from, remote.part(84, 16).unwrap()))
        .unwrap();
    shared.read(80, &mut seen);
    assert_eq!((&seen[..4], &seen[4..]), (&[0; 4][..], &[8; 16][..]));
    shared.write(84, b"volatile");
    let mut into = [mr.scatter_element(&mut bytes[..8])];
    channel
        .read(ReadWorkRequest::new(&mut into, remote.part(84, 8).unwrap()))
        .unwrap();
    assert_eq!(&bytes[..8], b"volatile");
    let read = channel
        .post_read(buffer(&pd, 0, 8), remote.part(84, 8).unwrap())
        .unwrap();
    assert_eq!(&read.wait().buffer[..], b"volatile");
    assert!(catch_unwind(AssertUnwindSafe(|| shared.write(97, b"four"))).is_err());
}

fn two_works_do_not_write_into_one_range() {
    let pd = domain();
    let channel = ring(&pd);
    let shared = pd.allocate_shared_mr(64).unwrap();
    let ended = channel.scope_timeout(SOON, |s| {
        s.post_receive(ReceiveWorkRequest::new(
            &mut [shared.scatter_element(0..40)],
        ))?;
        let mut elements = [shared.scatter_element(32..64)];
        let second = s.post_receive(ReceiveWorkRequest::new(&mut elements));

        assert_eq!(second.unwrap_err().errno(), EBUSY);
        Ok::<(), Error>(())
    });

    assert!(matches!(ended, Err(ScopeError::AutoPollError(errors)) if errors.len() == 1));
}

fn a_scope_waits_for_its_works() {
    let pd = domain();
    let channel = ring(&pd);
    let mut bytes = [4; 64];
    let mr = pd.register_local_mr_slice(&bytes).unwrap();

    bytes[32..].fill(0);
    channel
        .scope(|s| {
            let (tx, rx) = bytes.split_at_mut(32);

            s.post_receive(ReceiveWorkRequest::new(&mut [mr.scatter_element(rx)]))?;
            mem::forget(s.post_send(SendWorkRequest::new(&[mr.gather_element(tx)]))?);
            Ok::<(), Error>(())
        })
        .unwrap();
    assert_eq!(bytes, [4; 64]);
}

/// Another thread sends once the block is about to panic.
fn a_scope_that_panics_waits_for_its_works() {
    let pd = domain();
    let channel = ring(&pd);
    let panics = AtomicBool::new(false);
    let mut bytes = [0; 32];
    let mr = pd.register_local_mr_slice(&bytes).unwrap();

    thread::scope(|threads| {
        threads.spawn(|| {
            while !panics.load(Ordering::Relaxed) {
                thread::yield_now();
            }
            channel
                .post_send(vec![4; 32])
                .unwrap()
                .wait()
                .result
                .unwrap();
        });
        let panicked = catch_unwind(AssertUnwindSafe(|| {
            channel.scope::<(), Error, _>(|s| {
                s.post_receive(ReceiveWorkRequest::new(&mut [
                    mr.scatter_element(&mut bytes)
                ]))?;
                panics.store(true, Ordering::Relaxed);
                panic!("as it should");
            })
        }));

        assert!(panicked.is_err());
        assert_eq!(bytes, [4; 32]);
    });
}

fn a_scope_ends_in_time_though_the_peer_sends_nothing() {
    let pd = domain();
    let channel = ring(&pd);
    let mut bytes = [0; 32];
    let mr = pd.register_local_mr_slice(&bytes).unwrap();
    let ended = channel.scope_timeout(SOON, |s| {
        let mut elements = [mr.scatter_element(&mut bytes)];
        let receive = s.post_receive(ReceiveWorkRequest::new(&mut elements))?;

        assert!(receive.poll().is_none());
        assert!(receive.wait_timeout(Duration::from_millis(1)).is_none());
        Ok::<(), Error>(())
    });

    match ended {
        Err(ScopeError::AutoPollError(errors)) => assert_eq!(errors[0].errno(), ECANCELED),
        other => panic!("{other:?}"),
    }
}

fn a_manual_scope_panics_when_a_work_is_left() {
    let pd = domain();
    let channel = ring(&pd);
    let mut bytes = [0; 32];
    let mr = pd.register_local_mr_slice(&bytes).unwrap();
    let receive = channel.post_receive(buffer(&pd, 0, 32)).unwrap();
    let seen = channel.manual_scope(|s| {
        s.post_send(SendWorkRequest::new(&[mr.gather_element(&bytes)]))?
            .wait()
    });

    assert!(seen.is_ok() && receive.wait().result.is_ok());
    let left = catch_unwind(AssertUnwindSafe(|| {
        channel.manual_scope(|s| {
            s.post_receive(ReceiveWorkRequest::new(&mut [
                mr.scatter_element(&mut bytes)
            ]))?;
            channel.shutdown()
        })
    }));
    assert!(left.is_err());
}

fn a_failed_block_is_told_apart_from_failed_works() {
    let pd = domain();
    let channel = ring(&pd);
    let ended = channel.scope::<(), _, _>(|_| Err("own"));

    assert!(matches!(ended, Err(ScopeError::ClosureError("own"))));
}

extern "C" {
    fn fork() -> i32;
    fn waitpid(child: i32, status: *mut i32, options: i32) -> i32;
}

fn a_child_has_no_works_of_its_parents() {
    let pd = domain();
    let channel = ring(&pd);
    let receive = channel.post_receive(buffer(&pd, 0, 64)).unwrap();
    let mut status = -1;

    // SAFETY: there is one thread, so the child may do what the parent may.
    let child = unsafe { fork() };
    if child == 0 {
        let error = receive.wait().result.unwrap_err();
        let refused = channel.post_send(vec![1]).unwrap_err().error;

        drop(channel);
        process::exit(i32::from(
            (error.errno(), refused.errno()) != (EPERM, EPERM),
        ));
    }
    // SAFETY: the status is a variable's.
    assert_eq!(child, unsafe { waitpid(child, &mut status, 0) });
    assert_eq!(status, 0);
    channel
        .post_send(vec![6; 64])
        .unwrap()
        .wait()
        .result
        .unwrap();
    assert_eq!(&receive.wait().buffer[..], [6; 64]);
}

macro_rules! laws {
    ($($name:ident)*) => {
        const LAWS: &[(&str, fn())] = &[ $( (stringify!($name), $name), )* ];
    };
}

laws! {
    messages_come_as_they_were_sent
    a_time_out_ends_a_wait_and_loses_nothing
    a_loop_tells_of_clients_messages_and_the_end
    a_long_message_that_is_posted_comes_back_when_it_was_received
    a_stream_that_is_dropped_frees_what_was_lent_when_no_peer_reads_it
    errors_have_the_text_of_the_library
    a_shutdown_ends_the_calls_of_other_threads
    a_buffer_comes_back_with_what_it_has_received
    a_receive_before_the_handshake_gets_the_first_message
    a_receive_that_is_dropped_writes_into_nobody_elses_memory
    a_receive_that_is_forgotten_writes_into_nobody_elses_memory
    a_send_that_is_dropped_comes_whole
    a_send_that_is_forgotten_comes_whole
    works_that_are_dropped_make_room_when_they_have_ended
    a_buffer_that_is_shared_while_it_is_sent_stays_readable
    a_channel_that_is_dropped_gives_the_buffers_back
    a_post_that_is_refused_gives_the_buffer_back
    a_region_whose_memory_is_gone_takes_no_elements
    threads_send_and_receive_on_one_channel
    a_peer_writes_and_reads_a_shared_region
    two_works_do_not_write_into_one_range
    a_scope_waits_for_its_works
    a_scope_that_panics_waits_for_its_works
    a_scope_ends_in_time_though_the_peer_sends_nothing
    a_manual_scope_panics_when_a_work_is_left
    a_failed_block_is_told_apart_from_failed_works
    a_child_has_no_works_of_its_parents
}

fn main() {
    let name = env::args().nth(1).expect("a name");
    let law = LAWS
        .iter()
        .find(|law| law.0 == name)
        .expect("a law of that name");

    law.1();
}
