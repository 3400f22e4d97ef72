data {
  vector[220] x;
  array[220] int group;
  vector[220] y;
}
transformed data {
  array[220] int own;
  for (n in 1:220) own[n] = group[n] + 1;
}
parameters {
  vector[2] b;
  vector<lower=0>[2] tau;
  cholesky_factor_corr[2] L;
  matrix[22, 2] z;
  real<lower=0> sigma;
}
model {
  matrix[22, 2] r = z * diag_pre_multiply(tau, L)';
  b ~ normal(0, 2);
  tau ~ normal(0, 1);
  L ~ lkj_corr_cholesky(2);
  to_vector(z) ~ std_normal();
  sigma ~ normal(0, 1);
  y ~ normal(b[1] + r[own, 1] + (b[2] + r[own, 2]) .* x, sigma);
}
