// SPDX-License-Identifier: LGPL-2.1-or-later
use crate::device::address;
use crate::error::{call, check, Error, Result};
use crate::ffi;
use crate::next::{Loop, Shared};
use std::ffi::{CStr, CString};
use std::fmt;
use std::mem::{self, MaybeUninit};
use std::net::IpAddr;
use std::os::raw::{c_char, c_int, c_void};
use std::os::unix::io::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::Arc;
use std::time::Duration;

/// What a peer can make a receive allocate.
const MOST_BYTES: usize = 1 << 30;

/// Connects to a server: by a name or an IP address, and the number or name of a port.
///
/// What can fail says `ibchan_dial(3)`.
pub fn dial(host: &str, service: impl fmt::Display) -> Result<Stream> {
    Options::new().dial(host, service)
}

/// Listens for clients on a port, at any address of this host.
///
/// What can fail says `ibchan_serve(3)`.
pub fn serve(service: impl fmt::Display) -> Result<Server> {
    Options::new().serve(None, service)
}

/// How a side takes messages, where the defaults do not fit.
///
/// ```no_run
/// let server = ibchan::Options::new().messages(64).message_bytes(1 << 20).serve(None, 7471)?;
/// # Ok::<(), ibchan::Error>(())
/// ```
#[derive(Clone, Copy, Debug, Default)]
pub struct Options {
    messages: u32,
    message_bytes: u32,
    timeout: Duration,
    source: Option<IpAddr>,
}

impl Options {
    /// The defaults: 16 messages of 16384 bytes, 60 seconds.
    pub fn new() -> Self {
        Self::default()
    }

    /// How many messages each side may send before they are received, 1 to 8000.
    pub fn messages(mut self, messages: u32) -> Self {
        self.messages = messages;
        self
    }

    /// Up to which length messages are copied, 1 to 2^30; longer ones are read by the peer.
    pub fn message_bytes(mut self, bytes: u32) -> Self {
        self.message_bytes = bytes;
        self
    }

    /// How long a connection may take to come about.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout.max(Duration::from_nanos(1));
        self
    }

    /// The address of this host to connect from, where the route does not say it: in a VRF.
    pub fn source(mut self, source: IpAddr) -> Self {
        self.source = Some(source);
        self
    }

    /// As [`dial`].
    pub fn dial(&self, host: &str, service: impl fmt::Display) -> Result<Stream> {
        self.dial_at(None, host, service)
    }

    /// The same in a [`Loop`], which then tells of the stream.
    pub fn dial_in(&self, all: &Loop, host: &str, service: impl fmt::Display) -> Result<Stream> {
        self.dial_at(Some(all), host, service)
    }

    fn dial_at(
        &self,
        all: Option<&Loop>,
        host: &str,
        service: impl fmt::Display,
    ) -> Result<Stream> {
        let (host, service) = (name(host)?, name(service)?);
        let source = self.source.map(address);
        let params = self.params(source.as_deref(), all);
        let mut channel = ptr::null_mut();

        call(|error| {
            // SAFETY: the strings and structs live until the call returns.
            unsafe {
                ffi::ibchan_dial(
                    host.as_ptr(),
                    service.as_ptr(),
                    &params,
                    &mut channel,
                    error,
                )
            }
        })?;
        Ok(Stream::of(channel, all.map(|all| all.0.clone())))
    }

    /// As [`serve`], at an address of this host; `None`: any.
    pub fn serve(&self, host: Option<&str>, service: impl fmt::Display) -> Result<Server> {
        self.serve_at(None, host, service)
    }

    /// The same in a [`Loop`], which then takes the clients and tells of them.
    pub fn serve_in(
        &self,
        all: &Loop,
        host: Option<&str>,
        service: impl fmt::Display,
    ) -> Result<Server> {
        self.serve_at(Some(all), host, service)
    }

    fn serve_at(
        &self,
        all: Option<&Loop>,
        host: Option<&str>,
        service: impl fmt::Display,
    ) -> Result<Server> {
        let host = host.map(name).transpose()?;
        let host: *const c_char = host.as_ref().map_or(ptr::null(), |host| host.as_ptr());
        let service = name(service)?;
        let source = self.source.map(address);
        let params = self.params(source.as_deref(), all);
        let mut server = ptr::null_mut();

        call(|error| {
            // SAFETY: the strings and structs live until the call returns; the host may be null.
            unsafe { ffi::ibchan_serve(host, service.as_ptr(), &params, &mut server, error) }
        })?;
        Ok(Server {
            raw: NonNull::new(server).expect("a server that listens"),
            all: all.map(|all| all.0.clone()),
        })
    }

    /// With a pointer to the source.
    fn params(&self, source: Option<&CStr>, all: Option<&Loop>) -> ffi::MessageParams {
        ffi::MessageParams {
            size: mem::size_of::<ffi::MessageParams>() as u32,
            messages: self.messages,
            message_bytes: self.message_bytes,
            reserved: 0,
            timeout_ns: nanoseconds(self.timeout),
            source: source.map_or(ptr::null(), CStr::as_ptr),
            context: all.map_or(ptr::null_mut(), |all| all.0.context.as_ptr()),
        }
    }
}

fn name(value: impl fmt::Display) -> Result<CString> {
    CString::new(value.to_string()).map_err(|_| Error::of_argument("a name with a NUL in it"))
}

/// What is longer than 146 years counts as that.
pub(crate) fn nanoseconds(timeout: Duration) -> i64 {
    const LONGEST: i64 = i64::MAX / 2;

    i64::try_from(timeout.as_nanos()).map_or(LONGEST, |ns| ns.min(LONGEST))
}

/// Carries messages between two programs. [`dial`] and [`Server::take`] make them.
///
/// Any number of threads may send and receive at a time. The memory of a message is the caller's
/// own again when a call returns. Dropping it closes it, which waits up to a second until what was
/// sent last has arrived.
pub struct Stream {
    raw: NonNull<ffi::Channel>,
    message_bytes: usize,
    all: Option<Arc<Shared>>,
    /// Among the streams of its loop; the library keeps it, too.
    number: usize,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for Stream {}
// SAFETY: the same at the same time; only closing has to be alone, and that takes the object.
unsafe impl Sync for Stream {}

impl Stream {
    /// What the library has connected.
    pub(crate) fn of(channel: *mut ffi::Channel, all: Option<Arc<Shared>>) -> Self {
        let raw = NonNull::new(channel).expect("a channel that is connected");
        // SAFETY: zeros are such a struct.
        let mut agreed: ffi::MessageParams = unsafe { MaybeUninit::zeroed().assume_init() };

        agreed.size = mem::size_of_val(&agreed) as u32;
        // SAFETY: the channel is open.
        unsafe { ffi::ibchan_channel_message_params(channel, &mut agreed) };
        let number = all.as_ref().map_or(0, |all| all.number());

        // SAFETY: the channel is open; the library only keeps the pointer.
        unsafe { ffi::ibchan_channel_set_priv(channel, number as *mut c_void) };
        Stream {
            raw,
            message_bytes: agreed.message_bytes as usize,
            all,
            number,
        }
    }

    /// Up to which length both sides copy messages.
    pub fn message_bytes(&self) -> usize {
        self.message_bytes
    }

    /// A number by which [`Loop::next`] names the stream; until this is called, that is 0.
    ///
    /// Another thread may be told of the stream before that, by 0: after this call, ask
    /// [`receive_timeout`](Self::receive_timeout) once, with a time of zero, for what has come by then.
    pub fn set_token(&self, token: usize) {
        if let Some(all) = &self.all {
            all.set_token(self.number, token);
        }
    }

    /// Sends a message without waiting. A long one is the peer's to read until
    /// [`Happening::Sent`](crate::Happening::Sent) gives it back, for which the stream has to be in a
    /// [`Loop`].
    ///
    /// The message comes back with an error. If its kind is `WouldBlock`, the peer has no room, and
    /// [`Happening::Writable`](crate::Happening::Writable) tells of some.
    pub fn post(&self, message: Vec<u8>) -> std::result::Result<(), (Error, Vec<u8>)> {
        let (bytes, length) = (message.as_ptr(), message.len());

        if length <= self.message_bytes {
            return match self.post_raw(bytes, length) {
                Ok(_) => Ok(()),
                Err(error) => Err((error, message)),
            };
        }
        let all = match &self.all {
            Some(all) => all,
            None => {
                let text = "a long message on a stream without a loop";
                return Err((Error::of_argument(text), message));
            }
        };
        all.lend(self.number, message);
        match self.post_raw(bytes, length) {
            Ok(_) => Ok(()),
            Err(error) => Err((error, all.take_back(self.number, bytes))),
        }
    }

    fn post_raw(&self, bytes: *const u8, length: usize) -> Result<c_int> {
        // SAFETY: the channel is open as long as `self` is. A short message is copied; a long one stays
        // where it is until the library gives it back or the channel is closed.
        call(|error| unsafe {
            ffi::ibchan_post_bytes(self.raw.as_ptr(), bytes.cast(), length, error)
        })
    }

    /// Sends a message. A short one is copied, and is on its way when this returns; a long one was
    /// received by then.
    ///
    /// Waits while the peer has not received earlier messages, as many as may wait.
    pub fn send(&self, message: &[u8]) -> Result<()> {
        self.send_ns(message, ffi::TIMEOUT_NEVER)
    }

    /// Sends a message, within a time. After that the kind of the error is `TimedOut` when nothing was
    /// sent, and `ConnectionAborted` when a long message was under way: that has broken the stream.
    pub fn send_timeout(&self, message: &[u8], timeout: Duration) -> Result<()> {
        self.send_ns(message, nanoseconds(timeout))
    }

    fn send_ns(&self, message: &[u8], ns: i64) -> Result<()> {
        call(|error| {
            // SAFETY: the channel is open as long as `self` is, and the memory is there during the call.
            // Where the library cannot tell that the device has done with it, the device only reads it.
            unsafe {
                ffi::ibchan_send_bytes(
                    self.raw.as_ptr(),
                    message.as_ptr().cast(),
                    message.len(),
                    ns,
                    error,
                )
            }
        })?;
        Ok(())
    }

    /// The next message; `None` when the peer has closed the stream. One of more than 2^30 bytes is
    /// an error, and stays for [`receive_into`](Self::receive_into).
    ///
    /// A signal that has a handler ends the wait: the kind of the error is `Interrupted`.
    pub fn receive(&self) -> Result<Option<Vec<u8>>> {
        self.receive_ns(ffi::TIMEOUT_NEVER)
    }

    /// The next message, within a time; after that the kind of the error is `TimedOut`.
    pub fn receive_timeout(&self, timeout: Duration) -> Result<Option<Vec<u8>>> {
        self.receive_ns(nanoseconds(timeout))
    }

    /// The next message into a buffer: how long it is; `None` as for [`receive`](Self::receive). One
    /// that does not fit stays for the next call. `None` waits without an end.
    pub fn receive_into(
        &self,
        buffer: &mut [u8],
        timeout: Option<Duration>,
    ) -> Result<Option<usize>> {
        match self.receive_once(buffer, timeout.map_or(ffi::TIMEOUT_NEVER, nanoseconds))? {
            Received::TooLong(_, error) => Err(error),
            Received::End => Ok(None),
            Received::Message(length) => Ok(Some(length)),
        }
    }

    /// Another thread may take the message that did not fit, and the next one be longer.
    fn receive_ns(&self, ns: i64) -> Result<Option<Vec<u8>>> {
        let mut message = vec![0; self.message_bytes];

        loop {
            match self.receive_once(&mut message, ns)? {
                Received::TooLong(length, error) if length > MOST_BYTES => return Err(error),
                Received::TooLong(length, _) => message.resize(length, 0),
                Received::End => return Ok(None),
                Received::Message(length) => {
                    message.truncate(length);
                    return Ok(Some(message));
                }
            }
        }
    }

    fn receive_once(&self, buffer: &mut [u8], ns: i64) -> Result<Received> {
        const EMSGSIZE: isize = 90;
        const ENODATA: isize = 61;
        let mut details = ffi::Error::default();
        // SAFETY: the channel is open as long as `self` is; the buffer is written to only during the
        // call, by the CPU or the device.
        let result = unsafe {
            ffi::ibchan_receive_bytes(
                self.raw.as_ptr(),
                buffer.as_mut_ptr().cast(),
                buffer.len(),
                ns,
                &mut details,
            )
        };

        match result {
            0.. => Ok(Received::Message(result as usize)),
            _ if result == -ENODATA => Ok(Received::End),
            _ if result == -EMSGSIZE => Ok(Received::TooLong(
                details.reason.value[0] as usize,
                Error::of_details(&details),
            )),
            _ => Err(Error::of_details(&details)),
        }
    }

    /// Ends the calls that other threads make, and takes no more. The peer sees the end as a reset.
    /// Messages that have arrived can still be received.
    pub fn shutdown(&self) -> Result<()> {
        // SAFETY: the channel is open as long as `self` is.
        check(unsafe { ffi::ibchan_channel_break(self.raw.as_ptr()) })?;
        Ok(())
    }
}

/// What became of a call that was not refused.
enum Received {
    Message(usize),
    TooLong(usize, Error),
    End,
}

impl Drop for Stream {
    fn drop(&mut self) {
        const ECONNRESET: c_int = 104;
        let lent = self.all.as_ref().map(|all| all.forget(self.number));
        // SAFETY: nobody has it any more.
        let result = unsafe { ffi::ibchan_channel_close(self.raw.as_ptr()) };

        // With any other result the kernel may not have ended it, and the peer still read.
        if result != 0 && result != -ECONNRESET {
            mem::forget(lent);
        }
    }
}

impl fmt::Debug for Stream {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Stream").finish_non_exhaustive()
    }
}

/// Listens for clients of [`dial`]. [`serve`] makes one. Streams that were taken outlive it.
pub struct Server {
    raw: NonNull<ffi::Server>,
    all: Option<Arc<Shared>>,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for Server {}
// SAFETY: the same at the same time; only closing has to be alone, and that takes the object.
unsafe impl Sync for Server {}

impl Server {
    /// The stream of the next client.
    pub fn take(&self) -> Result<Stream> {
        self.take_ns(ffi::TIMEOUT_NEVER)
    }

    /// The same within a time; after that the kind of the error is `TimedOut`.
    pub fn take_timeout(&self, timeout: Duration) -> Result<Stream> {
        self.take_ns(nanoseconds(timeout))
    }

    fn take_ns(&self, ns: i64) -> Result<Stream> {
        let mut channel = ptr::null_mut();

        call(|error| {
            // SAFETY: the server listens as long as `self` lives.
            unsafe { ffi::ibchan_take(self.raw.as_ptr(), ns, &mut channel, error) }
        })?;
        Ok(Stream::of(channel, self.all.clone()))
    }

    /// One client after the other, without an end.
    pub fn incoming(&self) -> impl Iterator<Item = Result<Stream>> + '_ {
        std::iter::repeat_with(move || self.take())
    }

    /// The number of the port that it listens on.
    pub fn port(&self) -> u16 {
        let mut address = MaybeUninit::<ffi::SockAddr>::zeroed();

        // SAFETY: the server listens as long as `self` lives; zeros are an address.
        let address = unsafe {
            ffi::ibchan_server_address(self.raw.as_ptr(), address.as_mut_ptr());
            address.assume_init()
        };
        u16::from_be_bytes(address.port)
    }
}

/// For `poll` and `epoll`: readable while [`take`](Server::take) has something to do.
impl AsRawFd for Server {
    fn as_raw_fd(&self) -> RawFd {
        // SAFETY: the server listens as long as `self` lives.
        let fd: c_int = unsafe { ffi::ibchan_server_fd(self.raw.as_ptr()) };

        fd
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // SAFETY: nobody has it any more.
        unsafe { ffi::ibchan_server_close(self.raw.as_ptr()) };
    }
}

impl fmt::Debug for Server {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Server")
            .field("port", &self.port())
            .finish_non_exhaustive()
    }
}
