"""What turns a stage and a batch into new weights: engines, update rules and their kernels."""
