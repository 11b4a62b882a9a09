//! Every version of `benches/kernels` that uses Portolan gets a right result for a small problem.

use crate::child::{Ctx, step};
use portolan::internals::runtime;
use portolan_kernels::{Job, KERNELS, Side};

pub fn kernels(ctx: &Ctx) {
    let rt = runtime(&ctx.engine);
    let job = Job::new(Some(&rt), 2);
    for kernel in KERNELS {
        for version in kernel.versions.iter().filter(|v| v.side == Side::Portolan) {
            let name = format!("{}, {}", kernel.name, version.name);
            step(&name);
            let outcome =
                (version.run)(&job, kernel.small).unwrap_or_else(|error| panic!("{name}: {error}"));
            assert!(outcome.verified, "{name}: the result is wrong");
            assert_eq!(outcome.samples.len(), 2, "{name}: repetitions");
        }
    }
}
