"""What a user writes: mechanisms, pairs of densities, sampling, specifications."""
