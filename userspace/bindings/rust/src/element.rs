// SPDX-License-Identifier: LGPL-2.1-or-later
use crate::error::{Error, Result};
use crate::ffi;
use crate::memory::MemoryRegion;
use std::fmt;
use std::marker::PhantomData;
use std::slice;

/// A range of a region that a work reads: of a send, or of a write.
///
/// It borrows the region and the bytes: neither can go, and nobody can write the bytes, as long as
/// the element is there or a work has it.
///
/// Elements do not outlive their region:
///
/// ```compile_fail,E0597
/// # fn f(pd: &ibchan::ProtectionDomain, bytes: &[u8]) -> ibchan::Result<()> {
/// let element;
/// {
///     let mr = pd.register_local_mr_slice(bytes)?;
///     element = mr.gather_element(bytes);
/// }
/// drop(element);
/// # Ok(())
/// # }
/// ```
///
/// ```no_run
/// # fn f(pd: &ibchan::ProtectionDomain, bytes: &[u8]) -> ibchan::Result<()> {
/// let mr = pd.register_local_mr_slice(bytes)?;
/// let element = mr.gather_element(bytes);
/// drop(element);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy)]
#[repr(transparent)]
pub struct GatherElement<'a> {
    sge: ffi::Sge,
    _borrowed: PhantomData<&'a [u8]>,
}

/// A range of a region that a work writes into: of a receive, or of a read.
///
/// It borrows the region, and the bytes for itself: nobody can look at them as long as the element
/// is there or a work has it.
///
/// ```compile_fail,E0502
/// # fn f(mr: &ibchan::memory::MemoryRegion, bytes: &mut [u8]) {
/// let element = mr.scatter_element(bytes);
/// println!("{}", bytes[0]);
/// drop(element);
/// # }
/// ```
///
/// ```no_run
/// # fn f(mr: &ibchan::memory::MemoryRegion, bytes: &mut [u8]) {
/// let element = mr.scatter_element(bytes);
/// drop(element);
/// println!("{}", bytes[0]);
/// # }
/// ```
#[repr(transparent)]
pub struct ScatterElement<'a> {
    sge: ffi::Sge,
    _borrowed: PhantomData<&'a mut [u8]>,
}

/// Data below the region have an offset that no region is as long as.
fn element(mr: &MemoryRegion, data: &[u8]) -> ffi::Sge {
    let offset = (data.as_ptr() as usize).wrapping_sub(mr.start());

    // SAFETY: the region is there.
    unsafe { ffi::ibchan_sge_unchecked(mr.raw(), offset, data.len()) }
}

fn checked(mr: &MemoryRegion, data: &[u8]) -> Result<()> {
    if !mr.encloses_slice(data) {
        return Err(Error::of_argument("the slice does not lie in the region"));
    }
    if u32::try_from(data.len()).is_err() {
        return Err(Error::of_argument("an element of 4 GiB or more"));
    }
    Ok(())
}

impl<'a> GatherElement<'a> {
    /// An element. Panics when the data are not in the region.
    pub fn new(mr: &'a MemoryRegion, data: &'a [u8]) -> Self {
        Self::new_checked(mr, data).unwrap_or_else(|error| panic!("{error}"))
    }

    /// An element, or an error when the data are not in the region.
    pub fn new_checked(mr: &'a MemoryRegion, data: &'a [u8]) -> Result<Self> {
        checked(mr, data)?;
        Ok(Self::new_unchecked(mr, data))
    }

    /// An element, as given: a post refuses it when the data are not in the region.
    pub fn new_unchecked(mr: &'a MemoryRegion, data: &'a [u8]) -> Self {
        Self::of_shared(element(mr, data))
    }

    pub(crate) fn of_shared(sge: ffi::Sge) -> Self {
        GatherElement {
            sge,
            _borrowed: PhantomData,
        }
    }

    /// They have the form of C's.
    pub(crate) fn as_c(elements: &[Self]) -> &[ffi::Sge] {
        // SAFETY: each is nothing but one of C's.
        unsafe { slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) }
    }
}

impl<'a> ScatterElement<'a> {
    /// An element. Panics when the data are not in the region.
    pub fn new(mr: &'a MemoryRegion, data: &'a mut [u8]) -> Self {
        Self::new_checked(mr, data).unwrap_or_else(|error| panic!("{error}"))
    }

    /// An element, or an error when the data are not in the region.
    pub fn new_checked(mr: &'a MemoryRegion, data: &'a mut [u8]) -> Result<Self> {
        checked(mr, data)?;
        Ok(Self::new_unchecked(mr, data))
    }

    /// An element, as given: a post refuses it when the data are not in the region.
    pub fn new_unchecked(mr: &'a MemoryRegion, data: &'a mut [u8]) -> Self {
        Self::of_shared(element(mr, data))
    }

    pub(crate) fn of_shared(sge: ffi::Sge) -> Self {
        ScatterElement {
            sge,
            _borrowed: PhantomData,
        }
    }

    /// They have the form of C's.
    pub(crate) fn as_c(elements: &[Self]) -> &[ffi::Sge] {
        // SAFETY: each is nothing but one of C's.
        unsafe { slice::from_raw_parts(elements.as_ptr().cast(), elements.len()) }
    }
}

impl fmt::Debug for GatherElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GatherElement")
            .field("length", &self.sge.length)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for ScatterElement<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScatterElement")
            .field("length", &self.sge.length)
            .finish_non_exhaustive()
    }
}
