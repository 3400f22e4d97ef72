/** What a newcomer finds: a small program that checks. */
export const FIRST = `# Eight schools: each has an effect of its own, and all borrow from one another.
# Change a width or a name, and read what the checker says. Ctrl+Space completes, F2 renames, Alt+Enter mends.

object School : FinSet 8

program schools : School -> School
    sample overall <- Normal(0.0, 5.0)
    sample spread <- HalfNormal(5.0)
    sample effect : School <- Normal(overall, spread)
    observe estimate : School <- Normal(effect, 10.0)
    return estimate

export schools
`;
