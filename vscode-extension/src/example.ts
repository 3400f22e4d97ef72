/** The program of the walkthrough's first step. */
export const EXAMPLE = `# A regression: change a prior, or misspell a name, and see what the editor says.

object Row : FinSet 40

program line : Row -> Row
    sample intercept <- Normal(0.0, 5.0)
    sample slope <- Normal(0.0, 1.0)
    sample sigma <- HalfNormal(1.0)
    let mu[i : Row] = intercept + slope * x[i]
    observe y[i : Row] <- Normal(mu[i], sigma)
    return y

export line
`;
