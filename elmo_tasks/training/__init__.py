"""The training loop: Lightning module, callbacks, checkpoints, processes."""
