"""`qvr repl` in a real terminal, tmux's: what stands on the screen, and in which colours."""

import os
import shlex
import shutil
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.e2e import fetch
from tests.patience import HANG, NAP

pytestmark = [
    pytest.mark.e2e,
    pytest.mark.timeout(2 * HANG),
    pytest.mark.skipif(os.environ.get("QVR_E2E") == "skip", reason="QVR_E2E=skip"),
]
ROOT = Path(__file__).resolve().parents[2]
RED, BLUE, UNDERLINED = "\x1b[31m", "\x1b[34m", "\x1b[4m"


class Terminal:
    """A window of 100 columns and 40 lines."""

    def __init__(self, folder: Path, *command: str) -> None:
        self._tmux = [str(fetch.tmux()), "-L", f"qvr-{os.getpid()}", "-f", os.devnull]
        state = f"XDG_STATE_HOME={folder / 'state'}"
        self._do(
            "new-session",
            "-d",
            "-x",
            "100",
            "-y",
            "40",
            "-c",
            str(folder),
            "env",
            state,
            f"PYTHONPATH={ROOT}",
            "sh",
            "-c",
            # a shell says how it ended: tmux now and then misses the signal of a child, and knows no status
            f"trap : INT; {shlex.join(command)}; echo left with status $?; exec sleep {int(2 * HANG)}",
        )

    def _do(self, *arguments: str) -> str:
        return subprocess.run(
            [*self._tmux, *arguments], capture_output=True, text=True, check=True, timeout=HANG
        ).stdout

    def type(self, text: str, *keys: str) -> None:
        self._do("send-keys", "-l", text)
        for key in keys:
            self._do("send-keys", key)

    def press(self, *keys: str) -> None:
        self._do("send-keys", *keys)

    def screen(self, *, colours: bool = False) -> str:
        return self._do("capture-pane", "-p", *(["-e"] if colours else []))

    def until(self, seen: Callable[[str], bool], *, colours: bool = False) -> str:
        """The screen once it is as it should be."""
        for _ in range(int(HANG / NAP)):
            if seen(shown := self.screen(colours=colours)):
                return shown
            time.sleep(NAP)
        raise AssertionError(self.screen())

    def close(self) -> None:
        subprocess.run([*self._tmux, "kill-server"], capture_output=True, check=False)


@pytest.fixture
def terminal(tmp_path: Path) -> Iterator[Terminal]:
    shutil.copy(ROOT / "examples" / "eight_schools.qvr", tmp_path)
    shutil.copy(ROOT / "examples" / "data" / "eight_schools.csv", tmp_path)
    made = Terminal(tmp_path, sys.executable, "-m", "qvr_core.cli", "repl", "eight_schools.qvr")
    yield made
    made.close()


def test_a_session(terminal: Terminal, tmp_path: Path) -> None:
    terminal.until(lambda shown: "3 declarations" in shown and "qvr>" in shown)
    # completion, and the colours of names
    terminal.type("morphism f : Scho")
    terminal.until(lambda shown: "FinSet 8" in shown)
    terminal.press("Tab")
    terminal.type(" -> Rael 2")
    shown = terminal.until(lambda shown: "fix (F2)" in shown and UNDERLINED in shown, colours=True)
    assert f"{BLUE}f" in shown and f"{RED}error[syntax-error]" in shown
    terminal.press("F2", "C-e")
    terminal.type(" [role=embed]", "Enter")
    terminal.until(lambda shown: "f : School => Real 2" in shown)
    # a block, with its indentation
    terminal.type("program p : School -> School", "Enter")
    terminal.type("sample a <- Normal(0.0, 1.0)", "Enter")
    terminal.type("return a", "Enter")
    shown = terminal.until(lambda shown: "p : School -> Real 1" in shown)
    assert "...>     sample a <- Normal(0.0, 1.0)\n...>     return a" in shown
    # Ctrl-C drops a line, and cancels a run
    terminal.type("object X : Fin", "C-c")
    terminal.type(":run nuts --data csv:eight_schools.csv --samples 3000000", "Enter")
    terminal.until(lambda shown: "sampling" in shown)
    terminal.press("C-c")
    terminal.until(lambda shown: "cancelled at step" in shown)
    # the file, changed by somebody else while the prompt waits
    terminal.press("C-l")
    terminal.type(":watch", "Enter")
    terminal.until(lambda shown: "is taken over whenever it changes" in shown)
    (tmp_path / "eight_schools.qvr").write_text("object Changed : FinSet 123\n")
    terminal.until(lambda shown: "eight_schools.qvr: 1 declaration" in shown)
    terminal.type("Changed", "Enter")
    terminal.until(lambda shown: "Changed : FinSet 123" in shown)
    terminal.press("C-d")
    terminal.until(lambda shown: "left with status 0" in shown)
