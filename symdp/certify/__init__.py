"""What the proof of an epoch of random allocation stands on."""
