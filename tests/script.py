"""`python -m tests.script CODE ARGUMENTS` is `python -c CODE ARGUMENTS`, and may be a fork (`forks.py`)."""

import sys

if __name__ == "__main__":
    code = sys.argv.pop(1)
    sys.argv[0] = "-c"
    exec(compile(code, "<string>", "exec"), vars(sys.modules["__main__"]))
