"""What is told of a fit: held-out figures, accuracies, posteriors, warnings; checkpoints."""
