//! The zoomed-out timeline: the fraction of each time column that a row spent in each state.
//!
//! A row is one rank, or several ranks if there are more than [`MOST_ROWS`]. [`CELLS`] limits the
//! number of columns of the finest level. Each coarser level has half the columns, down to
//! [`LEAST_COLUMNS`]. A cell is one byte, which holds a fraction in units of 1 / [`WHOLE`].

use crate::model::{RankState, STATES, TraceSpan};

pub const MOST_ROWS: usize = 1024;
const CELLS: usize = 1 << 20;
const LEAST_COLUMNS: usize = 512;
const MOST_COLUMNS: usize = 1 << 15;
/// Value of a cell whose time was spent entirely in one state.
pub const WHOLE: u8 = 63;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Grid {
    pub rows: usize,
    /// Ranks per row.
    pub each: usize,
    /// Columns of the finest level.
    pub columns: usize,
    pub wall: u64,
}

impl Grid {
    pub fn new(ranks: usize, wall: u64) -> Grid {
        let each = ranks.div_ceil(MOST_ROWS).max(1);
        let rows = ranks.div_ceil(each).max(1);
        let mut columns = LEAST_COLUMNS;
        // A column is at least 100 ns long, because the page draws single events at closer zooms.
        while columns * 2 * rows <= CELLS
            && columns < MOST_COLUMNS
            && wall / (columns as u64 * 2) >= 100
        {
            columns *= 2;
        }
        Grid { rows, each, columns, wall }
    }

    pub fn column(&self, time: u64) -> usize {
        let at = u128::from(time) * self.columns as u128 / u128::from(self.wall);
        (at as usize).min(self.columns - 1)
    }

    fn begin(&self, column: usize) -> u64 {
        (column as u128 * u128::from(self.wall)).div_ceil(self.columns as u128) as u64
    }

    /// Calls `add` for each column that overlaps a time range, with the overlap in nanoseconds.
    pub fn spread(&self, begin: u64, end: u64, mut add: impl FnMut(usize, u64)) {
        let (mut from, end) = (begin, end.min(self.wall));
        let mut column = self.column(begin);
        while from < end {
            let to = if column + 1 < self.columns { self.begin(column + 1).min(end) } else { end };
            add(column, to.saturating_sub(from));
            from = to.max(from);
            column += 1;
            if column >= self.columns {
                break;
            }
        }
    }
}

#[derive(Debug)]
pub struct TimelineRow {
    grid: Grid,
    time: Vec<i64>,
}

impl TimelineRow {
    pub fn new(grid: Grid) -> TimelineRow {
        TimelineRow { grid, time: vec![0; STATES * grid.columns] }
    }

    /// Adds a time range to a state if `sign` is 1, or subtracts it if `sign` is -1.
    pub fn add(&mut self, state: RankState, begin: u64, end: u64, sign: i64) {
        let of_state = &mut self.time[state as usize * self.grid.columns..];
        self.grid.spread(begin, end, |column, time| of_state[column] += sign * time as i64);
    }
}

#[derive(Debug)]
pub struct Levels {
    pub grid: Grid,
    /// Levels from coarse to fine: the number of columns, and the cells by state, row and column.
    pub levels: Vec<(usize, Vec<u8>)>,
}

impl Levels {
    pub fn new(grid: Grid) -> Levels {
        let mut levels = Vec::new();
        let mut columns = LEAST_COLUMNS;
        while columns <= grid.columns {
            levels.push((columns, vec![0; STATES * grid.rows * columns]));
            columns *= 2;
        }
        Levels { grid, levels }
    }

    /// Stores the row `number`, which `ranks` ranks share, in all levels.
    pub fn put(&mut self, number: usize, row: &TimelineRow, ranks: usize) {
        let (grid, mut time, mut columns) = (self.grid, row.time.clone(), self.grid.columns);
        for (width, cells) in self.levels.iter_mut().rev() {
            while columns > *width {
                for at in 0..STATES * columns / 2 {
                    time[at] = time[2 * at] + time[2 * at + 1];
                }
                columns /= 2;
            }
            let whole = grid.wall as f64 / columns as f64 * ranks.max(1) as f64;
            for state in 0..STATES {
                let to = (state * grid.rows + number) * columns;
                for column in 0..columns {
                    cells[to + column] = part(time[state * columns + column], whole);
                }
            }
        }
    }

    /// Returns the fraction of a column of the finest level that a row spent outside of calls.
    pub fn computing(&self, row: usize, column: usize) -> f64 {
        let (columns, cells) = self.levels.last().expect("there is a level");
        let busy: u32 = (0..STATES)
            .filter(|state| *state != RankState::Beside as usize)
            .map(|s| u32::from(cells[(s * self.grid.rows + row) * columns + column]))
            .sum();
        (1.0 - f64::from(busy) / f64::from(WHOLE)).max(0.0)
    }
}

/// Converts a time to the value of a cell. A nonzero time gives at least 1, to stay visible.
fn part(time: i64, whole: f64) -> u8 {
    if time <= 0 {
        return 0;
    }
    (time as f64 / whole * f64::from(WHOLE)).round().clamp(1.0, f64::from(WHOLE)) as u8
}

/// Computes the nesting of the spans of one thread.
///
/// Spans arrive in the order of their ends, and any two are either nested or disjoint. A span
/// therefore contains the spans on top of the stack that did not begin before it. The own time of a
/// span is its length minus the lengths of the spans directly inside it.
#[derive(Debug, Default)]
pub struct SpanNesting {
    open: Vec<(u64, u64)>,
}

/// Maximum number of spans kept in case an enclosing span follows.
const MOST_OPEN: usize = 1 << 16;

impl SpanNesting {
    /// Takes a span, passes the spans directly inside it to `inner`, and returns its own time.
    pub fn take(&mut self, span: &TraceSpan, mut inner: impl FnMut(u64, u64)) -> u64 {
        let mut own = span.length();
        while let Some(&(begin, end)) = self.open.last()
            && begin >= span.begin
            && end > begin
        {
            own = own.saturating_sub(end - begin);
            inner(begin, end);
            self.open.pop();
        }
        if self.open.len() >= MOST_OPEN {
            self.open.drain(..MOST_OPEN / 2);
        }
        if span.end > span.begin {
            self.open.push((span.begin, span.end));
        }
        own
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_spread_without_loss() {
        for (wall, columns) in [(1000, 512), (777_777, 512), (3, 512)] {
            let grid = Grid { rows: 1, each: 1, columns, wall };
            for (begin, end) in [(0, wall), (wall / 3, wall / 2), (wall / 2, wall / 2 + 1)] {
                let mut sum = 0;
                grid.spread(begin, end, |column, time| {
                    assert!(column < columns);
                    sum += time;
                });
                assert_eq!(sum, end - begin, "{wall} {begin} {end}");
            }
        }
    }

    #[test]
    fn levels_are_parts_of_each_other() {
        let grid = Grid::new(2, 1 << 20);
        assert_eq!(grid.columns, 8192);
        let (mut row, mut levels) = (TimelineRow::new(grid), Levels::new(grid));
        row.add(RankState::WaitLock, 0, 1 << 19, 1);
        row.add(RankState::Transfer, 1 << 19, (1 << 19) + 64, 1);
        levels.put(1, &row, 1);
        for (columns, cells) in &levels.levels {
            let of = |state: RankState| &cells[(state as usize * 2 + 1) * columns..][..*columns];
            assert!(
                of(RankState::WaitLock)[..columns / 2].iter().all(|c| *c == WHOLE),
                "{columns}"
            );
            assert!(of(RankState::WaitLock)[columns / 2..].iter().all(|c| *c == 0));
            assert!(of(RankState::Transfer)[columns / 2] > 0, "a little is not nothing");
            assert_eq!(cells[0], 0, "the other row");
        }
        assert!((levels.computing(1, 0), levels.computing(1, 8000)) == (0.0, 1.0));
    }

    #[test]
    fn many_ranks_share_rows() {
        let grid = Grid::new(5000, 1 << 40);
        assert_eq!((grid.each, grid.rows), (5, 1000));
        assert!(grid.columns * grid.rows <= CELLS);
        assert_eq!(Grid::new(1, 5).columns, LEAST_COLUMNS);
    }
}
