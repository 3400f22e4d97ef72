data {
  vector[400] x;
  vector[400] seen;
  vector[400] w;
  vector[400] y;
}
parameters {
  real a;
  real b;
  real c;
  real<lower=0> sigma;
  real<lower=0, upper=1> chance;
}
model {
  vector[400] fixed = a + c * w;
  a ~ normal(0, 2);
  b ~ normal(0, 2);
  c ~ normal(0, 2);
  sigma ~ normal(0, 1);
  chance ~ beta(2, 2);
  for (n in 1:400) {
    real known = seen[n] * x[n];
    target += log_mix(chance,
                      normal_lpdf(y[n] | fixed[n] + b * (known + 1 - seen[n]), sigma),
                      normal_lpdf(y[n] | fixed[n] + b * known, sigma));
  }
}
