data {
  array[919] int county;
  vector[919] ground;
  vector[919] y;
}
transformed data {
  array[919] int own;
  for (n in 1:919) own[n] = county[n] + 1;
}
parameters {
  real overall;
  real<lower=0> between;
  vector[85] z;
  real by_floor;
  real<lower=0> within;
}
model {
  vector[85] level = overall + between * z;
  overall ~ normal(0, 10);
  between ~ normal(0, 1);
  z ~ std_normal();
  by_floor ~ normal(0, 10);
  within ~ normal(0, 1);
  y ~ normal(level[own] + by_floor * ground, within);
}
