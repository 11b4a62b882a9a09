//! MPI windows: operations of a window, completed by a flush.

use crate::lab::{Contender, Lab, Library, Operation};
use crate::plan::Case;
use crate::result::Result;

/// Runs the operation `window` times and flushes. `None` if MPI windows are not a bound.
pub fn flushed<'a>(
    lab: &'a Lab<'_>,
    case: Case,
    operation: Operation,
    window: usize,
) -> Result<Option<Contender<'a>>> {
    if !lab.bounds.rma {
        return Ok(None);
    }
    let targets = lab.targets(case.pattern);
    let length = case.bytes;
    let copies = if operation == Operation::Get { window } else { 1 };
    let mut local = vec![0u8; if targets.is_empty() { 0 } else { length * copies }];
    let mpi = lab.window()?;
    let body = move |n| {
        if targets.is_empty() {
            return Ok(());
        }
        for turn in 0..n {
            mpi.run(operation, targets[turn % targets.len()], &mut local, (length, window))?;
        }
        Ok(())
    };
    Ok(Some(Contender::new("MPI RMA", Library::Mpi, true, window, body)))
}
