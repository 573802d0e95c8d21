// SPDX-License-Identifier: LGPL-2.1-or-later
//! Channels: one reliable connection each, with a builder and a handshake in two steps.
//!
//! 1. [`Channel::builder`] makes a [`PreparedChannel`], whose [`endpoint`](PreparedChannel::endpoint)
//!    goes to the peer by any means.
//! 2. [`PreparedChannel::handshake`] takes the peer's, and gives the [`Channel`].
//!
//! Works are posted in three ways, all of them safe:
//!
//! * [`Channel::send`] and its like borrow memory for one call, and return when the work has ended.
//! * [`Channel::scope`] is a block of code. Works that are posted in it borrow memory that outlives
//!   it, and have ended when it has been left, by a panic as well.
//! * [`Channel::post_send`] and its like take a buffer, which comes back with the completion.
//!
//! One work after the other, with a peer whose endpoint came by TCP:
//!
//! ```no_run
//! use ibchan::channel::{Channel, QueuePairEndpoint};
//! use ibchan::work::{ReceiveWorkRequest, SendWorkRequest};
//! use std::io::{Read, Write};
//!
//! let ctx = ibchan::open_device_for("10.77.0.1", None)?;
//! let pd = ctx.allocate_pd()?;
//! let prepared = Channel::builder().pd(&pd).build()?;
//!
//! let mut tcp = std::net::TcpStream::connect(("10.77.0.1", 7471))?;
//! let mut theirs = [0; QueuePairEndpoint::SIZE];
//! tcp.write_all(&prepared.endpoint().to_bytes())?;
//! tcp.read_exact(&mut theirs)?;
//! let channel = prepared.handshake(QueuePairEndpoint::from_bytes(&theirs)?)?;
//!
//! let mut buf = [0u8; 64];
//! let mr = pd.register_local_mr_slice(&buf)?;
//! let got = channel.receive(ReceiveWorkRequest::new(&mut [mr.scatter_element(&mut buf)]))?;
//! channel.send(SendWorkRequest::new(&[mr.gather_element(&buf[..got.bytes()])]))?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! A channel to itself, with a receive and a send at once:
//!
//! ```no_run
//! use ibchan::channel::{Channel, ScopeError, TransportError};
//! use ibchan::work::{ReceiveWorkRequest, SendWorkRequest};
//!
//! let ctx = ibchan::open_device("rxe0")?;
//! let pd = ctx.allocate_pd()?;
//! let prepared = Channel::builder().pd(&pd).build()?;
//! let endpoint = prepared.endpoint();
//! let channel = prepared.handshake(endpoint)?;
//!
//! let mut buf = [0u8; 64];
//! let mr = pd.register_local_mr_slice(&buf)?;
//!
//! channel.scope(|s| {
//!     let (tx, rx) = buf.split_at_mut(32);
//!     let recv = s.post_receive(ReceiveWorkRequest::new(&mut [mr.scatter_element(rx)]))?;
//!     let send = s.post_send(SendWorkRequest::new(&[mr.gather_element(tx)]))?;
//!
//!     while send.poll().is_none() {}
//!     while recv.poll().is_none() {}
//!     Ok::<(), ScopeError<TransportError>>(())
//! })?;
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
use crate::error::{call, check, Error, Result};
use crate::ffi;
use crate::memory::{ProtectionDomain, RemoteMemoryRegion};
use crate::message::nanoseconds;
use crate::pending::{Buffer, BufferMut, Orphan, PendingWork, PostError, Work};
use crate::work::{
    wr, ReadWorkRequest, ReceiveWorkRequest, Request, SendWorkRequest, WorkSuccess,
    WriteWorkRequest,
};
use std::fmt;
use std::mem::{self, MaybeUninit};
use std::ptr;
use std::sync::atomic::{AtomicPtr, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

pub use crate::scope::{PollingScope, ScopeError, ScopedPendingWork};

/// What a work on a channel fails with.
pub type TransportError = Error;

/// What works on a channel return.
pub type TransportResult<T> = Result<T>;

/// What peers may do to the regions of the domain by way of a channel.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Access(u32);

impl Access {
    /// Nothing.
    pub const LOCAL: Access = Access(ffi::ACCESS_LOCAL_WRITE);
    /// Read and write the shared ones; the default.
    pub const SHARED: Access =
        Access(ffi::ACCESS_LOCAL_WRITE | ffi::ACCESS_REMOTE_WRITE | ffi::ACCESS_REMOTE_READ);
}

/// What a channel is made of. What each knob means says `ibchan_params(3type)`.
#[derive(Clone, Copy)]
pub struct ChannelBuilder<Pd> {
    pd: Pd,
    inner: ffi::Builder,
    /// Of a time that the device cannot wait.
    wrong: bool,
}

impl ChannelBuilder<()> {
    fn new() -> Self {
        let mut inner = MaybeUninit::uninit();

        // SAFETY: the call fills the struct, and looks at no domain.
        let inner = unsafe {
            ffi::ibchan_builder_init_size(
                inner.as_mut_ptr(),
                mem::size_of::<ffi::Builder>(),
                ptr::null_mut(),
                ptr::null_mut(),
            );
            inner.assume_init()
        };
        ChannelBuilder {
            pd: (),
            inner,
            wrong: false,
        }
    }

    /// The domain of the memory that it will use. Without one there is no channel:
    ///
    /// ```compile_fail,E0599
    /// let prepared = ibchan::Channel::builder().build();
    /// ```
    pub fn pd(self, pd: &ProtectionDomain) -> ChannelBuilder<&ProtectionDomain> {
        ChannelBuilder {
            pd,
            inner: self.inner,
            wrong: self.wrong,
        }
    }
}

impl<Pd> ChannelBuilder<Pd> {
    /// What peers may do by it.
    pub fn access(mut self, access: Access) -> Self {
        self.inner.params.access = access.0;
        self
    }

    /// Sends, writes and reads in flight: 16.
    pub fn max_send_wr(mut self, works: u32) -> Self {
        self.inner.params.max_send_wr = works;
        self
    }

    /// Receives in flight: 16.
    pub fn max_recv_wr(mut self, works: u32) -> Self {
        self.inner.params.max_recv_wr = works;
        self
    }

    /// Elements of a send, write or read: 16, or what the device can.
    pub fn max_send_sge(mut self, elements: u32) -> Self {
        self.inner.params.max_send_sge = elements;
        self
    }

    /// Elements of a receive: 16, or what the device can.
    pub fn max_recv_sge(mut self, elements: u32) -> Self {
        self.inner.params.max_recv_sge = elements;
        self
    }

    /// How often a message that meets no receive is sent again: 7, which is without end.
    pub fn max_rnr_retries(mut self, retries: u32) -> Self {
        self.inner.params.rnr_retries = retries;
        self
    }

    /// How often a message that nobody answers is sent again: 6.
    pub fn max_ack_retries(mut self, retries: u32) -> Self {
        self.inner.params.ack_retries = retries;
        self
    }

    /// How long a peer whose message meets no receive is to wait: 2.56 ms.
    pub fn min_rnr_timer(mut self, time: Duration) -> Self {
        // SAFETY: it takes any number.
        let code = unsafe { ffi::ibchan_rnr_timer_from_ns(nanoseconds(time)) };

        self.wrong |= code < 0;
        self.inner.params.min_rnr_timer = code as u32;
        self
    }

    /// How long to wait for an answer before a message is sent again: by address what the
    /// connection manager computes, by endpoints 537 ms, unless it is named here.
    pub fn ack_timeout(mut self, time: Duration) -> Self {
        // SAFETY: it takes any number.
        let code = unsafe { ffi::ibchan_ack_timeout_from_ns(nanoseconds(time)) };

        self.wrong |= code < 0;
        self.inner.params.ack_timeout = code as u32;
        self
    }

    /// Bytes of a packet's payload: what both ports can, or 256 to 4096.
    pub fn mtu(mut self, bytes: u32) -> Self {
        self.inner.params.mtu = bytes;
        self
    }

    /// The port, 1 and up: the first active one.
    pub fn port(mut self, port: u32) -> Self {
        self.inner.params.port = port;
        self
    }

    /// The entry of the port's table of addresses: by rule.
    pub fn gid_index(mut self, index: u32) -> Self {
        self.inner.params.gid_index = index;
        self
    }
}

impl ChannelBuilder<&ProtectionDomain> {
    /// Makes the channel, which has no peer yet.
    pub fn build(mut self) -> Result<PreparedChannel> {
        let mut prepared = ptr::null_mut();

        if self.wrong {
            return Err(Error::of_argument("a time that the device cannot wait"));
        }
        self.inner.pd = self.pd.raw();
        call(|error| {
            // SAFETY: the domain is there as long as the reference to it.
            unsafe { ffi::ibchan_builder_prepare(&self.inner, &mut prepared, error) }
        })?;
        Ok(PreparedChannel {
            link: Arc::new(Link::new(prepared, self.pd)),
        })
    }
}

impl<Pd> fmt::Debug for ChannelBuilder<Pd> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ChannelBuilder").finish_non_exhaustive()
    }
}

/// A channel of the library's, which lives as long as something is in flight that can be asked for.
pub(crate) struct Link {
    channel: *mut ffi::Channel,
    /// Null from the handshake on.
    prepared: AtomicPtr<ffi::Prepared>,
    orphans: Mutex<Vec<Orphan>>,
    _pd: ProtectionDomain,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for Link {}
// SAFETY: the same at the same time; only closing has to be alone, and that takes the object.
unsafe impl Sync for Link {}

impl Link {
    fn new(prepared: *mut ffi::Prepared, pd: &ProtectionDomain) -> Self {
        Link {
            // SAFETY: it was made by a call that has succeeded.
            channel: unsafe { ffi::ibchan_prepared_channel(prepared) },
            prepared: AtomicPtr::new(prepared),
            orphans: Mutex::new(Vec::new()),
            _pd: pd.clone(),
        }
    }

    pub(crate) fn channel(&self) -> *mut ffi::Channel {
        self.channel
    }

    fn orphans(&self) -> MutexGuard<'_, Vec<Orphan>> {
        self.orphans.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A buffer that has to stay until its work has ended.
    pub(crate) fn keep(&self, work: Work, buffer: Box<dyn Send>) {
        self.orphans().push(Orphan::new(work, buffer));
        self.let_go();
    }

    /// Drops the buffers of works that have ended meanwhile.
    pub(crate) fn let_go(&self) {
        self.orphans().retain_mut(|orphan| !orphan.has_ended());
    }

    pub(crate) fn end_traffic(&self) -> Result<()> {
        // SAFETY: the channel is open as long as `self` is.
        check(unsafe { ffi::ibchan_channel_break(self.channel) })?;
        Ok(())
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        let prepared = *self.prepared.get_mut();

        // SAFETY: it is dropped once, and nobody waits for a work of it, who would have a share.
        let result = unsafe {
            if prepared.is_null() {
                ffi::ibchan_channel_close(self.channel)
            } else {
                ffi::ibchan_prepared_destroy(prepared)
            }
        };
        // With any other result works may still be in flight.
        if result != 0 {
            mem::forget(mem::take(&mut *self.orphans()));
        }
    }
}

/// The addressing information that two peers exchange.
#[derive(Clone, Copy)]
pub struct QueuePairEndpoint(ffi::Endpoint);

impl QueuePairEndpoint {
    /// Bytes of one on the wire.
    pub const SIZE: usize = ffi::ENDPOINT_SIZE;

    /// For the wire.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];

        // SAFETY: the array has as many bytes as the call writes.
        unsafe { ffi::ibchan_endpoint_to_bytes(&self.0, bytes.as_mut_ptr().cast()) };
        bytes
    }

    /// From the wire.
    ///
    /// ```
    /// let error = ibchan::channel::QueuePairEndpoint::from_bytes(&[0; 64]).unwrap_err();
    /// assert_eq!(error.kind(), std::io::ErrorKind::InvalidInput);
    /// ```
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut endpoint = ffi::Endpoint {
            bytes: [0; Self::SIZE],
        };

        call(|error| {
            // SAFETY: the call reads no more bytes than it is told of.
            unsafe {
                ffi::ibchan_endpoint_from_bytes(
                    &mut endpoint,
                    bytes.as_ptr().cast(),
                    bytes.len(),
                    error,
                )
            }
        })?;
        Ok(QueuePairEndpoint(endpoint))
    }
}

impl PartialEq for QueuePairEndpoint {
    fn eq(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
    }
}

impl Eq for QueuePairEndpoint {}

impl fmt::Debug for QueuePairEndpoint {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("QueuePairEndpoint")
            .field(&self.0.bytes)
            .finish()
    }
}

/// A channel that has no peer yet. It takes receives.
pub struct PreparedChannel {
    link: Arc<Link>,
}

impl PreparedChannel {
    /// What the peer needs.
    pub fn endpoint(&self) -> QueuePairEndpoint {
        let mut endpoint = ffi::Endpoint {
            bytes: [0; ffi::ENDPOINT_SIZE],
        };

        // SAFETY: it is prepared as long as `self` lives.
        unsafe { ffi::ibchan_prepared_endpoint(self.raw(), &mut endpoint) };
        QueuePairEndpoint(endpoint)
    }

    /// Connects to the peer, whose endpoint it takes. Its own gives a channel to itself.
    pub fn handshake(self, peer: QueuePairEndpoint) -> Result<Channel> {
        let mut channel = ptr::null_mut();

        call(|error| {
            // SAFETY: it is prepared as long as `self` lives.
            unsafe { ffi::ibchan_prepared_handshake(self.raw(), &peer.0, &mut channel, error) }
        })?;
        debug_assert_eq!(channel, self.link.channel);
        self.link.prepared.store(ptr::null_mut(), Ordering::Release);
        Ok(Channel { link: self.link })
    }

    /// Posts a receive for what the peer sends first; see [`Channel::post_receive`].
    pub fn post_receive<B: BufferMut>(
        &self,
        buffer: B,
    ) -> std::result::Result<PendingWork<B>, PostError<B>> {
        PendingWork::post(&self.link, buffer, |sge| wr(ffi::OP_RECV, &[*sge]))
    }

    fn raw(&self) -> *mut ffi::Prepared {
        self.link.prepared.load(Ordering::Acquire)
    }
}

impl fmt::Debug for PreparedChannel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PreparedChannel")
            .field("endpoint", &self.endpoint())
            .finish_non_exhaustive()
    }
}

/// A connection to a peer. Any number of threads may use it. Dropping it ends it.
///
/// A buffer that a work has taken cannot be used until it comes back:
///
/// ```compile_fail,E0382
/// # fn f(channel: &ibchan::Channel) -> ibchan::Result<()> {
/// let mut buffer = vec![1, 2, 3];
/// let pending = channel.post_send(buffer)?;
/// buffer.push(4);
/// let buffer = pending.wait().buffer;
/// # Ok(())
/// # }
/// ```
///
/// ```no_run
/// # fn f(channel: &ibchan::Channel) -> ibchan::Result<()> {
/// let mut buffer = vec![1, 2, 3];
/// let pending = channel.post_send(buffer)?;
/// let mut buffer = pending.wait().buffer;
/// buffer.push(4);
/// # Ok(())
/// # }
/// ```
pub struct Channel {
    link: Arc<Link>,
}

impl Channel {
    /// Begins to make a channel.
    pub fn builder() -> ChannelBuilder<()> {
        ChannelBuilder::new()
    }

    /// Sends a message, and returns when the peer has it.
    pub fn send(&self, request: SendWorkRequest<'_, '_>) -> Result<WorkSuccess> {
        self.perform(&request)
    }

    /// Waits for a message.
    pub fn receive(&self, request: ReceiveWorkRequest<'_, '_>) -> Result<WorkSuccess> {
        self.perform(&request)
    }

    /// Writes into the peer's memory, and returns when the bytes are there.
    pub fn write(&self, request: WriteWorkRequest<'_, '_>) -> Result<WorkSuccess> {
        self.perform(&request)
    }

    /// Reads the peer's memory.
    pub fn read(&self, request: ReadWorkRequest<'_, '_>) -> Result<WorkSuccess> {
        self.perform(&request)
    }

    fn perform(&self, request: &impl Request) -> Result<WorkSuccess> {
        // SAFETY: the request borrows what it names until this returns, and the work has ended then.
        let mut work = unsafe { self.start(request)? };

        work.finish();
        work.result()
    }

    /// # Safety
    ///
    /// What the request's elements borrow has to stay borrowed until the work has ended.
    pub(crate) unsafe fn start(&self, request: &impl Request) -> Result<Work> {
        let wr = request.as_c();

        self.link.let_go();
        // SAFETY: the channel is open as long as `self` is. The rest the caller has promised.
        unsafe { Work::post(self.link.channel, wr) }
    }

    /// Posts a send of a buffer, which comes back when the peer has the message.
    pub fn post_send<B: Buffer>(
        &self,
        buffer: B,
    ) -> std::result::Result<PendingWork<B>, PostError<B>> {
        PendingWork::post(&self.link, buffer, |sge| wr(ffi::OP_SEND, &[*sge]))
    }

    /// Posts a receive into a buffer, which comes back with a message. The buffer's length is the
    /// most that it takes; how long the message is the completion tells.
    pub fn post_receive<B: BufferMut>(
        &self,
        buffer: B,
    ) -> std::result::Result<PendingWork<B>, PostError<B>> {
        PendingWork::post(&self.link, buffer, |sge| wr(ffi::OP_RECV, &[*sge]))
    }

    /// Posts a write of a buffer to the beginning of a range of the peer's memory.
    pub fn post_write<B: Buffer>(
        &self,
        buffer: B,
        remote: RemoteMemoryRegion,
    ) -> std::result::Result<PendingWork<B>, PostError<B>> {
        PendingWork::post(&self.link, buffer, |sge| {
            wr(ffi::OP_WRITE, &[*sge]).with_remote(remote)
        })
    }

    /// Posts a read of the beginning of a range of the peer's memory into a buffer.
    pub fn post_read<B: BufferMut>(
        &self,
        buffer: B,
        remote: RemoteMemoryRegion,
    ) -> std::result::Result<PendingWork<B>, PostError<B>> {
        PendingWork::post(&self.link, buffer, |sge| {
            wr(ffi::OP_READ, &[*sge]).with_remote(remote)
        })
    }

    /// Ends its traffic: it takes no more work, and what is in flight ends with an error.
    pub fn shutdown(&self) -> Result<()> {
        self.link.end_traffic()
    }
}

/// Works that own their buffer may be in flight: they end, and can still be asked for.
impl Drop for Channel {
    fn drop(&mut self) {
        // Of an error there is nobody to tell; the last share closes the channel in any case.
        let _ = self.link.end_traffic();
    }
}

impl fmt::Debug for Channel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Channel").finish_non_exhaustive()
    }
}
