// SPDX-License-Identifier: LGPL-2.1-or-later
use crate::error::{call, check, Error, Result};
use crate::ffi;
use crate::message::{nanoseconds, Stream};
use std::collections::HashMap;
use std::fmt;
use std::mem;
use std::os::unix::io::{AsRawFd, RawFd};
use std::ptr::{self, NonNull};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

/// One thing that has happened. Tokens are those of [`Stream::set_token`].
#[derive(Debug)]
pub enum Happening {
    /// A client of a server is connected.
    Connected(Stream),
    /// A message of so many bytes is the first that waits. Each is told of once, and the next one
    /// when this one was received.
    Message {
        /// Of the stream.
        token: usize,
        /// Of the message.
        length: u64,
    },
    /// The stream takes messages again, after one has found no room.
    Writable {
        /// Of the stream.
        token: usize,
    },
    /// A long message of [`Stream::post`] is the program's own again.
    Sent {
        /// Of the stream.
        token: usize,
        /// As it was posted.
        message: Vec<u8>,
        /// Why the peer may not have received it.
        error: Option<Error>,
    },
    /// A client could not be served.
    Refused(Error),
    /// The last of its stream.
    Ended {
        /// Of the stream.
        token: usize,
        /// Why; `None`: the peer has closed it in order.
        error: Option<Error>,
        /// By whom.
        by: By,
    },
}

/// Who has ended a stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum By {
    /// The peer has closed or broken it, has ended, or breaks the rules.
    Peer,
    /// This side has broken it.
    ThisSide,
    /// The peer does not answer.
    Network,
    /// The device is gone.
    Device,
}

/// The library's context, and what peers read in it.
pub(crate) struct Shared {
    pub(crate) context: NonNull<ffi::Context>,
    fd: RawFd,
    streams: Mutex<Streams>,
}

/// By their numbers, none of which comes again, as the addresses of the library's channels do.
#[derive(Default)]
struct Streams {
    last: usize,
    tokens: HashMap<usize, usize>,
    lent: Vec<(usize, Vec<u8>)>,
}

// SAFETY: the library takes any call on a context from any thread.
unsafe impl Send for Shared {}
// SAFETY: the same at the same time; only closing has to be alone, and the last owner does that.
unsafe impl Sync for Shared {}

impl Shared {
    fn streams(&self) -> MutexGuard<'_, Streams> {
        self.streams.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Of one more stream; not 0.
    pub(crate) fn number(&self) -> usize {
        let mut streams = self.streams();

        streams.last += 1;
        streams.last
    }

    pub(crate) fn set_token(&self, number: usize, token: usize) {
        self.streams().tokens.insert(number, token);
    }

    fn token(&self, number: usize) -> usize {
        self.streams().tokens.get(&number).copied().unwrap_or(0)
    }

    /// From here on the memory stays where it is.
    pub(crate) fn lend(&self, number: usize, message: Vec<u8>) {
        self.streams().lent.push((number, message));
    }

    pub(crate) fn take_back(&self, number: usize, bytes: *const u8) -> Vec<u8> {
        let lent = &mut self.streams().lent;
        let found = lent
            .iter()
            .position(|(of, message)| *of == number && message.as_ptr() == bytes);

        found.map_or_else(Vec::new, |index| lent.remove(index).1)
    }

    /// What is to stay until the stream is closed, which happens next.
    pub(crate) fn forget(&self, number: usize) -> Vec<(usize, Vec<u8>)> {
        let mut streams = self.streams();
        let lent = mem::take(&mut streams.lent);
        let (gone, left) = lent.into_iter().partition(|(of, _)| *of == number);

        streams.lent = left;
        streams.tokens.remove(&number);
        gone
    }
}

impl Drop for Shared {
    fn drop(&mut self) {
        // SAFETY: each server and stream in it has kept it, so there are none.
        unsafe { ffi::ibchan_context_close(self.context.as_ptr()) };
    }
}

/// Where [`Options::dial_in`](crate::Options::dial_in) and
/// [`Options::serve_in`](crate::Options::serve_in) make streams and servers, for one loop around
/// [`next`](Loop::next).
///
/// A token is 0 until [`Stream::set_token`] is called: while one thread dials, another one's
/// [`next`](Loop::next) may already tell of that stream, by 0.
///
/// [`Happening::Ended`] comes behind the last message that was received: not while one waits, even
/// when the peer is gone. A program that does not want a message drops the stream.
///
/// ```no_run
/// use ibchan::{Happening, Loop, Options};
/// use std::collections::HashMap;
///
/// let all = Loop::new()?;
/// let _server = Options::new().serve_in(&all, None, 7471)?;
/// let mut streams = HashMap::new();
/// let mut last = 0;
/// loop {
///     match all.next(None)? {
///         Happening::Connected(stream) => {
///             last += 1;
///             stream.set_token(last);
///             streams.insert(last, stream);
///         }
///         Happening::Message { token, .. } => {
///             let is_answered = match streams[&token].receive() {
///                 Ok(Some(message)) => streams[&token].post(message).is_ok(),
///                 _ => false,
///             };
///             // A client that is gone, or does not take its answers.
///             if !is_answered {
///                 drop(streams.remove(&token).map(|stream| stream.shutdown()));
///             }
///         }
///         Happening::Ended { token, .. } => drop(streams.remove(&token)),
///         _ => (),
///     }
/// }
/// # #[allow(unreachable_code)]
/// # Ok::<(), ibchan::Error>(())
/// ```
#[derive(Clone)]
pub struct Loop(pub(crate) Arc<Shared>);

impl Loop {
    /// One without streams.
    pub fn new() -> Result<Self> {
        let mut context = ptr::null_mut();

        // SAFETY: it is written to during the call only.
        call(|error| unsafe { ffi::ibchan_context_open(&mut context, error) })?;
        let mut shared = Shared {
            context: NonNull::new(context).expect("a context that is open"),
            fd: -1,
            streams: Mutex::default(),
        };
        // SAFETY: the context is open as long as `shared` is, which an error drops.
        shared.fd = check(unsafe { ffi::ibchan_next_fd(context) })?;
        Ok(Loop(Arc::new(shared)))
    }

    /// What happens next, within a time; `None` waits without an end. After the time the kind of the
    /// error is `TimedOut`, and with a time of zero `WouldBlock`.
    pub fn next(&self, timeout: Option<Duration>) -> Result<Happening> {
        let mut told = ffi::Happening::default();
        let ns = timeout.map_or(ffi::TIMEOUT_NEVER, nanoseconds);

        // SAFETY: the context is open as long as `self` is.
        call(|error| unsafe { ffi::ibchan_next(self.0.context.as_ptr(), ns, &mut told, error) })?;
        Ok(self.happening(&told))
    }

    fn happening(&self, told: &ffi::Happening) -> Happening {
        const ENODATA: i32 = 61;
        let number = told.private as usize;
        let token = self.0.token(number);
        let error = match -told.error {
            0 | ENODATA => None,
            _ => Some(Error::of_code(told.error)),
        };

        match told.kind {
            ffi::NEXT_CONNECTED => {
                Happening::Connected(Stream::of(told.channel, Some(self.0.clone())))
            }
            ffi::NEXT_MESSAGE => Happening::Message {
                token,
                length: told.length,
            },
            ffi::NEXT_WRITABLE => Happening::Writable { token },
            ffi::NEXT_SENT => Happening::Sent {
                token,
                message: self.0.take_back(number, told.bytes.cast()),
                error,
            },
            ffi::NEXT_ENDED => Happening::Ended {
                token,
                error,
                by: match told.by {
                    ffi::BY_PEER => By::Peer,
                    ffi::BY_NETWORK => By::Network,
                    ffi::BY_DEVICE => By::Device,
                    _ => By::ThisSide,
                },
            },
            _ => Happening::Refused(Error::of_code(told.error)),
        }
    }
}

/// For `poll` and `epoll`: readable while [`next`](Loop::next) has something to do.
impl AsRawFd for Loop {
    fn as_raw_fd(&self) -> RawFd {
        self.0.fd
    }
}

impl fmt::Debug for Loop {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Loop").finish_non_exhaustive()
    }
}
