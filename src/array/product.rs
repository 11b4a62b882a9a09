//! Products of matrices.
//!
//! The default is one-sided SUMMA: a rank computes its own block of the result, and gets panels of the
//! factors while it multiplies the panels before. Nothing is given out, and the result is written in
//! place. The other form gives tiles of the result out by counters, for factors or machines
//! whose parts take unequal time. On one node with equal blocks the first one is faster at all sizes that
//! were measured, because the second gets a panel of the factors for each tile anew.
//!
//! Blocks are multiplied by `ndarray`, whose own kernels are those of `matrixmultiply`; with the
//! feature `blas` it calls the CBLAS that the program is linked with.

use super::array::DistArray;
use super::common::InCall;
use super::distribution::OwnBox;
use crate::api::{Accumulate, Element};
use crate::error::{Result, fail};
use ndarray::linalg::general_mat_mul;
use ndarray::{Array2, Ix2, LinalgScalar, s};
use std::ops::Range;

/// Columns of the left factor, and rows of the right one, that are got at a time.
const PANEL: usize = 256;

impl<'rt, T: Element + LinalgScalar> DistArray<'rt, T, Ix2> {
    /// `self = alpha * a * b + beta * self`. Collective. The arrays may be distributed in any way; best
    /// is what [`Distribution::Block`](super::Distribution::Block) gives.
    ///
    /// # Errors
    /// `Argument` where the shapes do not fit, or the groups differ; `Mpi`.
    #[track_caller]
    pub fn matmul(
        &mut self,
        alpha: T,
        a: &DistArray<'_, T, Ix2>,
        b: &DistArray<'_, T, Ix2>,
        beta: T,
    ) -> Result<()> {
        const CALL: &str = "DistArray::matmul";
        self.check_product(a, b).in_call(CALL)?;
        let (boxes, inner) = (self.own_boxes(), a.shape()[1]);
        let first = self.group().rank();
        let mut mine = self.access_inner().in_call(CALL)?;
        let mut view = mine.local_mut();
        for OwnBox { global, local } in boxes {
            let mut block = view.slice_mut(s![local[0].clone(), local[1].clone()]);
            if beta.is_zero() {
                block.fill(T::zero());
            } else {
                block.mapv_inplace(|x| beta * x);
            }
            let get = |panel: Range<usize>| {
                let left = a.start_get([global[0].clone(), panel.clone()])?;
                Ok((left, b.start_get([panel, global[1].clone()])?))
            };
            // Ranks begin at different panels, so that they do not all ask one owner.
            let panels: Vec<Range<usize>> =
                (0..inner).step_by(PANEL).map(|k| k..(k + PANEL).min(inner)).collect();
            let order = (0..panels.len()).map(|i| panels[(i + first) % panels.len()].clone());
            let mut coming = None;
            for panel in order.map(Some).chain([None]) {
                let next = panel.map(get).transpose().in_call(CALL)?;
                if let Some((left, right)) = std::mem::replace(&mut coming, next) {
                    let (left, right): (Array2<T>, Array2<T>) =
                        (left.wait().in_call(CALL)?, right.wait().in_call(CALL)?);
                    general_mat_mul(alpha, &left, &right, T::one(), &mut block);
                }
            }
        }
        mine.release().in_call(CALL)
    }

    fn check_product(&self, a: &DistArray<'_, T, Ix2>, b: &DistArray<'_, T, Ix2>) -> Result<()> {
        let (m, n) = (self.shape()[0], self.shape()[1]);
        if a.shape()[0] != m || b.shape()[1] != n || a.shape()[1] != b.shape()[0] {
            fail!(
                Argument,
                "array \"{}\" of shape {:?} cannot be the product of \"{}\" {:?} and \"{}\" {:?}",
                self.name(),
                self.shape(),
                a.name(),
                a.shape(),
                b.name(),
                b.shape()
            );
        }
        self.check_group(a)?;
        self.check_group(b)
    }
}

impl<'rt, T: Accumulate + LinalgScalar> DistArray<'rt, T, Ix2> {
    /// [`DistArray::matmul`] by tiles of the result of at most a shape, which ranks take as they come
    /// to them, their own first. Collective.
    ///
    /// # Errors
    /// As for [`DistArray::matmul`]; `Memory` on all ranks.
    #[track_caller]
    pub fn matmul_dynamic(
        &mut self,
        alpha: T,
        a: &DistArray<'_, T, Ix2>,
        b: &DistArray<'_, T, Ix2>,
        beta: T,
        tile: [usize; 2],
    ) -> Result<()> {
        const CALL: &str = "DistArray::matmul_dynamic";
        self.check_product(a, b).in_call(CALL)?;
        if beta.is_zero() {
            self.fill(T::zero()).in_call(CALL)?;
        } else {
            self.scale(beta).in_call(CALL)?;
        }
        let mut tiles = self.tiles_inner(tile.to_vec()).in_call(CALL)?;
        let inner = a.shape()[1];
        while let Some(tile) = tiles.take().in_call(CALL)? {
            let (rows, columns) = (tile.ranges[0].clone(), tile.ranges[1].clone());
            let right = b.start_get([0..inner, columns]).in_call(CALL)?;
            let left = a.get([rows, 0..inner]).in_call(CALL)?;
            let product = left.dot(&right.wait().in_call(CALL)?);
            self.accumulate(&tile, alpha, &product).in_call(CALL)?;
        }
        tiles.free().in_call(CALL)?;
        self.sync_inner().in_call(CALL)
    }
}
