/** What a newcomer finds: a small program that checks. */
export const FIRST = `# Eight schools: each has an effect of its own, and all borrow from one another.
# Change a width or a name, and read what the checker says. Ctrl+Space completes, F2 renames, Alt+Enter mends.

object School : FinSet 8

program schools : School -> School
    sample overall <- Normal(0.0, 5.0)
    sample spread <- HalfNormal(5.0)
    sample effect[s : School] <- Normal(overall, spread)
    observe estimate[s : School] <- Normal(effect[s], 10.0)
    return estimate

export schools
`;

/** Rubin's (1981) eight schools. */
export const FIRST_DATA = { files: { "schools.csv": "estimate\n28\n8\n-3\n7\n-1\n1\n18\n12\n" }, main: "schools.csv", named: {}, columns: {} };
