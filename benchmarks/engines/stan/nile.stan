data {
  vector[100] flow;
}
parameters {
  real start;
  real<lower=0> drift;
  real<lower=0> noise;
  vector[100] z;
}
model {
  start ~ normal(10, 5);
  drift ~ normal(0, 1);
  noise ~ normal(0, 2);
  z ~ std_normal();
  flow ~ normal(start + drift * cumulative_sum(z), noise);
}
