//! A value for each rank, stored once if all ranks have the same value.

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PerRank<T> {
    Alike(T),
    Each(Box<[T]>),
}

impl<T: Copy + PartialEq> PerRank<T> {
    pub fn of(values: impl Iterator<Item = T> + Clone) -> PerRank<T> {
        let mut all = values.clone();
        match all.next() {
            Some(first) if all.all(|value| value == first) => PerRank::Alike(first),
            _ => PerRank::Each(values.collect()),
        }
    }

    #[inline]
    pub fn at(&self, rank: usize) -> T {
        match self {
            PerRank::Alike(value) => *value,
            PerRank::Each(values) => values[rank],
        }
    }

    /// Returns each distinct value at least once.
    pub fn values(&self) -> &[T] {
        match self {
            PerRank::Alike(value) => std::slice::from_ref(value),
            PerRank::Each(values) => values,
        }
    }

    pub fn alike(&self) -> Option<T> {
        match self {
            PerRank::Alike(value) => Some(*value),
            PerRank::Each(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn equal_values_are_kept_once() {
        let equal = PerRank::of([7; 1000].into_iter());
        assert_eq!((equal.alike(), equal.at(999), equal.values().len()), (Some(7), 7, 1));
        let unlike = PerRank::of([7, 7, 8].into_iter());
        assert_eq!((unlike.alike(), unlike.at(2), unlike.values()), (None, 8, &[7, 7, 8][..]));
    }
}
