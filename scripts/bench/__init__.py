"""The benchmark driver: `driver` runs, `values` computes, `experiments` describes what to run."""
