data {
  vector[8] y;
  vector[8] sigma;
}
parameters {
  real mu;
  real<lower=0> tau;
  vector[8] raw;
}
model {
  mu ~ normal(0, 5);
  tau ~ cauchy(0, 5);
  raw ~ std_normal();
  y ~ normal(mu + tau * raw, sigma);
}
