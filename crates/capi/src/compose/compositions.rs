//! Compositions: create, add, merge, map, load, store and destroy.

use super::table::{self, with};
use super::{call, rank};
use crate::boundary::{array, export};
use portolan_base::error::Result;
use portolan_compose::{Blocks, Composition};
use portolan_engine::runtime::Engine;
use std::os::raw::{c_int, c_uint, c_void};

export! {
    cp_comptype(compnum: c_int) -> c_int = call(|engine| {
        with(engine, |interface| Ok(interface.table.get(compnum)?.kind().code() as c_int))
    });

    cp_create(targetproc: c_int) -> c_int = call(|engine| {
        let made = Composition::simple(engine, rank(targetproc)?)?;
        with(engine, |interface| interface.table.insert(made))
    });

    cp_load(filenum: c_int) -> c_int = call(|engine| {
        let loaded = table::composer(engine)?.load(engine, filenum)?;
        with(engine, |interface| interface.table.insert(loaded))
    });

    cp_store(filenum: c_int, compnum: c_int) -> c_int = call(|engine| {
        let (composition, composer) = with(engine, |interface| {
            Ok((interface.table.get(compnum)?.clone(), interface.composer.clone()))
        })?;
        composer.store(engine, filenum, &composition)?;
        Ok(0)
    });

    cp_rewind(filenum: c_int) -> c_int = call(|engine| {
        table::composer(engine)?.rewind(filenum)?;
        Ok(0)
    });

    cp_destroy(compnum: c_int) -> c_int = call(|engine| {
        with(engine, |interface| interface.table.remove(compnum).map(|()| 0))
    });
}

fn add(
    name: &'static str,
    compnum: c_int,
    body: impl FnOnce(&mut Composition) -> Result<()>,
) -> c_int {
    call(name, |engine| with(engine, |interface| body(interface.table.get(compnum)?).map(|()| 0)))
}

export! {
    cp_add_adxpair(compnum: c_int, localadx: *mut c_void, remoteadx: *mut c_void) -> c_int =
        add(compnum, |c| c.add(localadx as usize, remoteadx as usize, 1));

    /// The arrays must be valid for reads of `numpairs` elements.
    cp_add_adxpairvector(
        compnum: c_int, localadx: *const *mut c_void, remoteadx: *const *mut c_void,
        numpairs: c_uint,
    ) -> c_int = add(compnum, |c| {
        // SAFETY: by this function's contract, both arrays have `numpairs` elements.
        let (local, remote) = unsafe {
            (
                array(localadx, numpairs as usize, "the array of local addresses")?,
                array(remoteadx, numpairs as usize, "the array of remote addresses")?,
            )
        };
        c.add_all(local.iter().zip(remote).map(|(&l, &r)| (l as usize, r as usize, 1)))
    });

    cp_add_adxblock(
        compnum: c_int, localadxstart: *mut c_void, remoteadxstart: *mut c_void, length: c_uint,
    ) -> c_int = add(compnum, |c| {
        c.add(localadxstart as usize, remoteadxstart as usize, length as usize)
    });

    /// The arrays must be valid for reads of `numblocks` elements.
    cp_add_adxblockvector(
        compnum: c_int, localadxstart: *const *mut c_void, remoteadxstart: *const *mut c_void,
        length: *const c_uint, numblocks: c_uint,
    ) -> c_int = add(compnum, |c| {
        // SAFETY: by this function's contract, all three arrays have `numblocks` elements.
        let (local, remote, length) = unsafe {
            (
                array(localadxstart, numblocks as usize, "the array of local addresses")?,
                array(remoteadxstart, numblocks as usize, "the array of remote addresses")?,
                array(length, numblocks as usize, "the array of lengths")?,
            )
        };
        let runs = local.iter().zip(remote).zip(length);
        c.add_all(runs.map(|((&l, &r), &n)| (l as usize, r as usize, n as usize)))
    });

    cp_add_adxslice(
        compnum: c_int, localadxstart: *mut c_void, localadxstride: *mut c_void,
        localblocklen: c_uint, localnumblocks: c_uint, remoteadxstart: *mut c_void,
        remoteadxstride: *mut c_void, remoteblocklen: c_uint, remotenumblocks: c_uint,
    ) -> c_int {
        let blocks = |start: *mut c_void, stride: *mut c_void, block: c_uint, count: c_uint| Blocks {
            start: start as usize,
            stride: stride as isize,
            block: block as usize,
            count: count as usize,
        };
        add("cp_add_adxslice", compnum, |c| {
            c.add_slice(
                blocks(localadxstart, localadxstride, localblocklen, localnumblocks),
                blocks(remoteadxstart, remoteadxstride, remoteblocklen, remotenumblocks),
            )
        })
    }
}

/// Creates a composition from others. `body` runs without the table's lock.
fn derived(
    name: &'static str,
    numbers: &[c_int],
    body: impl FnOnce(&Engine, &[Composition]) -> Result<Composition>,
) -> c_int {
    call(name, |engine| {
        let given: Vec<Composition> = with(engine, |interface| {
            numbers.iter().map(|&n| interface.table.get(n).map(|c| c.clone())).collect()
        })?;
        let made = body(engine, &given)?;
        with(engine, |interface| interface.table.insert(made))
    })
}

export! {
    cp_merge(compnum1: c_int, compnum2: c_int) -> c_int =
        derived(&[compnum1, compnum2], |_, given| given[0].merge(&given[1]));

    cp_map(compnum: c_int) -> c_int = derived(&[compnum], |engine, given| given[0].map(engine));
}
