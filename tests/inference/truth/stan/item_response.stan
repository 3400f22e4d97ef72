data {
  array[20, 100] int right;
}
parameters {
  real<lower=0> spread;
  vector[100] ability;
  real<lower=0> of_slopes;
  vector<lower=0>[20] slope;
  real centre;
  real<lower=0> of_difficulties;
  vector[20] difficulty;
}
model {
  spread ~ cauchy(0, 2);
  ability ~ normal(0, spread);
  of_slopes ~ cauchy(0, 2);
  slope ~ lognormal(0, of_slopes);
  centre ~ normal(0, 5);
  of_difficulties ~ cauchy(0, 2);
  difficulty ~ normal(centre, of_difficulties);
  for (i in 1:20)
    right[i] ~ bernoulli_logit(slope[i] * (ability - difficulty[i]));
}
