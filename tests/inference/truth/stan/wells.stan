data {
  vector[3020] distance;
  array[3020] int switched;
}
parameters {
  real a;
  real b;
}
model {
  switched ~ bernoulli_logit(a + b * distance);
}
