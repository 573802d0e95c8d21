// SPDX-License-Identifier: LGPL-2.1-or-later
//! Protection domains and memory regions.
//!
//! | type | whose memory | who may name it |
//! |---|---|---|
//! | [`MemoryRegion`] | the caller's; elements borrow it | works of this side |
//! | [`RegisteredBuffer`] | its own; it moves into a work, and comes back | works of this side |
//! | [`SharedMemoryRegion`] | its own; it is copied from and to, never lent | peers as well |
//!
//! A region is pinned, and stays so until it has been dropped and its last work has ended.
//!
//! One message can be gathered from several ranges, and scattered into several:
//!
//! ```no_run
//! use ibchan::memory::{GatherElement, ScatterElement};
//! use ibchan::work::{ReceiveWorkRequest, SendWorkRequest};
//!
//! # fn f(pd: &ibchan::ProtectionDomain, channel: &ibchan::Channel) -> ibchan::Result<()> {
//! let mut buf = [0u8; 4096];
//! let mr = pd.register_local_mr_slice(&buf)?;
//! let (header, rest) = buf.split_at_mut(16);
//!
//! channel.receive(ReceiveWorkRequest::new(&mut [
//!     ScatterElement::new(&mr, header),
//!     ScatterElement::new_checked(&mr, &mut rest[1024..])?,
//! ]))?;
//! channel.send(SendWorkRequest::new(&[
//!     GatherElement::new(&mr, header),
//!     GatherElement::new_checked(&mr, &rest[1024..])?,
//! ]))?;
//! # Ok(())
//! # }
//! ```
use crate::channel::ChannelBuilder;
use crate::device::Context;
use crate::error::{call, check, Error, Result};
use crate::ffi;
use std::alloc::{alloc_zeroed, dealloc, handle_alloc_error, Layout};
use std::fmt;
use std::mem;
use std::ops::{Deref, DerefMut, Range};
use std::ptr::{self, NonNull};
use std::sync::Arc;

pub use crate::element::{GatherElement, ScatterElement};

struct Domain {
    raw: *mut ffi::Pd,
    _context: Context,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for Domain {}
// SAFETY: the same at the same time; only freeing has to be alone, and that takes the object.
unsafe impl Sync for Domain {}

impl Drop for Domain {
    fn drop(&mut self) {
        // SAFETY: all that was made of it has a share in it, and has ended before. If the kernel
        // thinks otherwise, nothing changes, and the context ends it.
        unsafe { ffi::ibchan_pd_free(self.raw) };
    }
}

/// A protection domain: memory and channels meet only inside one. Clones are the same one.
#[derive(Clone)]
pub struct ProtectionDomain(Arc<Domain>);

impl ProtectionDomain {
    pub(crate) fn new(context: &Context) -> Result<Self> {
        let mut raw = ptr::null_mut();

        call(|error| {
            // SAFETY: the device is open as long as the context is.
            unsafe { ffi::ibchan_pd_alloc(context.0.device, &mut raw, error) }
        })?;
        Ok(ProtectionDomain(Arc::new(Domain {
            raw,
            _context: context.clone(),
        })))
    }

    pub(crate) fn raw(&self) -> *mut ffi::Pd {
        self.0.raw
    }

    /// Begins to make a channel of this domain.
    pub fn create_channel(&self) -> ChannelBuilder<&ProtectionDomain> {
        crate::channel::Channel::builder().pd(self)
    }

    /// Registers memory of the caller's for works of this side.
    ///
    /// The region does not borrow the memory: each element does, for as long as a work may use it.
    /// When the memory is gone, elements of what else is at its addresses are elements of the old
    /// pages, which stay until the region is dropped.
    pub fn register_local_mr_slice(&self, memory: &[u8]) -> Result<MemoryRegion> {
        let start = memory.as_ptr() as *mut u8;
        let raw = self.register(start, memory.len(), ffi::ibchan_mr_reg_local)?;

        Ok(MemoryRegion {
            raw,
            start: start as usize,
            length: memory.len(),
            _pd: self.clone(),
        })
    }

    /// Registers a vector that works are to take, and to give back.
    pub fn register_buffer(&self, mut memory: Vec<u8>) -> Result<RegisteredBuffer> {
        let raw = self.register(memory.as_mut_ptr(), memory.len(), ffi::ibchan_mr_reg_local)?;

        Ok(RegisteredBuffer {
            raw,
            memory,
            _pd: self.clone(),
        })
    }

    /// Makes a region of zeros that peers may read and write, as soon as they know its
    /// [`remote`](SharedMemoryRegion::remote).
    pub fn allocate_shared_mr(&self, length: usize) -> Result<SharedMemoryRegion> {
        let memory = Pages::new(length)?;
        let raw = self.register(memory.start.as_ptr(), length, ffi::ibchan_mr_reg_shared)?;

        Ok(SharedMemoryRegion {
            raw,
            memory: Some(memory),
            _pd: self.clone(),
        })
    }

    fn register(&self, start: *mut u8, length: usize, how: ffi::MrReg) -> Result<*mut ffi::Mr> {
        let mut raw = ptr::null_mut();

        call(|error| {
            // SAFETY: the domain is there as long as `self` is; registering looks at no byte.
            unsafe { how(self.raw(), start.cast(), length, &mut raw, error) }
        })?;
        Ok(raw)
    }
}

impl fmt::Debug for ProtectionDomain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ProtectionDomain").finish_non_exhaustive()
    }
}

/// Memory of the caller's that is registered for works of this side. No peer can name it.
///
/// [`ProtectionDomain::register_local_mr_slice`] makes one. Elements of it have to lie in the
/// memory that was registered.
pub struct MemoryRegion {
    raw: *mut ffi::Mr,
    start: usize,
    length: usize,
    _pd: ProtectionDomain,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for MemoryRegion {}
// SAFETY: the same at the same time; only dropping has to be alone, and that takes the object.
unsafe impl Sync for MemoryRegion {}

impl MemoryRegion {
    /// An element that a work reads. Panics when the data are not in the region.
    pub fn gather_element<'a>(&'a self, data: &'a [u8]) -> GatherElement<'a> {
        GatherElement::new(self, data)
    }

    /// An element that a work writes into. Panics when the data are not in the region.
    pub fn scatter_element<'a>(&'a self, data: &'a mut [u8]) -> ScatterElement<'a> {
        ScatterElement::new(self, data)
    }

    /// Whether a slice lies within the region.
    pub fn encloses_slice(&self, data: &[u8]) -> bool {
        let offset = (data.as_ptr() as usize).wrapping_sub(self.start);

        offset <= self.length && data.len() <= self.length - offset
    }

    pub(crate) fn raw(&self) -> *mut ffi::Mr {
        self.raw
    }

    pub(crate) fn start(&self) -> usize {
        self.start
    }
}

impl Drop for MemoryRegion {
    fn drop(&mut self) {
        // SAFETY: it is dropped once. If a work uses it still, nothing changes, and the context
        // ends it.
        unsafe { ffi::ibchan_mr_dereg(self.raw) };
    }
}

impl fmt::Debug for MemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("MemoryRegion")
            .field("length", &self.length)
            .finish_non_exhaustive()
    }
}

/// A vector that is registered once, for works that take it and give it back.
///
/// [`ProtectionDomain::register_buffer`] makes one. Its bytes are there as a slice while no work
/// has it; its length stays.
pub struct RegisteredBuffer {
    raw: *mut ffi::Mr,
    memory: Vec<u8>,
    _pd: ProtectionDomain,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for RegisteredBuffer {}
// SAFETY: through a shared reference only bytes are read, and only while no work has it.
unsafe impl Sync for RegisteredBuffer {}

impl RegisteredBuffer {
    /// The vector, which is registered no longer.
    pub fn into_vec(mut self) -> Vec<u8> {
        mem::take(&mut self.memory)
    }

    pub(crate) fn raw(&self) -> *mut ffi::Mr {
        self.raw
    }
}

impl Deref for RegisteredBuffer {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.memory
    }
}

impl DerefMut for RegisteredBuffer {
    fn deref_mut(&mut self) -> &mut [u8] {
        &mut self.memory
    }
}

impl Drop for RegisteredBuffer {
    fn drop(&mut self) {
        // SAFETY: it is dropped once, and no work has it: that would own it. The pages are the
        // region's own until it has gone, whatever becomes of the vector.
        unsafe { ffi::ibchan_mr_dereg(self.raw) };
    }
}

impl fmt::Debug for RegisteredBuffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RegisteredBuffer")
            .field("length", &self.memory.len())
            .finish_non_exhaustive()
    }
}

const PAGE: usize = 4096;

/// Zeros of pages of their own, that nobody else's bytes share.
struct Pages {
    start: NonNull<u8>,
    length: usize,
}

impl Pages {
    fn new(length: usize) -> Result<Self> {
        let layout = Self::layout(length).ok_or_else(|| Error::of_argument("too long a region"))?;
        // SAFETY: the layout has a page or more.
        let start = unsafe { alloc_zeroed(layout) };

        match NonNull::new(start) {
            Some(start) => Ok(Pages { start, length }),
            None => handle_alloc_error(layout),
        }
    }

    fn layout(length: usize) -> Option<Layout> {
        let whole = length.max(1).checked_add(PAGE - 1)? / PAGE * PAGE;

        Layout::from_size_align(whole, PAGE).ok()
    }
}

impl Drop for Pages {
    fn drop(&mut self) {
        let layout = Self::layout(self.length).expect("the layout that it was made with");

        // SAFETY: it was allocated so, and nobody refers to it any more.
        unsafe { dealloc(self.start.as_ptr(), layout) };
    }
}

/// Memory that peers may read and write at any time, once they know its key.
///
/// So it is nowhere lent as a slice: [`read`](Self::read) and [`write`](Self::write) copy, each byte
/// by a volatile access. What they copy while a peer writes may be old and new bytes mixed. Works
/// of this side use it by elements ([`gather_element`](Self::gather_element)).
///
/// [`ProtectionDomain::allocate_shared_mr`] makes one. There is no slice of it:
///
/// ```compile_fail,E0308
/// # fn f(shared: &ibchan::memory::SharedMemoryRegion) {
/// let bytes: &[u8] = shared;
/// # }
/// ```
///
/// ```no_run
/// # fn f(shared: &ibchan::memory::SharedMemoryRegion) {
/// let mut bytes = [0; 8];
/// shared.read(0, &mut bytes);
/// # }
/// ```
///
/// One thread at a time has it: it is `Send`, not `Sync`.
///
/// ```compile_fail,E0277
/// # fn f(shared: ibchan::memory::SharedMemoryRegion) {
/// std::thread::scope(|threads| {
///     threads.spawn(|| shared.write(0, b"two threads at a time"));
///     shared.write(0, b"would race");
/// });
/// # }
/// ```
///
/// ```no_run
/// # fn f(shared: ibchan::memory::SharedMemoryRegion) {
/// std::thread::spawn(move || shared.write(0, b"another thread"));
/// # }
/// ```
pub struct SharedMemoryRegion {
    raw: *mut ffi::Mr,
    memory: Option<Pages>,
    _pd: ProtectionDomain,
}

// SAFETY: the library takes any call on an object from any thread, and the memory is its own.
unsafe impl Send for SharedMemoryRegion {}

impl SharedMemoryRegion {
    /// How many bytes it has.
    pub fn length(&self) -> usize {
        self.memory.as_ref().map_or(0, |memory| memory.length)
    }

    /// Copies bytes of the region from an offset on. Panics beyond its end.
    pub fn read(&self, offset: usize, into: &mut [u8]) {
        let from = self.at(offset, into.len());

        for (i, byte) in into.iter_mut().enumerate() {
            // SAFETY: `at` has checked the range, and no reference to the memory exists.
            *byte = unsafe { from.add(i).read_volatile() };
        }
    }

    /// Copies bytes into the region from an offset on. Panics beyond its end.
    pub fn write(&self, offset: usize, from: &[u8]) {
        let into = self.at(offset, from.len());

        for (i, byte) in from.iter().enumerate() {
            // SAFETY: `at` has checked the range, no reference to the memory exists, and no other
            // thread has the region.
            unsafe { into.add(i).write_volatile(*byte) };
        }
    }

    /// What a peer needs to name this memory.
    pub fn remote(&self) -> RemoteMemoryRegion {
        let mut region = ffi::RemoteRegion::default();

        // SAFETY: the region is registered as long as `self` lives; it has a remote access.
        unsafe { ffi::ibchan_mr_remote_region(self.raw, &mut region) };
        RemoteMemoryRegion(region)
    }

    /// An element that a work reads. Panics beyond the region's end.
    pub fn gather_element(&self, range: Range<usize>) -> GatherElement<'_> {
        GatherElement::of_shared(self.element(range))
    }

    /// An element that a work writes into. Panics beyond the region's end.
    ///
    /// The post is refused while another work has bytes of the range.
    pub fn scatter_element(&self, range: Range<usize>) -> ScatterElement<'_> {
        ScatterElement::of_shared(self.element(range))
    }

    fn element(&self, range: Range<usize>) -> ffi::Sge {
        let length = range.end.checked_sub(range.start);
        let length = length.expect("a range that ends before it begins");

        self.at(range.start, length);
        // SAFETY: the region is there.
        unsafe { ffi::ibchan_sge_unchecked(self.raw, range.start, length) }
    }

    fn at(&self, offset: usize, length: usize) -> *mut u8 {
        let whole = self.length();

        assert!(
            offset <= whole && length <= whole - offset,
            "offset {offset} + length {length} exceeds the region's {whole} bytes"
        );
        let memory = self.memory.as_ref().expect("only a drop takes it");
        // SAFETY: the offset lies within the allocation.
        unsafe { memory.start.as_ptr().add(offset) }
    }
}

impl Drop for SharedMemoryRegion {
    fn drop(&mut self) {
        // SAFETY: it is dropped once.
        let err = unsafe { ffi::ibchan_mr_dereg(self.raw) };

        // Peers may reach memory that could not be deregistered, so nobody else gets that.
        if err != 0 {
            mem::forget(self.memory.take());
        }
    }
}

impl fmt::Debug for SharedMemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SharedMemoryRegion")
            .field("length", &self.length())
            .finish_non_exhaustive()
    }
}

/// A range of a peer's memory: its address, its length, and the key to it.
#[derive(Clone, Copy, PartialEq, Eq)]
pub struct RemoteMemoryRegion(pub(crate) ffi::RemoteRegion);

impl RemoteMemoryRegion {
    /// Bytes of one on the wire.
    pub const SIZE: usize = ffi::REMOTE_REGION_SIZE;

    /// How many bytes it has.
    pub fn length(&self) -> u64 {
        self.0.length
    }

    /// A part of it, which has to lie inside.
    ///
    /// ```
    /// # let whole = ibchan::memory::RemoteMemoryRegion::from_bytes(&[0, 0, 0, 0, 0, 0, 16, 0,
    /// #     0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 7])?;
    /// assert_eq!(whole.length(), 64);
    /// assert_eq!(whole.part(16, 48)?.length(), 48);
    /// assert!(whole.part(17, 48).is_err());
    /// # Ok::<(), ibchan::Error>(())
    /// ```
    pub fn part(&self, offset: u64, length: u64) -> Result<Self> {
        let mut part = *self;

        // SAFETY: both are whole structs.
        check(unsafe { ffi::ibchan_remote_region_sub(&self.0, offset, length, &mut part.0) })?;
        Ok(part)
    }

    /// For the wire.
    pub fn to_bytes(&self) -> [u8; Self::SIZE] {
        let mut bytes = [0; Self::SIZE];

        // SAFETY: the array has as many bytes as the call writes.
        unsafe { ffi::ibchan_remote_region_to_bytes(&self.0, bytes.as_mut_ptr().cast()) };
        bytes
    }

    /// From the wire.
    pub fn from_bytes(bytes: &[u8]) -> Result<Self> {
        let mut region = ffi::RemoteRegion::default();

        // SAFETY: the call reads no more bytes than it is told of.
        check(unsafe {
            ffi::ibchan_remote_region_from_bytes(&mut region, bytes.as_ptr().cast(), bytes.len())
        })?;
        Ok(RemoteMemoryRegion(region))
    }
}

/// Without its key.
impl fmt::Debug for RemoteMemoryRegion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RemoteMemoryRegion")
            .field("addr", &self.0.addr)
            .field("length", &self.0.length)
            .finish_non_exhaustive()
    }
}
