// SPDX-License-Identifier: LGPL-2.1-or-later
use crate::channel::Channel;
use crate::error::{Error, Result};
use crate::message::nanoseconds;
use crate::pending::Work;
use crate::work::{
    ReadWorkRequest, ReceiveWorkRequest, Request, SendWorkRequest, WorkSuccess, WriteWorkRequest,
};
use std::cell::RefCell;
use std::error;
use std::fmt;
use std::marker::PhantomData;
use std::panic::{catch_unwind, resume_unwind, AssertUnwindSafe};
use std::rc::Rc;
use std::time::{Duration, Instant};

struct Node {
    work: Work,
    /// The block has seen how it ended.
    seen: bool,
}

impl Node {
    fn see(&mut self) -> Result<WorkSuccess> {
        self.seen = true;
        self.work.result()
    }
}

/// A block of code whose works end before it does. [`Channel::scope`] makes one.
///
/// It has the shape of [`std::thread::scope`]: works borrow what outlives the block, until it has been
/// left. What they receive can be looked at behind it:
///
/// ```no_run
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::ReceiveWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion, bytes: &mut [u8]) -> Result<(), Box<dyn std::error::Error>> {
/// channel.scope(|s| {
///     s.post_receive(ReceiveWorkRequest::new(&mut [mr.scatter_element(bytes)]))?;
///     Ok::<(), Error>(())
/// })?;
/// println!("{}", bytes[0]);
/// # Ok(())
/// # }
/// ```
///
/// and not before:
///
/// ```compile_fail,E0503
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::ReceiveWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion, bytes: &mut [u8]) -> Result<(), Box<dyn std::error::Error>> {
/// channel.scope(|s| {
///     s.post_receive(ReceiveWorkRequest::new(&mut [mr.scatter_element(bytes)]))?;
///     println!("{}", bytes[0]);
///     Ok::<(), Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// Nor is what is sent changed meanwhile:
///
/// ```compile_fail,E0506
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::SendWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion, bytes: &mut [u8]) -> Result<(), Box<dyn std::error::Error>> {
/// channel.scope(|s| {
///     s.post_send(SendWorkRequest::new(&[mr.gather_element(bytes)]))?;
///     bytes[0] = 1;
///     Ok::<(), Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// Memory of the block itself does not outlive it:
///
/// ```compile_fail,E0597
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::SendWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion) -> Result<(), Box<dyn std::error::Error>> {
/// channel.scope(|s| {
///     let bytes = [0; 64];
///     s.post_send(SendWorkRequest::new(&[mr.gather_element(&bytes)]))?;
///     Ok::<(), Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct PollingScope<'scope, 'env: 'scope> {
    channel: &'env Channel,
    nodes: RefCell<Vec<Rc<RefCell<Node>>>>,
    _scope: PhantomData<&'scope mut &'scope ()>,
    _env: PhantomData<&'env mut &'env ()>,
}

impl<'scope, 'env> PollingScope<'scope, 'env> {
    fn new(channel: &'env Channel) -> Self {
        PollingScope {
            channel,
            nodes: RefCell::new(Vec::new()),
            _scope: PhantomData,
            _env: PhantomData,
        }
    }

    /// Posts a send.
    pub fn post_send(
        &'scope self,
        request: SendWorkRequest<'_, 'scope>,
    ) -> Result<ScopedPendingWork<'scope>> {
        self.post(&request)
    }

    /// Posts a receive.
    pub fn post_receive(
        &'scope self,
        request: ReceiveWorkRequest<'_, 'scope>,
    ) -> Result<ScopedPendingWork<'scope>> {
        self.post(&request)
    }

    /// Posts a write.
    pub fn post_write(
        &'scope self,
        request: WriteWorkRequest<'_, 'scope>,
    ) -> Result<ScopedPendingWork<'scope>> {
        self.post(&request)
    }

    /// Posts a read.
    pub fn post_read(
        &'scope self,
        request: ReadWorkRequest<'_, 'scope>,
    ) -> Result<ScopedPendingWork<'scope>> {
        self.post(&request)
    }

    fn post(&'scope self, request: &impl Request) -> Result<ScopedPendingWork<'scope>> {
        let mut nodes = self.nodes.borrow_mut();

        // Behind the post nothing may panic before the work is in the list.
        nodes.reserve(1);
        // SAFETY: what the elements borrow outlives 'scope, which ends behind `end()`.
        let work = unsafe { self.channel.start(request)? };
        let node = Rc::new(RefCell::new(Node { work, seen: false }));

        nodes.push(Rc::clone(&node));
        Ok(ScopedPendingWork {
            node,
            _scope: PhantomData,
        })
    }

    /// All works have ended afterwards. Breaks the channel when the time is over. Returns the
    /// failures of works that the block has not seen end, and how many those works are.
    fn end(&self, deadline: Option<Instant>) -> (Vec<Error>, usize) {
        let mut failed = Vec::new();
        let mut unseen = 0;

        for node in self.nodes.borrow().iter() {
            let mut node = node.borrow_mut();

            self.complete(&mut node.work, deadline);
            if node.seen {
                continue;
            }
            unseen += 1;
            failed.extend(node.see().err());
        }
        (failed, unseen)
    }

    fn complete(&self, work: &mut Work, deadline: Option<Instant>) {
        if let Some(deadline) = deadline {
            let left = deadline.saturating_duration_since(Instant::now());

            if work.wait(nanoseconds(left)) {
                return;
            }
            // If it is broken already, or gone, its works end as well.
            let _ = self.channel.shutdown();
        }
        work.finish();
    }
}

impl fmt::Debug for PollingScope<'_, '_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PollingScope").finish_non_exhaustive()
    }
}

/// A work of a scope. To drop or to forget it changes nothing: its scope waits for the work.
///
/// It does not leave the scope:
///
/// ```compile_fail
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::SendWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// let pending = channel.scope(|s| {
///     let pending = s.post_send(SendWorkRequest::new(&[mr.gather_element(bytes)]))?;
///     Ok::<_, Error>(pending)
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// How it ended may:
///
/// ```no_run
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::SendWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// let success = channel.scope(|s| {
///     let pending = s.post_send(SendWorkRequest::new(&[mr.gather_element(bytes)]))?;
///     Ok::<_, Error>(pending.wait()?)
/// })?;
/// # Ok(())
/// # }
/// ```
///
/// It is its thread's own, as the scope is:
///
/// ```compile_fail,E0277
/// # use ibchan::{Channel, Error, memory::MemoryRegion, work::SendWorkRequest};
/// # fn f(channel: &Channel, mr: &MemoryRegion, bytes: &[u8]) -> Result<(), Box<dyn std::error::Error>> {
/// channel.scope(|s| {
///     let pending = s.post_send(SendWorkRequest::new(&[mr.gather_element(bytes)]))?;
///     std::thread::scope(|threads| {
///         threads.spawn(move || pending.wait().is_ok());
///     });
///     Ok::<(), Error>(())
/// })?;
/// # Ok(())
/// # }
/// ```
pub struct ScopedPendingWork<'scope> {
    node: Rc<RefCell<Node>>,
    _scope: PhantomData<&'scope mut &'scope ()>,
}

impl ScopedPendingWork<'_> {
    /// How it ended, if it has. Makes no system call.
    pub fn poll(&self) -> Option<Result<WorkSuccess>> {
        let mut node = self.node.borrow_mut();
        let ended = node.work.has_ended();

        ended.then(|| node.see())
    }

    /// Waits until it has ended.
    pub fn wait(&self) -> Result<WorkSuccess> {
        let mut node = self.node.borrow_mut();

        node.work.finish();
        node.see()
    }

    /// Waits until it has ended, or the time is over: then it is still in flight.
    pub fn wait_timeout(&self, timeout: Duration) -> Option<Result<WorkSuccess>> {
        let mut node = self.node.borrow_mut();
        let ended = node.work.wait(nanoseconds(timeout));

        ended.then(|| node.see())
    }
}

impl fmt::Debug for ScopedPendingWork<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ScopedPendingWork").finish_non_exhaustive()
    }
}

/// What has failed in a scope.
#[derive(Debug)]
pub enum ScopeError<E> {
    /// The block has returned an error. What works did that it had not seen end is not told.
    ClosureError(E),
    /// The block has succeeded, but not all of the works that it has not seen end: these errors, in
    /// the order of their posts.
    AutoPollError(Vec<Error>),
}

impl<E> From<E> for ScopeError<E> {
    fn from(error: E) -> Self {
        ScopeError::ClosureError(error)
    }
}

impl<E: fmt::Display> fmt::Display for ScopeError<E> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ScopeError::ClosureError(error) => error.fmt(f),
            ScopeError::AutoPollError(errors) => match &errors[..] {
                [first] => first.fmt(f),
                [first, rest @ ..] => write!(f, "{first} (and {} more)", rest.len()),
                [] => f.write_str("no error"),
            },
        }
    }
}

impl<E: error::Error + 'static> error::Error for ScopeError<E> {
    fn source(&self) -> Option<&(dyn error::Error + 'static)> {
        match self {
            ScopeError::ClosureError(error) => Some(error),
            ScopeError::AutoPollError(errors) => errors.first().map(|error| error as _),
        }
    }
}

impl Channel {
    /// A block of code; leaving it waits for the works that were posted in it.
    ///
    /// Also when it panics. Works that it has not seen end are looked at then: see [`ScopeError`].
    pub fn scope<'env, T, E, F>(&'env self, block: F) -> std::result::Result<T, ScopeError<E>>
    where
        F: for<'scope> FnOnce(&'scope PollingScope<'scope, 'env>) -> std::result::Result<T, E>,
    {
        let (result, failed, _) = self.run(None, block);
        let value = result.map_err(ScopeError::ClosureError)?;

        if !failed.is_empty() {
            return Err(ScopeError::AutoPollError(failed));
        }
        Ok(value)
    }

    /// The same for a limited time. When that is over and works are in flight at the end of the
    /// block, the channel breaks, and they end with an error.
    pub fn scope_timeout<'env, T, E, F>(
        &'env self,
        timeout: Duration,
        block: F,
    ) -> std::result::Result<T, ScopeError<E>>
    where
        F: for<'scope> FnOnce(&'scope PollingScope<'scope, 'env>) -> std::result::Result<T, E>,
    {
        let (result, failed, _) = self.run(Instant::now().checked_add(timeout), block);
        let value = result.map_err(ScopeError::ClosureError)?;

        if !failed.is_empty() {
            return Err(ScopeError::AutoPollError(failed));
        }
        Ok(value)
    }

    /// A block that looks at each of its works itself, and returns its own error as it is.
    ///
    /// # Panics
    ///
    /// When the block succeeds, and has not seen all of its works end. They have ended by then.
    pub fn manual_scope<'env, T, E, F>(&'env self, block: F) -> std::result::Result<T, E>
    where
        F: for<'scope> FnOnce(&'scope PollingScope<'scope, 'env>) -> std::result::Result<T, E>,
    {
        let (result, _, unseen) = self.run(None, block);

        assert!(
            result.is_err() || unseen == 0,
            "a manual scope has left {unseen} works unpolled"
        );
        result
    }

    fn run<'env, T, E, F>(
        &'env self,
        deadline: Option<Instant>,
        block: F,
    ) -> (std::result::Result<T, E>, Vec<Error>, usize)
    where
        F: for<'scope> FnOnce(&'scope PollingScope<'scope, 'env>) -> std::result::Result<T, E>,
    {
        let scope = PollingScope::new(self);
        // As in std: what the block has left in disorder is seen by nobody, for the panic goes on.
        let result = catch_unwind(AssertUnwindSafe(|| block(&scope)));
        let (failed, unseen) = scope.end(deadline);

        match result {
            Ok(result) => (result, failed, unseen),
            Err(panic) => resume_unwind(panic),
        }
    }
}
