// SPDX-License-Identifier: LGPL-2.1-or-later
use crate::error::{call, Error, Result};
use crate::ffi;
use crate::memory::ProtectionDomain;
use std::ffi::CString;
use std::fmt;
use std::net::IpAddr;
use std::ptr;
use std::sync::Arc;

/// Opens a device by its name, as `ibchan devices` lists them.
pub fn open_device(name: impl AsRef<str>) -> Result<Context> {
    let name = CString::new(name.as_ref())
        .map_err(|_| Error::of_argument("a device's name with a NUL in it"))?;

    Context::open(Some(name))
}

/// Opens the first device that there is.
pub fn open_first_device() -> Result<Context> {
    Context::open(None)
}

/// Opens the device that leads to a host, which is a name or an IP address, from an address of
/// this host; `None`: from the one that the route says, which is outside of all VRFs.
pub fn open_device_for(host: &str, source: Option<IpAddr>) -> Result<Context> {
    let host = CString::new(host).map_err(|_| Error::of_argument("a name with a NUL in it"))?;
    let source = source.map(address);
    let source = source
        .as_ref()
        .map_or(ptr::null(), |source| source.as_ptr());
    let mut opened = Opened::new()?;

    call(|error| {
        // SAFETY: the context is open, and the strings live until the call returns; the source
        // may be null.
        unsafe {
            ffi::ibchan_device_open_for(
                opened.context,
                host.as_ptr(),
                source,
                &mut opened.device,
                error,
            )
        }
    })?;
    Ok(Context(Arc::new(opened)))
}

/// As the library reads it.
pub(crate) fn address(address: IpAddr) -> CString {
    CString::new(address.to_string()).expect("an address has no NUL")
}

/// The library's objects, which end with the last that uses them.
pub(crate) struct Opened {
    context: *mut ffi::Context,
    pub(crate) device: *mut ffi::Device,
}

// SAFETY: the library takes any call on an object from any thread.
unsafe impl Send for Opened {}
// SAFETY: the same at the same time; only closing has to be alone, and that takes the object.
unsafe impl Sync for Opened {}

impl Opened {
    fn new() -> Result<Self> {
        let mut context = ptr::null_mut();

        call(|error| {
            // SAFETY: the pointers are those of variables.
            unsafe { ffi::ibchan_context_open(&mut context, error) }
        })?;
        Ok(Opened {
            context,
            device: ptr::null_mut(),
        })
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        // SAFETY: what was made of it has a share in it, and has ended before. What of that the
        // kernel did not let go ends here, the device with it.
        unsafe { ffi::ibchan_context_close(self.context) };
    }
}

/// A device that is open. Clones are the same one; it is closed when all that was made of it has
/// ended.
#[derive(Clone)]
pub struct Context(pub(crate) Arc<Opened>);

impl Context {
    fn open(name: Option<CString>) -> Result<Self> {
        let mut opened = Opened::new()?;
        let name = name.as_ref().map_or(ptr::null(), |name| name.as_ptr());

        call(|error| {
            // SAFETY: the context is open, and the string lives until the call returns, or is null.
            unsafe { ffi::ibchan_device_open(opened.context, name, &mut opened.device, error) }
        })?;
        Ok(Context(Arc::new(opened)))
    }

    /// Makes a protection domain: memory and channels meet only inside one.
    pub fn allocate_pd(&self) -> Result<ProtectionDomain> {
        ProtectionDomain::new(self)
    }
}

impl fmt::Debug for Context {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Context").finish_non_exhaustive()
    }
}
