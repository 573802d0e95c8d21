// SPDX-License-Identifier: LGPL-2.1-or-later
//! Works in flight: what all kinds of them have in common, and those that own their buffer.
use crate::channel::Link;
use crate::error::{call, Error, Result};
use crate::ffi;
use crate::memory::RegisteredBuffer;
use crate::message::nanoseconds;
use crate::work::WorkSuccess;
use std::error;
use std::fmt;
use std::io::{self, Write};
use std::mem;
use std::process;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

const EPERM: i32 = 1;
const EPROTO: i32 = 71;

/// A work that was posted. It is not asked after its channel has been closed.
pub(crate) struct Work {
    pending: ffi::Pending,
    process: u32,
    state: State,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum State {
    InFlight,
    Ended,
    /// Of the process that this one was forked from, whose memory it has.
    Foreign,
}

// SAFETY: the library takes any call on an object from any thread, and a pending work is its owner's.
unsafe impl Send for Work {}

impl Work {
    /// # Safety
    ///
    /// The channel is open, and stays so as long as the work is asked. The list of its
    /// elements is there. Until the work has ended, what the elements name is nobody's to write, and
    /// for a receive or a read nobody's to read.
    pub(crate) unsafe fn post(channel: *mut ffi::Channel, mut wr: ffi::Wr) -> Result<Self> {
        // SAFETY: the channel is open.
        wr.channel = unsafe { ffi::ibchan_channel_handle(channel) };
        let mut work = Work {
            // SAFETY: all zero is what a pending work begins with.
            pending: unsafe { mem::zeroed() },
            process: process::id(),
            state: State::InFlight,
        };

        call(|error| {
            // SAFETY: as the caller has promised.
            unsafe { ffi::ibchan_pending_post(&mut work.pending, channel, &wr, error) }
        })?;
        Ok(work)
    }

    /// Whether it has ended. Makes no system call.
    pub(crate) fn has_ended(&mut self) -> bool {
        if self.state == State::InFlight {
            // SAFETY: it was posted, and its channel is open.
            let result = unsafe { ffi::ibchan_pending_poll(&mut self.pending) };

            self.note(if result > 0 { 0 } else { result }, result != 0);
        }
        self.state != State::InFlight
    }

    /// Waits until it has ended, or a time is over. Tells whether it has ended.
    pub(crate) fn wait(&mut self, ns: i64) -> bool {
        if self.state == State::InFlight {
            // SAFETY: it was posted, and its channel is open.
            let result = unsafe { ffi::ibchan_pending_wait(&mut self.pending, ns) };

            self.note(result, result == 0 || result == -EPERM || result == -EPROTO);
        }
        self.state != State::InFlight
    }

    /// Waits until it has ended, however long that takes.
    pub(crate) fn finish(&mut self) {
        // A device that is gone, and a filter of system calls, end a wait before the work has ended.
        // That it ends can be seen without a system call, but not waited for.
        while !self.wait(ffi::TIMEOUT_NEVER) && !self.has_ended() {
            thread::sleep(Duration::from_millis(1));
        }
    }

    fn note(&mut self, error: i32, is_final: bool) {
        if !is_final {
            return;
        }
        match -error {
            0 => self.state = State::Ended,
            EPERM if process::id() != self.process => self.state = State::Foreign,
            // Somebody has written into the library's memory, and the work's buffer may be in flight
            // for ever.
            EPROTO => {
                let line = "ibchan: a completion ring was damaged, and a work's end is not known\n";

                let _ = io::stderr().write_all(line.as_bytes());
                process::abort();
            }
            _ => (),
        }
    }

    /// How it ended, once it has.
    pub(crate) fn result(&self) -> Result<WorkSuccess> {
        let completion = &self.pending.completion;

        if self.state == State::Foreign {
            return Err(Error::of_code(-EPERM));
        }
        if completion.error == 0 {
            return Ok(WorkSuccess::of(completion));
        }
        Err(Error::of_details(&ffi::Error {
            code: completion.error,
            origin: ffi::ERROR_WORK,
            status: completion.status.into(),
            vendor_err: completion.vendor_err,
            opcode: completion.opcode.into(),
            ..ffi::Error::default()
        }))
    }
}

pub(crate) mod sealed {
    use super::ffi;

    /// # Safety
    ///
    /// The element stays where it is and as it is while the value is moved, until that is dropped.
    pub unsafe trait Buffer {
        fn element(&self) -> ffi::Sge;
    }
}

/// What can move into a work that sends or writes: nobody else changes its bytes meanwhile.
pub trait Buffer: sealed::Buffer + Send + 'static {}

/// What can move into a work that receives or reads.
///
/// Only registered memory: of other memory a device may still write into it, when the work has failed
/// already.
pub trait BufferMut: Buffer {}

fn plain(bytes: &[u8]) -> ffi::Sge {
    // SAFETY: it is only a number.
    unsafe { ffi::ibchan_sge_plain(bytes.as_ptr() as *mut _, bytes.len()) }
}

// SAFETY: a vector that is moved keeps its bytes.
unsafe impl sealed::Buffer for Vec<u8> {
    fn element(&self) -> ffi::Sge {
        plain(self)
    }
}

// SAFETY: they are there for ever, and nobody can change them.
unsafe impl sealed::Buffer for &'static [u8] {
    fn element(&self) -> ffi::Sge {
        plain(self)
    }
}

// SAFETY: they are there as long as the reference, and nobody can change them.
unsafe impl sealed::Buffer for Arc<[u8]> {
    fn element(&self) -> ffi::Sge {
        plain(self)
    }
}

// SAFETY: its bytes are a vector's.
unsafe impl sealed::Buffer for RegisteredBuffer {
    fn element(&self) -> ffi::Sge {
        // SAFETY: the region is there.
        unsafe { ffi::ibchan_sge_unchecked(self.raw(), 0, self.len()) }
    }
}

impl Buffer for Vec<u8> {}
impl Buffer for &'static [u8] {}
impl Buffer for Arc<[u8]> {}
impl Buffer for RegisteredBuffer {}
impl BufferMut for RegisteredBuffer {}

/// A post that was refused, and the buffer.
pub struct PostError<B> {
    /// Why.
    pub error: Error,
    /// What was to be posted.
    pub buffer: B,
}

impl<B> fmt::Debug for PostError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Debug::fmt(&self.error, f)
    }
}

impl<B> fmt::Display for PostError<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.error, f)
    }
}

impl<B> error::Error for PostError<B> {}

impl<B> From<PostError<B>> for Error {
    fn from(refused: PostError<B>) -> Self {
        refused.error
    }
}

/// A work that has ended, and the buffer.
#[derive(Debug)]
pub struct Completion<B> {
    /// What the work had. When a receive or a read has failed, its bytes are any.
    pub buffer: B,
    /// How it ended.
    pub result: Result<WorkSuccess>,
}

/// A work in flight that owns its buffer.
///
/// [`wait`](Self::wait) and its like give the buffer back. One that is dropped leaves the work in
/// flight, and its buffer with the channel, until the work has ended. One that is forgotten keeps
/// its channel and its buffer for ever. A channel that is dropped breaks, and the work ends.
pub struct PendingWork<B: Buffer> {
    work: Option<(Work, B)>,
    link: Arc<Link>,
}

impl<B: Buffer> PendingWork<B> {
    pub(crate) fn post(
        link: &Arc<Link>,
        buffer: B,
        request: impl FnOnce(&ffi::Sge) -> ffi::Wr,
    ) -> std::result::Result<Self, PostError<B>> {
        let element = buffer.element();
        let wr = request(&element);

        link.let_go();
        // SAFETY: the link keeps the channel open, and the buffer belongs to the work until it has
        // ended: here, in the orphans of the link, or for ever.
        match unsafe { Work::post(link.channel(), wr) } {
            Ok(work) => Ok(PendingWork {
                work: Some((work, buffer)),
                link: Arc::clone(link),
            }),
            Err(error) => Err(PostError { error, buffer }),
        }
    }

    fn in_flight(&mut self) -> &mut Work {
        &mut self.work.as_mut().expect("only its end takes it").0
    }

    fn end(&mut self) -> Completion<B> {
        let (work, buffer) = self.work.take().expect("only its end takes it");

        Completion {
            buffer,
            result: work.result(),
        }
    }

    /// Whether it has ended. Makes no system call.
    pub fn has_ended(&mut self) -> bool {
        self.in_flight().has_ended()
    }

    /// Waits until it has ended.
    pub fn wait(mut self) -> Completion<B> {
        self.in_flight().finish();
        self.end()
    }

    /// Waits until it has ended, or the time is over. Tells whether it has ended.
    pub fn wait_timeout(&mut self, timeout: Duration) -> bool {
        self.in_flight().wait(nanoseconds(timeout))
    }
}

impl<B: Buffer> Drop for PendingWork<B> {
    fn drop(&mut self) {
        if let Some((work, buffer)) = self.work.take() {
            self.link.keep(work, Box::new(buffer));
        }
    }
}

impl<B: Buffer> fmt::Debug for PendingWork<B> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PendingWork").finish_non_exhaustive()
    }
}

/// A buffer whose work nobody asks for any more.
pub(crate) struct Orphan {
    work: Work,
    _buffer: Box<dyn Send>,
}

impl Orphan {
    pub(crate) fn new(work: Work, buffer: Box<dyn Send>) -> Self {
        Orphan {
            work,
            _buffer: buffer,
        }
    }

    pub(crate) fn has_ended(&mut self) -> bool {
        self.work.has_ended()
    }
}
