"""The engines: SVI, NUTS, minibatches, several processes."""
