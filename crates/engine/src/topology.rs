//! The nodes of the job: which ranks share memory. A *node* is a set of ranks that map each other's
//! segments. Each rank announces its real node at start (`runtime::startup_record`).
//! `PORTOLAN_NODE_SIZE=k` splits each real node into *virtual nodes* of `k` ranks that behave as if
//! they shared no memory, so that every path can run on one machine. All ranks hold the same table.

use std::collections::{HashMap, HashSet};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Topology {
    node_of: Box<[u32]>,
    nodes: Vec<Vec<usize>>,
    me: usize,
    /// The lowest rank on each rank's real node.
    labels: Box<[u32]>,
    real_nodes: usize,
}

/// Padded with zeros and truncated to less than `N` bytes.
pub fn host_name<const N: usize>() -> [u8; N] {
    let mut name = [0u8; N];
    // SAFETY: the buffer is one byte longer than the length passed, so the name ends with a zero.
    unsafe { libc::gethostname(name.as_mut_ptr().cast(), N.saturating_sub(1)) };
    name
}

impl Topology {
    /// The label of a rank's real node is the number of a rank, the same for all ranks of the node.
    /// If `cut` is not 0, each real node is split into nodes of `cut` ranks.
    pub fn from_labels(me: usize, labels: &[usize], cut: usize) -> Topology {
        let mut node_of = vec![0; labels.len()];
        let mut nodes: Vec<Vec<usize>> = Vec::new();
        let mut open: HashMap<usize, usize> = HashMap::new();
        for (rank, &label) in labels.iter().enumerate() {
            let node = match open.get(&label) {
                Some(&node) if cut == 0 || nodes[node].len() < cut => node,
                _ => {
                    nodes.push(Vec::new());
                    open.insert(label, nodes.len() - 1);
                    nodes.len() - 1
                }
            };
            node_of[rank] = node as u32;
            nodes[node].push(rank);
        }
        let real_nodes = labels.iter().collect::<HashSet<_>>().len();
        nodes.iter_mut().for_each(Vec::shrink_to_fit);
        nodes.shrink_to_fit();
        let labels = labels.iter().map(|&label| label as u32).collect();
        Topology { node_of: node_of.into(), nodes, me, labels, real_nodes }
    }

    pub fn me(&self) -> usize {
        self.me
    }

    pub fn size(&self) -> usize {
        self.node_of.len()
    }

    /// Includes virtual nodes.
    pub fn nodes(&self) -> usize {
        self.nodes.len()
    }

    pub fn real_nodes(&self) -> usize {
        self.real_nodes
    }

    pub fn node_of(&self, rank: usize) -> usize {
        self.node_of[rank] as usize
    }

    pub fn ranks_of(&self, node: usize) -> &[usize] {
        &self.nodes[node]
    }

    pub fn largest_node(&self) -> usize {
        self.nodes.iter().map(Vec::len).max().unwrap_or(0)
    }

    pub fn my_node(&self) -> usize {
        self.node_of(self.me)
    }

    pub fn same_node(&self, a: usize, b: usize) -> bool {
        self.node_of[a] == self.node_of[b]
    }

    pub fn same_host(&self, a: usize, b: usize) -> bool {
        self.labels[a] == self.labels[b]
    }

    /// The lowest rank of a rank's real node.
    pub fn host_of(&self, rank: usize) -> usize {
        self.labels[rank] as usize
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn virtual_nodes_cut_real_ones() {
        let t = Topology::from_labels(0, &[0, 0, 0, 3, 3], 2);
        assert_eq!(t.nodes(), 3);
        assert_eq!(t.real_nodes(), 2);
        assert_eq!(t.ranks_of(0), &[0, 1]);
        assert_eq!(t.ranks_of(1), &[2]);
        assert_eq!(t.ranks_of(2), &[3, 4]);
        assert!(!t.same_node(0, 2));
    }

    #[test]
    fn interleaved_ranks_stay_with_their_node() {
        let t = Topology::from_labels(1, &[0, 1, 0, 1], 0);
        assert_eq!(t.ranks_of(t.my_node()), &[1, 3]);
    }
}
