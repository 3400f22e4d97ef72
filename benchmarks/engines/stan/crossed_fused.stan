data {
  matrix[1200, 3] X;
  array[1200] int person;
  array[1200] int item;
  array[1200] int place;
  vector[1200] y;
}
transformed data {
  array[1200] int of_person;
  array[1200] int of_item;
  array[1200] int of_place;
  for (n in 1:1200) {
    of_person[n] = person[n] + 1;
    of_item[n] = item[n] + 1;
    of_place[n] = place[n] + 1;
  }
}
parameters {
  real a;
  vector[3] b;
  real<lower=0> by_person;
  real<lower=0> by_item;
  real<lower=0> by_place;
  vector[40] p;
  vector[25] i;
  vector[8] l;
  real<lower=0> sigma;
}
model {
  vector[1200] level = a + by_person * p[of_person] + by_item * i[of_item] + by_place * l[of_place];
  a ~ normal(0, 2);
  b ~ std_normal();
  by_person ~ normal(0, 1);
  by_item ~ normal(0, 1);
  by_place ~ normal(0, 1);
  p ~ std_normal();
  i ~ std_normal();
  l ~ std_normal();
  sigma ~ normal(0, 1);
  y ~ normal_id_glm(X, level, b, sigma);
}
