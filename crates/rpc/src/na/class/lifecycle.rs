//! Creation and finalisation of a class, in the class table and at the engine.

use super::{MAX_UNEXPECTED, Plugin, Shared};
use crate::failure::{Failure, Result, refuse};
use crate::na::address::{Network, Scheme};
use crate::na::class_table;
use crate::na::flow::{self, Flow};
use crate::na::limited;
use crate::na::links::Links;
use crate::na::options::Options;
use crate::na::wake_source::WakeSource;
use parking_lot::{Mutex, RwLock};
use portolan_base::config::Config;
use portolan_base::sync::biased_lock::BiasedLock;
use portolan_base::wait::watchdog::{self, Watchdog};
use portolan_engine::am::HandlerId;
use portolan_engine::memory::large_buffer;
use portolan_engine::runtime::{Engine, log_sink};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU32, AtomicU64, AtomicUsize, Ordering};

impl Shared {
    pub fn open(info: &str, listen: bool, options: Options<'_>) -> Result<Arc<Shared>> {
        let network = Network::parse(info)?;
        if network.scheme != Scheme::Mpi {
            return Shared::over(network, listen, options, None);
        }
        let (engine, handler) = class_table::attach()?;
        let made = engine.admit_to_mpi().map_err(Failure::from).and_then(|_inside| {
            let engine = Some((engine.clone(), handler));
            Shared::over(network, listen, options, engine)
        });
        if made.is_err()
            && let Err(second) = class_table::detach(&engine)
        {
            // The caller needs the cause, so an error of the clean-up goes to the log.
            log::warn!("a network that fails to start stays attached to the engine: {second}");
        }
        made
    }

    fn over(
        network: Network<'_>,
        listen: bool,
        options: Options<'_>,
        engine: Option<(Arc<Engine>, HandlerId)>,
    ) -> Result<Arc<Shared>> {
        let scheme = network.scheme;
        let mut plugin: Option<Box<dyn Plugin>> = None;
        let mut watchdog = None;
        // The engine does the same for a class over MPI.
        if engine.is_none() {
            let config = Config::from_env()?;
            log_sink::start(&config);
            watchdog::configure(&config);
            if matches!(scheme, Scheme::Sm | Scheme::Tcp) {
                plugin = Some(Box::new(Links::open(network, listen, options, &config)?));
            }
            watchdog = Watchdog::start(&config);
        }
        let ranks = engine.as_ref().map_or(1, |(engine, _)| engine.size());
        let window = flow::window(ranks - 1);
        let eager = engine.as_ref().map_or(MAX_UNEXPECTED, |(engine, _)| {
            (0..ranks).map(|rank| engine.eager_limit(rank)).min().unwrap_or(MAX_UNEXPECTED)
        });
        static SERIAL: AtomicU32 = AtomicU32::new(1);
        let serial = match scheme {
            Scheme::Mpi => 0,
            _ => SERIAL.fetch_add(1, Ordering::Relaxed),
        };
        class_table::enlist(|number| {
            Arc::new(Shared {
                number,
                serial,
                scheme,
                listen,
                engine,
                plugin,
                matching: BiasedLock::new(Default::default()),
                waiting: AtomicUsize::new(0),
                flows: (0..ranks).map(|_| Flow::new(window)).collect(),
                remote_flows: RwLock::default(),
                pending: Mutex::default(),
                next_op: AtomicU64::new(1),
                upper: RwLock::default(),
                closed: AtomicBool::new(false),
                max_unexpected: eager.min(MAX_UNEXPECTED),
                wake_source: WakeSource::default(),
                watchdog: Mutex::new(watchdog),
            })
        })
    }

    pub(in crate::na) fn end_transfers(&self) {
        let mut contexts: Vec<_> =
            self.pending.lock().values().filter_map(|(_, context)| context.upgrade()).collect();
        contexts.sort_by_key(Arc::as_ptr);
        contexts.dedup_by_key(|context| Arc::as_ptr(context));
        contexts.iter().for_each(|context| context.end_transfers());
    }

    /// Finalises the class: cancels its pending operations and detaches it from the engine. Also
    /// works after the runtime has ended, and then only releases local state.
    pub(in crate::na) fn close(&self) -> Result<()> {
        if !self.is_over()
            && let Some((engine, _)) = &self.engine
        {
            engine.admit_to_mpi()?;
        }
        if self.closed.swap(true, Ordering::AcqRel) {
            refuse!(INVALID_ARG, "the class is finalised already");
        }
        class_table::retire(self);
        limited::record_omitted();
        let ops: Vec<u64> = self.pending.lock().keys().copied().collect();
        for op in ops {
            self.cancel(op)?;
        }
        for flow in self.flows.iter() {
            flow.abandon();
        }
        self.matching.lock().unexpected.clear();
        large_buffer::clear();
        match (&self.engine, &self.plugin) {
            (Some((engine, _)), _) => class_table::detach(engine)?,
            (None, Some(plugin)) => plugin.close(self),
            (None, None) => {}
        }
        drop(self.watchdog.lock().take());
        Ok(())
    }
}
