data {
  matrix[800, 3] X;
  array[800] int rating;
}
transformed data {
  array[800] int category;
  for (n in 1:800) category[n] = rating[n] + 1;
}
parameters {
  vector[3] b;
  ordered[6] cuts;
}
model {
  b ~ std_normal();
  cuts ~ normal(0, 3);
  category ~ ordered_logistic_glm(X, b, cuts);
}
