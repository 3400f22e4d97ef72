data {
  vector[434] hs;
  vector[434] iq;
  vector[434] score;
}
parameters {
  vector[4] beta;
  real<lower=0> sigma;
}
model {
  sigma ~ cauchy(0, 2.5);
  score ~ normal(beta[1] + beta[2] * hs + beta[3] * iq + beta[4] * hs .* iq, sigma);
}
