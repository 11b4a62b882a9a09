//! Groups of tasks, and the multicast to a group.
//!
//! The task that created a group keeps its list, so creating and freeing are local calls. A
//! multicast is one active message to each member in order, without counters. Its send completion
//! handler runs once, when the header and data of all messages may be modified again.

use super::amsend::{self, Message};
use super::context::{Context, call, enter};
use super::outcome::{Outcome, refuse};
use super::types::Hook;
use super::types::{Handle, McXfer, SendHandler, SendInfo};
use super::{context, messages};
use crate::boundary::{array, export};
use portolan_base::error::{Error, ErrorKind};
use std::os::raw::{c_int, c_uint, c_void};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Each member must be a task of the job, and none may occur twice.
fn check(context: &Context, members: &[c_uint]) -> Outcome {
    let mut seen = vec![false; context.tasks()];
    for &member in members {
        match seen.get_mut(member as usize) {
            Some(seen) if !*seen => *seen = true,
            Some(_) => refuse!(messages::GRP_MEMBER, "task {member} is in the list twice"),
            None => refuse!(
                messages::GRP_MEMBER,
                "task {member} is outside the {} tasks of the job",
                context.tasks()
            ),
        }
    }
    Ok(())
}

export! {
    LAPI_Group_create / PLAPI_Group_create(
        hndl: Handle, num_tasks: c_uint, task_list: *mut c_uint, group: *mut c_uint,
    ) -> c_int = call(|| {
        let (context, _) = enter(hndl)?;
        let tasks = context.tasks();
        if num_tasks == 0 || num_tasks as usize > tasks {
            refuse!(messages::TASK_NUM, "{num_tasks} members, but 1 to {tasks} are possible");
        }
        if task_list.is_null() {
            refuse!(messages::NULL_LIST, "the list of tasks is null");
        }
        if group.is_null() {
            refuse!(messages::NULL_GRP, "the pointer to the group is null");
        }
        // SAFETY: the caller guarantees that `task_list` has `num_tasks` elements.
        let members = unsafe { array(task_list, num_tasks as usize, "the list of tasks") }?;
        check(context, members)?;
        // SAFETY: `group` is not null, and the caller guarantees that it is writable.
        unsafe { group.write(context.groups.add(members)) };
        Ok(())
    });

    /// Transfers that have begun continue. Local.
    LAPI_Group_free / PLAPI_Group_free(hndl: Handle, group: c_uint) -> c_int = call(|| {
        let (context, _) = enter(hndl)?;
        context.groups.remove(group)
    });
}

/// Shared by the messages of a multicast: the number not sent yet, the group, and the handler.
struct Shared {
    left: AtomicUsize,
    group: c_uint,
    sent: Hook<SendHandler>,
}

/// Runs when the message to one member has been sent.
unsafe extern "C" fn one_has_left(hndl: *mut Handle, shared: *mut c_void, info: *mut SendInfo) {
    // SAFETY: each message of a multicast owns one reference, made by `Arc::into_raw`.
    let shared = unsafe { Arc::from_raw(shared.cast::<Shared>()) };
    if shared.left.fetch_sub(1, Ordering::AcqRel) == 1 {
        let Hook(handler, sinfo) = shared.sent;
        // SAFETY: `info` is a live local. The program passed the handler with its argument.
        unsafe {
            (*info).src = shared.group;
            handler(hndl, sinfo, info);
        }
    }
}

/// # Safety
/// Header and data must be valid, the data until the send completion handler or a fence.
pub(crate) unsafe fn multicast(hndl: Handle, x: &McXfer) -> Outcome {
    let (context, _) = enter(hndl)?;
    let members = context.groups.get(x.group)?;
    let message = |tgt: c_uint, sent| Message {
        tgt,
        hdr_hdl: x.hdr_hdl,
        uhdr: x.uhdr,
        uhdr_len: x.uhdr_len,
        sent,
        tgt_cntr: 0,
        org_cntr: std::ptr::null(),
        cmpl_cntr: std::ptr::null(),
    };
    // All messages are checked first, so that an invalid one sends none.
    for &member in members.iter() {
        message(member, None).check(context)?;
    }
    amsend::check_data(x.udata, x.udata_len)?;
    let shared = x.shdlr.map(|handler| {
        let left = AtomicUsize::new(members.len());
        Arc::new(Shared { left, group: x.group, sent: Hook(handler, x.sinfo) })
    });
    for (n, &member) in members.iter().enumerate() {
        let sent = shared.as_ref().map(|shared| {
            let count = Arc::into_raw(shared.clone()).cast_mut().cast::<c_void>();
            Hook(one_has_left as SendHandler, count)
        });
        // SAFETY: by contract, header and data are valid until the message has been sent.
        let done = unsafe { amsend::send(hndl, &message(member, sent), x.udata, x.udata_len) };
        if let Err(failure) = done {
            if n == 0 {
                // The message may have been sent, so the reference that it holds is leaked.
                return Err(failure);
            }
            // Some members have the message, but the others will never get it.
            let text = format!("a multicast ended after {n} of {} members", members.len());
            context::fatal(&Error::new(ErrorKind::State, text));
        }
    }
    Ok(())
}
