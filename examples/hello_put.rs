//! Each rank puts a number into its neighbour's memory without the neighbour's participation.
//!
//!     ./mpirun.sh -n 4 --example hello_put

// ANCHOR: main
fn main() -> std::process::ExitCode {
    portolan::run(|rt| -> portolan::Result<()> {
        let world = rt.world();
        let inbox = world.allocate::<u64>(1)?; // one number on each rank, initially zero
        let (me, ranks) = (rt.rank(), rt.size());

        inbox.put((me + 1) % ranks, 0, &[100 + me as u64])?; // rank, offset, elements
        world.barrier()?; // all puts are now complete and visible

        let from = (me + ranks - 1) % ranks;
        let got = inbox.local().read(0);
        println!("rank {me} of {ranks}: {got} from rank {from}");
        assert_eq!(got, 100 + from as u64);
        inbox.free()
    })
}
// ANCHOR_END: main
