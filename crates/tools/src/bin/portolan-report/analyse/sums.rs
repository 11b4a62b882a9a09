//! Costs by rank or by object, sorted, with their sum.

/// A list of costs in descending order.
pub(super) struct Sums<K> {
    pub(super) all: Vec<(K, f64)>,
}

impl<K> Sums<K> {
    pub(super) fn of(items: impl Iterator<Item = (K, f64)>) -> Sums<K> {
        let mut all: Vec<(K, f64)> = items.collect();
        all.sort_by(|a, b| b.1.total_cmp(&a.1));
        Sums { all }
    }

    pub(super) fn sum(&self) -> f64 {
        self.all.iter().map(|(_, ns)| ns).sum()
    }

    pub(super) fn first(&self) -> Option<&(K, f64)> {
        self.all.first()
    }
}
