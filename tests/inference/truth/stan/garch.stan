data {
  vector[200] y;
}
parameters {
  real mu;
  real<lower=0> base;
  real<lower=0, upper=1> shock;
  real<lower=0, upper=1 - shock> memory;
}
model {
  real variance = 0.25;
  base ~ normal(0, 2);
  for (t in 1:200) {
    if (t > 1) variance = base + shock * square(y[t - 1] - mu) + memory * variance;
    y[t] ~ normal(mu, sqrt(variance));
  }
}
