//! Matrix products.
//!
//! There are two algorithms. In one-sided SUMMA, each rank computes its own block of the result in
//! place. In the dynamic algorithm, ranks take tiles of the result from shared counters, which
//! helps if parts or machines need unequal time. Both fetch the next panels of the factors while
//! they multiply the current ones ([`Product::block`]).
//!
//! If all parts are equal, the dynamic algorithm is as fast as SUMMA within a node and 5 % slower
//! between (virtual) nodes. If the largest part exceeds the mean by 10 %, it takes 0.89 of SUMMA's
//! time within a node and 0.96 between nodes; at 5 %, these numbers are 0.95 and 1.09.
//! [`Matmul::Auto`] therefore switches at 10 %.
//!
//! `ndarray` multiplies the blocks, by default with the kernels of `matrixmultiply`. With the
//! feature `blas`, it calls the CBLAS that the program is linked with.

use super::dist_array::DistArray;
use super::distribution::OwnBox;
use crate::Element;
use crate::in_call::InCall;
use ndarray::linalg::general_mat_mul;
use ndarray::{Array, Array2, ArrayViewMut2, Dimension, Ix2, IxDyn, LinalgScalar};
use portolan_base::error::{Result, fail};
use portolan_base::thread::PublicCall;
use std::ops::Range;

/// Columns of the left factor, and rows of the right factor, that are fetched at a time.
const PANEL: usize = 256;

/// Default extents of a tile.
const TILE: usize = 256;

/// Parts count as unequal if the largest exceeds this many tenths of the mean.
const UNEQUAL_TENTHS: usize = 11;

mod sealed {
    pub trait Sealed {}
    impl Sealed for ndarray::Ix2 {}
    impl Sealed for ndarray::IxDyn {}
}

/// A dimension that a matrix can have: two axes, which `IxDyn` proves only at run time.
pub trait MatrixDim: Dimension + sealed::Sealed {}

impl MatrixDim for Ix2 {}
impl MatrixDim for IxDyn {}

/// The algorithm of [`DistArray::matmul`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
#[non_exhaustive]
pub enum Matmul {
    /// [`Matmul::Summa`], or [`Matmul::Tiles`] if the ranks own unequal parts of the result.
    #[default]
    Auto,
    /// SUMMA: each rank computes its own block of the result.
    Summa,
    /// Ranks take tiles of the result, of at most this shape, as they become free. Each rank starts
    /// with its own.
    Tiles([usize; 2]),
}

struct Product<'p, 'a, 'b, T: Element, D: MatrixDim> {
    alpha: T,
    a: &'p DistArray<'a, T, D>,
    b: &'p DistArray<'b, T, D>,
    beta: T,
}

/// Converts between dimensions, after [`Product::check`] has counted the axes.
fn matrix<T, D: Dimension, E: Dimension>(array: Array<T, D>) -> Array<T, E> {
    array.into_dimensionality().expect("matrices have two axes")
}

impl<'rt, T: Element + LinalgScalar, D: MatrixDim> DistArray<'rt, T, D> {
    /// Computes `self = alpha * a * b + beta * self`. The arrays may have any distribution;
    /// [`Distribution::Block`](super::Distribution::Block) is fastest. Collective: all ranks pass
    /// the same algorithm.
    ///
    /// ```no_run
    /// # use portolan::array::{DistArray, Matmul};
    /// # fn square(a: &DistArray<'_, f64, ndarray::Ix2>) -> portolan::Result<()> {
    /// let mut c = a.like::<f64>("square")?;
    /// c.matmul(1.0, a, a, 0.0, Matmul::Auto)?;
    /// # c.free()
    /// # }
    /// ```
    ///
    /// # Errors
    /// Returns `Argument` if the shapes do not fit, an array is not a matrix, the groups differ, or
    /// a tile is empty, `Mpi` if a transfer fails, and `Memory` on all ranks if the shared counters
    /// cannot be allocated.
    #[track_caller]
    pub fn matmul(
        &mut self,
        alpha: T,
        a: &DistArray<'_, T, D>,
        b: &DistArray<'_, T, D>,
        beta: T,
        algorithm: Matmul,
    ) -> Result<()> {
        let call = PublicCall::enter("DistArray::matmul");
        let product = Product { alpha, a, b, beta };
        let done = match algorithm {
            Matmul::Summa => self.summa(&product),
            Matmul::Tiles(tile) => self.dynamic(&product, tile),
            Matmul::Auto if self.is_unequal() => self.dynamic(&product, [TILE, TILE]),
            Matmul::Auto => self.summa(&product),
        };
        done.in_call(call.name())
    }

    /// Returns whether the ranks own unequal parts.
    fn is_unequal(&self) -> bool {
        let ranks = self.group().size();
        let parts = (0..ranks).map(|rank| self.inner.layout.extents(rank).iter().product());
        let largest: usize = parts.max().unwrap_or(0);
        largest.saturating_mul(10 * ranks) > self.len() * UNEQUAL_TENTHS
    }

    #[track_caller]
    fn summa(&mut self, product: &Product<'_, '_, '_, T, D>) -> Result<()> {
        product.check(self)?;
        // Ranks start with different panels, so that they do not all fetch from one owner.
        let (boxes, first) = (self.own_boxes(), self.group().rank());
        let mut mine = self.access_inner()?;
        let mut view = mine.local_mut();
        for OwnBox { global, local } in boxes {
            let block = view.slice_each_axis_mut(|a| local[a.axis.index()].clone().into());
            let block = block.into_dimensionality().expect("matrices have two axes");
            product.block(&global, block, first)?;
        }
        mine.release()
    }

    #[track_caller]
    fn dynamic(&mut self, product: &Product<'_, '_, '_, T, D>, tile: [usize; 2]) -> Result<()> {
        product.check(self)?;
        // Ends an access whose view was dropped.
        self.access_inner()?.release()?;
        let mut tiles = self.tiles_inner(tile.to_vec())?;
        while let Some(tile) = tiles.take()? {
            let mut block = match product.beta.is_zero() {
                true => Array2::zeros((tile.ranges[0].len(), tile.ranges[1].len())),
                false => matrix(self.get(&tile)?),
            };
            product.block(&tile.ranges, block.view_mut(), tile.owner)?;
            self.put(&tile, &matrix::<T, Ix2, D>(block))?;
        }
        tiles.free()?;
        self.sync_inner()
    }
}

impl<T: Element + LinalgScalar, D: MatrixDim> Product<'_, '_, '_, T, D> {
    fn check(&self, c: &DistArray<'_, T, D>) -> Result<()> {
        let Product { a, b, .. } = self;
        let all = [(c.name(), c.shape()), (a.name(), a.shape()), (b.name(), b.shape())];
        if let Some((name, shape)) = all.into_iter().find(|(_, shape)| shape.len() != 2) {
            fail!(Argument, "array \"{name}\" of shape {shape:?} is not a matrix");
        }
        let (m, n) = (c.shape()[0], c.shape()[1]);
        if a.shape()[0] != m || b.shape()[1] != n || a.shape()[1] != b.shape()[0] {
            fail!(
                Argument,
                "array \"{}\" of shape {:?} cannot be the product of \"{}\" {:?} and \"{}\" {:?}",
                c.name(),
                c.shape(),
                a.name(),
                a.shape(),
                b.name(),
                b.shape()
            );
        }
        c.check_group(a)?;
        c.check_group(b)
    }

    /// Computes the elements `ranges` of the result in `block`, which holds the old elements on
    /// entry. Processes the panels in cyclic order from number `first` on, and fetches the next
    /// panel while it multiplies the current one.
    #[track_caller]
    fn block(
        &self,
        ranges: &[Range<usize>],
        mut block: ArrayViewMut2<'_, T>,
        first: usize,
    ) -> Result<()> {
        let Product { alpha, a, b, beta } = self;
        let inner = a.shape()[1];
        let panels = inner.div_ceil(PANEL);
        let panel = |number: usize| {
            let k = (number + first) % panels * PANEL;
            let panel = k..(k + PANEL).min(inner);
            ([ranges[0].clone(), panel.clone()], [panel, ranges[1].clone()])
        };
        if panels == 0 {
            block.mapv_inplace(|x| if beta.is_zero() { T::zero() } else { *beta * x });
            return Ok(());
        }
        // Outside closures, so that `PORTOLAN_CHECK` gets the program's line.
        let (left, right) = panel(0);
        let mut coming = (a.start_get(left)?, b.start_get(right)?);
        for number in 1..=panels {
            let next = match (number < panels).then(|| panel(number)) {
                Some((left, right)) => Some((a.start_get(left)?, b.start_get(right)?)),
                None => None,
            };
            let (left, right): (Array2<T>, Array2<T>) =
                (matrix(coming.0.wait()?), matrix(coming.1.wait()?));
            // The first product includes the old elements.
            let keep = if number == 1 { *beta } else { T::one() };
            general_mat_mul(*alpha, &left, &right, keep, &mut block);
            match next {
                Some(next) => coming = next,
                None => break,
            }
        }
        Ok(())
    }
}
