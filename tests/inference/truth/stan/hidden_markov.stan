data {
  vector[100] y;
}
parameters {
  array[2] simplex[2] move;
  ordered[2] level;
}
model {
  vector[2] forward;
  level[1] ~ normal(3, 1);
  level[2] ~ normal(10, 1);
  for (k in 1:2) forward[k] = log(0.5) + normal_lpdf(y[1] | level[k], 1);
  for (t in 2:100) {
    vector[2] next;
    for (k in 1:2)
      next[k] = log_sum_exp(forward[1] + log(move[1, k]), forward[2] + log(move[2, k]))
                + normal_lpdf(y[t] | level[k], 1);
    forward = next;
  }
  target += log_sum_exp(forward);
}
