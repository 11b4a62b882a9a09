//! Vector shapes: blocks of one length at arbitrary addresses.

/// `block` bytes for each pair of addresses.
#[derive(Debug, Clone, Copy)]
pub struct Vector<'a> {
    pub block: usize,
    pub local: &'a [usize],
    pub remote: &'a [usize],
}

impl<'a> Vector<'a> {
    /// Returns the blocks as `(local, remote, bytes)`, joined if adjacent on both sides.
    pub fn joined(self) -> impl Iterator<Item = (usize, usize, usize)> + 'a {
        let mut pairs = self.local.iter().copied().zip(self.remote.iter().copied()).peekable();
        let block = self.block;
        std::iter::from_fn(move || {
            let (local, remote) = pairs.next()?;
            let mut bytes = block;
            while let Some(&(l, r)) = pairs.peek() {
                if local.checked_add(bytes) != Some(l) || remote.checked_add(bytes) != Some(r) {
                    break;
                }
                bytes += block;
                pairs.next();
            }
            Some((local, remote, bytes))
        })
    }
}
