// SPDX-License-Identifier: LGPL-2.1-or-later
//! What `<ibchan.h>` declares, as far as the crate calls it. The structs are compared with those of
//! the headers by a test.
use std::marker::{PhantomData, PhantomPinned};
use std::os::raw::{c_char, c_int, c_void};

macro_rules! opaque {
    ($($name:ident)*) => {
        $(
            #[repr(C)]
            pub struct $name {
                _bytes: [u8; 0],
                _marker: PhantomData<(*mut u8, PhantomPinned)>,
            }
        )*
    };
}

opaque! { Context Device Pd Mr Cq Prepared Channel Server ScopeOfC }

pub const TIMEOUT_NEVER: i64 = -1;

pub const ERROR_WORK: u32 = 2;

pub const ACCESS_LOCAL_WRITE: u32 = 0x1;
pub const ACCESS_REMOTE_WRITE: u32 = 0x2;
pub const ACCESS_REMOTE_READ: u32 = 0x4;

pub const OP_SEND: u8 = 0;
pub const OP_RECV: u8 = 1;
pub const OP_WRITE: u8 = 2;
pub const OP_READ: u8 = 3;

pub const WR_IMM: u8 = 0x1;
pub const CQE_IMM: u8 = 0x1;

pub const ENDPOINT_SIZE: usize = 64;
pub const REMOTE_REGION_SIZE: usize = 20;

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Reason {
    pub code: u32,
    pub wr: u32,
    pub element: u32,
    pub reserved: u32,
    pub value: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Error {
    pub code: c_int,
    pub origin: u32,
    pub reason: Reason,
    pub status: u32,
    pub vendor_err: u32,
    pub opcode: u32,
    pub reserved0: u32,
    pub reserved: [u64; 3],
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct MessageParams {
    pub size: u32,
    pub messages: u32,
    pub message_bytes: u32,
    pub reserved: u32,
    pub timeout_ns: i64,
    pub source: *const c_char,
    pub context: *mut Context,
}

pub const NEXT_CONNECTED: u32 = 1;
pub const NEXT_MESSAGE: u32 = 2;
pub const NEXT_WRITABLE: u32 = 3;
pub const NEXT_SENT: u32 = 4;
pub const NEXT_ENDED: u32 = 8;
pub const BY_PEER: u32 = 1;
pub const BY_NETWORK: u32 = 3;
pub const BY_DEVICE: u32 = 4;

#[repr(C)]
pub struct Happening {
    pub kind: u32,
    pub by: u32,
    pub error: c_int,
    pub reserved0: u32,
    pub private: *mut c_void,
    pub channel: *mut Channel,
    pub server: *mut Server,
    pub listener: *mut c_void,
    pub request: *mut c_void,
    pub bytes: *const c_void,
    pub length: u64,
    pub completion: Completion,
    pub reserved: [u64; 4],
}

impl Default for Happening {
    fn default() -> Self {
        // SAFETY: numbers and raw pointers may be zero.
        unsafe { std::mem::zeroed() }
    }
}

#[repr(C)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct RemoteRegion {
    pub addr: u64,
    pub length: u64,
    pub rkey: u32,
    pub reserved: u32,
}

/// In network order, so its bytes are those of the wire.
#[repr(C, align(4))]
#[derive(Clone, Copy)]
pub struct Endpoint {
    pub bytes: [u8; ENDPOINT_SIZE],
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Params {
    pub access: u32,
    pub max_send_wr: u32,
    pub max_recv_wr: u32,
    pub max_send_sge: u32,
    pub max_recv_sge: u32,
    pub rnr_retries: u32,
    pub ack_retries: u32,
    pub min_rnr_timer: u32,
    pub ack_timeout: u32,
    pub mtu: u32,
    pub send_psn: u32,
    pub recv_psn: u32,
    pub port: u32,
    pub gid_index: u32,
    pub max_rd_atomic: u32,
    pub traffic_class: u32,
    pub service_level: u32,
    pub max_inline_data: u32,
}

#[repr(C)]
#[derive(Clone, Copy)]
pub struct Builder {
    pub size: u32,
    pub min_cq_entries: u32,
    pub pd: *mut Pd,
    pub send_cq: *mut Cq,
    pub recv_cq: *mut Cq,
    pub receives: *const c_void,
    pub num_receives: usize,
    pub keepalive_ns: i64,
    pub params: Params,
}

#[repr(C)]
#[derive(Clone, Copy, Default)]
pub struct Sge {
    pub offset: u64,
    pub length: u32,
    pub mr: u32,
}

/// Of the opcodes here: `sges` are the address of the list where there are two or more.
#[repr(C)]
pub struct Wr {
    pub channel: u32,
    pub opcode: u8,
    pub flags: u8,
    pub num_sge: u16,
    pub wr_id: u64,
    pub sges: u64,
    pub remote_addr: u64,
    pub rkey: u32,
    pub imm: u32,
    pub sge: Sge,
    pub remote_length: u64,
}

#[repr(C)]
pub struct Completion {
    pub wr_id: u64,
    pub channel: u32,
    pub status: u16,
    pub opcode: u8,
    pub flags: u8,
    pub bytes: u32,
    pub imm: u32,
    pub error: c_int,
    pub vendor_err: u32,
}

/// The library keeps no pointer to one, so it may be moved.
#[repr(C)]
pub struct Pending {
    pub completion: Completion,
    pub next_failed: *mut Pending,
    pub cq: *mut Cq,
    pub channel: *mut Channel,
    pub scope: *mut ScopeOfC,
    pub next: *mut Pending,
    pub generation: u64,
    pub slot: u32,
    pub state: u32,
    pub seen: u32,
    pub reserved: u32,
    pub more: [u64; 2],
}

/// `struct sockaddr_storage`, as far as one looks at it.
#[repr(C, align(8))]
pub struct SockAddr {
    pub family: u16,
    /// In network order, of both families.
    pub port: [u8; 2],
    pub rest: [u8; 124],
}

/// How `ibchan_mr_reg_local()` and `ibchan_mr_reg_shared()` are called.
pub type MrReg = unsafe extern "C" fn(
    pd: *mut Pd,
    addr: *mut c_void,
    length: usize,
    mr: *mut *mut Mr,
    error: *mut Error,
) -> c_int;

#[link(name = "ibchan")]
extern "C" {
    pub fn ibchan_error_string(error: *const Error) -> *const c_char;
    pub fn ibchan_strerror(code: c_int) -> *const c_char;

    pub fn ibchan_dial(
        host: *const c_char,
        service: *const c_char,
        params: *const MessageParams,
        channel: *mut *mut Channel,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_serve(
        host: *const c_char,
        service: *const c_char,
        params: *const MessageParams,
        server: *mut *mut Server,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_take(
        server: *mut Server,
        timeout_ns: i64,
        channel: *mut *mut Channel,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_server_fd(server: *const Server) -> c_int;
    pub fn ibchan_server_address(server: *const Server, address: *mut SockAddr);
    pub fn ibchan_server_close(server: *mut Server) -> c_int;
    pub fn ibchan_send_bytes(
        channel: *mut Channel,
        bytes: *const c_void,
        length: usize,
        timeout_ns: i64,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_receive_bytes(
        channel: *mut Channel,
        buf: *mut c_void,
        room: usize,
        timeout_ns: i64,
        error: *mut Error,
    ) -> isize;
    pub fn ibchan_post_bytes(
        channel: *mut Channel,
        bytes: *const c_void,
        length: usize,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_channel_message_params(
        channel: *const Channel,
        agreed: *mut MessageParams,
    ) -> c_int;
    pub fn ibchan_channel_set_priv(channel: *mut Channel, private: *mut c_void);
    pub fn ibchan_next(
        context: *mut Context,
        timeout_ns: i64,
        happening: *mut Happening,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_next_fd(context: *mut Context) -> c_int;
    pub fn ibchan_channel_break(channel: *mut Channel) -> c_int;
    pub fn ibchan_channel_close(channel: *mut Channel) -> c_int;

    pub fn ibchan_context_open(context: *mut *mut Context, error: *mut Error) -> c_int;
    pub fn ibchan_context_close(context: *mut Context) -> c_int;
    pub fn ibchan_device_open(
        context: *mut Context,
        name: *const c_char,
        device: *mut *mut Device,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_device_open_for(
        context: *mut Context,
        host: *const c_char,
        source: *const c_char,
        device: *mut *mut Device,
        error: *mut Error,
    ) -> c_int;

    pub fn ibchan_pd_alloc(device: *mut Device, pd: *mut *mut Pd, error: *mut Error) -> c_int;
    pub fn ibchan_pd_free(pd: *mut Pd) -> c_int;
    pub fn ibchan_mr_reg_local(
        pd: *mut Pd,
        addr: *mut c_void,
        length: usize,
        mr: *mut *mut Mr,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_mr_reg_shared(
        pd: *mut Pd,
        addr: *mut c_void,
        length: usize,
        mr: *mut *mut Mr,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_mr_dereg(mr: *mut Mr) -> c_int;
    pub fn ibchan_mr_remote_region(mr: *const Mr, region: *mut RemoteRegion) -> c_int;
    pub fn ibchan_remote_region_sub(
        region: *const RemoteRegion,
        offset: u64,
        length: u64,
        sub: *mut RemoteRegion,
    ) -> c_int;
    pub fn ibchan_remote_region_to_bytes(region: *const RemoteRegion, bytes: *mut c_void);
    pub fn ibchan_remote_region_from_bytes(
        region: *mut RemoteRegion,
        bytes: *const c_void,
        size: usize,
    ) -> c_int;

    pub fn ibchan_builder_init_size(builder: *mut Builder, size: usize, pd: *mut Pd, cq: *mut Cq);
    pub fn ibchan_builder_prepare(
        builder: *const Builder,
        prepared: *mut *mut Prepared,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_prepared_endpoint(prepared: *const Prepared, endpoint: *mut Endpoint);
    pub fn ibchan_prepared_channel(prepared: *mut Prepared) -> *mut Channel;
    pub fn ibchan_prepared_handshake(
        prepared: *mut Prepared,
        peer: *const Endpoint,
        channel: *mut *mut Channel,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_prepared_destroy(prepared: *mut Prepared) -> c_int;
    pub fn ibchan_endpoint_to_bytes(endpoint: *const Endpoint, bytes: *mut c_void);
    pub fn ibchan_endpoint_from_bytes(
        endpoint: *mut Endpoint,
        bytes: *const c_void,
        length: usize,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_ack_timeout_from_ns(ns: i64) -> c_int;
    pub fn ibchan_rnr_timer_from_ns(ns: i64) -> c_int;

    pub fn ibchan_sge_unchecked(mr: *const Mr, offset: usize, length: usize) -> Sge;
    pub fn ibchan_sge_plain(addr: *mut c_void, length: usize) -> Sge;
    pub fn ibchan_channel_handle(channel: *const Channel) -> u32;
    pub fn ibchan_pending_post(
        pending: *mut Pending,
        channel: *mut Channel,
        wr: *const Wr,
        error: *mut Error,
    ) -> c_int;
    pub fn ibchan_pending_poll(pending: *mut Pending) -> c_int;
    pub fn ibchan_pending_wait(pending: *mut Pending, timeout_ns: i64) -> c_int;
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::env;
    use std::fmt::Write;
    use std::mem::{align_of, size_of, MaybeUninit};
    use std::ptr::addr_of;

    fn size_behind<T>(_: *const T) -> usize {
        size_of::<T>()
    }

    /// A line for the struct and one for each member, as the test in C writes them.
    macro_rules! layout {
        ($text:ident, $name:literal, $type:ty, $($member:ident)*) => {
            let place = MaybeUninit::<$type>::uninit();
            let start = place.as_ptr();
            let (size, align) = (size_of::<$type>(), align_of::<$type>());

            writeln!($text, "{} {size} {align}", $name).unwrap();
            $(
                // SAFETY: the address of a member is taken, and nothing is read.
                let member = unsafe { addr_of!((*start).$member) };
                let offset = member as usize - start as usize;

                writeln!($text, "{} {offset} {}", stringify!($member), size_behind(member)).unwrap();
            )*
        };
    }

    macro_rules! constants {
        ($text:ident, $($name:ident)*) => {
            $( writeln!($text, "{} {}", stringify!($name), $name as i64).unwrap(); )*
        };
    }

    /// What the headers say is in the variable IBCHAN_LAYOUT.
    #[test]
    #[ignore = "the program shim_rust_test runs it"]
    fn structs_are_those_of_the_headers() {
        let mut text = String::new();

        layout!(text, "reason", Reason, code wr element reserved value);
        layout!(text, "error", Error,
            code origin reason status vendor_err opcode reserved0 reserved);
        layout!(text, "message_params", MessageParams,
            size messages message_bytes reserved timeout_ns source context);
        layout!(text, "remote_region", RemoteRegion, addr length rkey reserved);
        layout!(text, "endpoint", Endpoint, bytes);
        layout!(text, "params", Params,
            access max_send_wr max_recv_wr max_send_sge max_recv_sge rnr_retries ack_retries
            min_rnr_timer ack_timeout mtu send_psn recv_psn port gid_index max_rd_atomic
            traffic_class service_level max_inline_data);
        layout!(text, "builder", Builder,
            size min_cq_entries pd send_cq recv_cq receives num_receives keepalive_ns params);
        layout!(text, "sge", Sge, offset length mr);
        layout!(text, "wr", Wr,
            channel opcode flags num_sge wr_id sges remote_addr rkey imm sge remote_length);
        layout!(text, "completion", Completion,
            wr_id channel status opcode flags bytes imm error vendor_err);
        layout!(text, "happening", Happening,
            kind by error reserved0 channel server listener request bytes length completion
            reserved);
        layout!(text, "pending", Pending,
            completion next_failed cq channel scope next generation slot state seen reserved more);
        layout!(text, "sockaddr", SockAddr, port);
        constants!(text,
            TIMEOUT_NEVER ERROR_WORK ACCESS_LOCAL_WRITE ACCESS_REMOTE_WRITE ACCESS_REMOTE_READ
            NEXT_CONNECTED NEXT_MESSAGE NEXT_WRITABLE NEXT_SENT NEXT_ENDED
            BY_PEER BY_NETWORK BY_DEVICE
            OP_SEND OP_RECV OP_WRITE OP_READ WR_IMM CQE_IMM ENDPOINT_SIZE REMOTE_REGION_SIZE);

        assert_eq!(text, env::var("IBCHAN_LAYOUT").unwrap());
    }
}
