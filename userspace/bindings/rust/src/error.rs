// SPDX-License-Identifier: LGPL-2.1-or-later
use crate::ffi;
use std::ffi::CStr;
use std::fmt;
use std::io;
use std::os::raw::{c_char, c_int};

/// Why a call failed: what the library says of it, and what to do about it.
#[derive(Clone, PartialEq, Eq)]
pub struct Error {
    errno: i32,
    status: u32,
    reason: u32,
    text: Box<str>,
}

/// What the calls of this crate return.
pub type Result<T> = std::result::Result<T, Error>;

impl Error {
    /// The positive number of the error, as in `<errno.h>`.
    pub fn errno(&self) -> i32 {
        self.errno
    }

    /// The class that the standard library puts the number in.
    pub fn kind(&self) -> io::ErrorKind {
        io::Error::from_raw_os_error(self.errno).kind()
    }

    /// The status of the work that failed, `enum ibchan_status` of `<linux/ibchan_codes.h>`; `None`
    /// if a call was refused, or its time was over.
    pub fn status(&self) -> Option<u32> {
        (self.status != 0).then_some(self.status)
    }

    /// The rule that was broken, `enum ibchan_reason_code` of `<linux/ibchan_codes.h>`; 0: the number
    /// says it all.
    pub fn reason(&self) -> u32 {
        self.reason
    }

    /// Of a call that gives no details.
    pub(crate) fn of_code(code: c_int) -> Self {
        // SAFETY: it takes any number.
        let text = unsafe { text(ffi::ibchan_strerror(code)) };

        Error {
            errno: -code,
            status: 0,
            reason: 0,
            text,
        }
    }

    pub(crate) fn of_details(details: &ffi::Error) -> Self {
        // SAFETY: the struct is whole, and the string is copied before this thread's next call.
        let text = unsafe { text(ffi::ibchan_error_string(details)) };

        Error {
            errno: -details.code,
            status: details.status,
            reason: details.reason.code,
            text,
        }
    }

    /// Of an argument that no call was made with.
    pub(crate) fn of_argument(text: &str) -> Self {
        const EINVAL: i32 = 22;

        Error {
            errno: EINVAL,
            status: 0,
            reason: 0,
            text: text.into(),
        }
    }
}

/// # Safety
///
/// `string` has to be a string of C's that lives until this returns.
unsafe fn text(string: *const c_char) -> Box<str> {
    // SAFETY: as the caller has promised.
    let string = unsafe { CStr::from_ptr(string) };

    string.to_string_lossy().into()
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

/// The text as well: `fn main()` that returns an error prints this one.
impl fmt::Debug for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text)
    }
}

impl std::error::Error for Error {}

impl From<Error> for io::Error {
    fn from(error: Error) -> Self {
        io::Error::new(error.kind(), error)
    }
}

/// Makes a call that takes a `struct ibchan_error`; passes on what it returns.
pub(crate) fn call(function: impl FnOnce(*mut ffi::Error) -> c_int) -> Result<c_int> {
    let mut details = ffi::Error::default();
    let result = function(&mut details);

    if result < 0 {
        return Err(Error::of_details(&details));
    }
    Ok(result)
}

/// The same for a call that gives no details.
pub(crate) fn check(result: c_int) -> Result<c_int> {
    if result < 0 {
        return Err(Error::of_code(result));
    }
    Ok(result)
}
