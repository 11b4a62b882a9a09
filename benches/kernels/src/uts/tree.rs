//! The tree. A node is a hash and a height, which determine its children.

use super::sha1::sha1;

/// The seed of T1.
const SEED: u32 = 19;
const BRANCHING: f64 = 4.0;
const MOST_CHILDREN: u32 = 100;

/// A node, as three words, so that it can lie in memory of words.
#[derive(Debug, Clone, Copy, PartialEq, Eq, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C, align(8))]
pub struct Node {
    hash: [u8; 20],
    height: u32,
}

pub const WORDS: usize = size_of::<Node>() / 8;

pub fn root() -> Node {
    let mut message = [0; 20];
    message[16..].copy_from_slice(&SEED.to_be_bytes());
    Node { hash: sha1(&message), height: 0 }
}

impl Node {
    fn children(&self, depth: u32) -> u32 {
        if self.height > 0 && self.height >= depth {
            return 0;
        }
        let [.., a, b, c, d] = self.hash;
        let random = u32::from_be_bytes([a, b, c, d]) & 0x7fff_ffff;
        let u = f64::from(random) / f64::from(1u32 << 31);
        let p = 1.0 / (1.0 + BRANCHING);
        (((1.0 - u).ln() / (1.0 - p).ln()).floor() as u32).min(MOST_CHILDREN)
    }

    pub fn expand(&self, depth: u32, stack: &mut Vec<Node>) {
        let mut message = [0; 24];
        message[..20].copy_from_slice(&self.hash);
        for child in 0..self.children(depth) {
            message[20..].copy_from_slice(&child.to_be_bytes());
            stack.push(Node { hash: sha1(&message), height: self.height + 1 });
        }
    }
}

pub fn count(depth: u32) -> u64 {
    let (mut stack, mut count) = (vec![root()], 0);
    while let Some(node) = stack.pop() {
        count += 1;
        node.expand(depth, &mut stack);
    }
    count
}

#[cfg(test)]
mod tests {
    #[test]
    fn the_sample_tree_has_its_published_size() {
        assert_eq!(super::count(10), 4_130_071);
    }
}
