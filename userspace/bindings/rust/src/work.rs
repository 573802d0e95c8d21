// SPDX-License-Identifier: LGPL-2.1-or-later
//! Work requests, and what becomes of works.
use crate::element::{GatherElement, ScatterElement};
use crate::ffi;
use crate::memory::RemoteMemoryRegion;

/// A send: its elements, gathered in this order, become one message.
#[derive(Debug)]
pub struct SendWorkRequest<'wr, 'data> {
    elements: &'wr [GatherElement<'data>],
    immediate: Option<u32>,
}

/// A receive: one message is scattered into its elements in this order.
#[derive(Debug)]
pub struct ReceiveWorkRequest<'wr, 'data> {
    elements: &'wr mut [ScatterElement<'data>],
}

/// A write: its elements go to the beginning of a range of the peer's memory.
#[derive(Debug)]
pub struct WriteWorkRequest<'wr, 'data> {
    elements: &'wr [GatherElement<'data>],
    remote: RemoteMemoryRegion,
    immediate: Option<u32>,
}

/// A read: the beginning of a range of the peer's memory comes into its elements.
#[derive(Debug)]
pub struct ReadWorkRequest<'wr, 'data> {
    elements: &'wr mut [ScatterElement<'data>],
    remote: RemoteMemoryRegion,
}

impl<'wr, 'data> SendWorkRequest<'wr, 'data> {
    /// A request; the list of elements may be empty.
    pub fn new(elements: &'wr [GatherElement<'data>]) -> Self {
        SendWorkRequest {
            elements,
            immediate: None,
        }
    }

    /// Lets 32 bits go along, which the peer's receive tells.
    pub fn with_immediate(mut self, immediate: u32) -> Self {
        self.immediate = Some(immediate);
        self
    }
}

impl<'wr, 'data> ReceiveWorkRequest<'wr, 'data> {
    /// A request; the list of elements may be empty.
    pub fn new(elements: &'wr mut [ScatterElement<'data>]) -> Self {
        ReceiveWorkRequest { elements }
    }
}

impl<'wr, 'data> WriteWorkRequest<'wr, 'data> {
    /// A request. The remote range has to be as long as the elements together, or longer.
    pub fn new(elements: &'wr [GatherElement<'data>], remote: RemoteMemoryRegion) -> Self {
        WriteWorkRequest {
            elements,
            remote,
            immediate: None,
        }
    }

    /// Lets 32 bits go along, for a receive of the peer's; without them it learns nothing.
    pub fn with_immediate(mut self, immediate: u32) -> Self {
        self.immediate = Some(immediate);
        self
    }
}

impl<'wr, 'data> ReadWorkRequest<'wr, 'data> {
    /// A request. The remote range has to be as long as the elements together, or longer.
    pub fn new(elements: &'wr mut [ScatterElement<'data>], remote: RemoteMemoryRegion) -> Self {
        ReadWorkRequest { elements, remote }
    }
}

/// A request in C's form, which may point to the list of its elements.
pub(crate) trait Request {
    fn as_c(&self) -> ffi::Wr;
}

pub(crate) fn wr(opcode: u8, sges: &[ffi::Sge]) -> ffi::Wr {
    let (list, sge) = match sges {
        [one] => (0, *one),
        [] => (0, ffi::Sge::default()),
        list => (list.as_ptr() as u64, ffi::Sge::default()),
    };

    ffi::Wr {
        channel: 0,
        opcode,
        flags: 0,
        // More than the kernel takes is as good as the most that can be said.
        num_sge: u16::try_from(sges.len()).unwrap_or(u16::MAX),
        wr_id: 0,
        sges: list,
        remote_addr: 0,
        rkey: 0,
        imm: 0,
        sge,
        remote_length: 0,
    }
}

impl ffi::Wr {
    fn with_immediate(mut self, immediate: Option<u32>) -> Self {
        if let Some(immediate) = immediate {
            self.flags |= ffi::WR_IMM;
            self.imm = immediate;
        }
        self
    }

    pub(crate) fn with_remote(mut self, remote: RemoteMemoryRegion) -> Self {
        self.remote_addr = remote.0.addr;
        self.remote_length = remote.0.length;
        self.rkey = remote.0.rkey;
        self
    }
}

impl Request for SendWorkRequest<'_, '_> {
    fn as_c(&self) -> ffi::Wr {
        wr(ffi::OP_SEND, GatherElement::as_c(self.elements)).with_immediate(self.immediate)
    }
}

impl Request for ReceiveWorkRequest<'_, '_> {
    fn as_c(&self) -> ffi::Wr {
        wr(ffi::OP_RECV, ScatterElement::as_c(self.elements))
    }
}

impl Request for WriteWorkRequest<'_, '_> {
    fn as_c(&self) -> ffi::Wr {
        wr(ffi::OP_WRITE, GatherElement::as_c(self.elements))
            .with_remote(self.remote)
            .with_immediate(self.immediate)
    }
}

impl Request for ReadWorkRequest<'_, '_> {
    fn as_c(&self) -> ffi::Wr {
        wr(ffi::OP_READ, ScatterElement::as_c(self.elements)).with_remote(self.remote)
    }
}

/// A work that has succeeded.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct WorkSuccess {
    bytes: u32,
    immediate: Option<u32>,
}

impl WorkSuccess {
    pub(crate) fn of(completion: &ffi::Completion) -> Self {
        WorkSuccess {
            bytes: completion.bytes,
            immediate: (completion.flags & ffi::CQE_IMM != 0).then_some(completion.imm),
        }
    }

    /// How many bytes a receive has got.
    pub fn bytes(&self) -> usize {
        self.bytes as usize
    }

    /// The 32 bits that came along to a receive.
    pub fn immediate(&self) -> Option<u32> {
        self.immediate
    }
}
