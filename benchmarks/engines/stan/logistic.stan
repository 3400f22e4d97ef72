data {
  matrix[1000, 10] X;
  array[1000] int y;
}
parameters {
  vector[10] w;
}
model {
  w ~ std_normal();
  y ~ bernoulli_logit(X * w);
}
