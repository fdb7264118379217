#!/usr/bin/python3
"""tap.py FILE [NAME…]: runs the functions test_* of a Python file and prints TAP.

Meson and tools/check count what is printed here. A test passes when it returns, is skipped when it
raises Skip with a reason, fails when it raises anything else, runs longer than its limit, or leaves a
process behind.
"""
import importlib.util
import pathlib
import signal
import sys
import traceback

sys.dont_write_bytecode = True
sys.path[:0] = [str(pathlib.Path(__file__).resolve().parent),
                str(pathlib.Path(__file__).resolve().parents[2] / "tools")]
import bounded  # noqa: E402

LIMIT_S = 60


class Skip(Exception):
    """This machine cannot run the test; the text says why."""


class TooLong(BaseException):
    """Not an Exception, so that no test catches it by accident."""


def limit(seconds):
    """Decorator: another time limit than LIMIT_S for one test."""
    def mark(function):
        function.limit_s = seconds
        return function
    return mark


def _load(path):
    spec = importlib.util.spec_from_file_location(path.stem, path)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def _alarm(_number, _frame):
    raise TooLong


def _terminate(_number, _frame):
    raise SystemExit(143)


def _run(function):
    """(verdict, explanation) of one test; verdict is ok, skip or fail."""
    seconds = getattr(function, "limit_s", LIMIT_S)
    signal.setitimer(signal.ITIMER_REAL, seconds)
    try:
        function()
        verdict, why = "ok", ""
    except Skip as reason:
        verdict, why = "skip", str(reason)
    except TooLong:
        verdict, why = "fail", f"still running after its {seconds} s\n{traceback.format_exc()}"
    except Exception:
        verdict, why = "fail", traceback.format_exc()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
    left = bounded.sweep()
    if left:
        why += "left processes behind:\n" + "\n".join(left)
        verdict = "fail"
    return verdict, why


def main():
    if len(sys.argv) < 2:
        print(__doc__.splitlines()[0], file=sys.stderr)
        return 2
    # The tests import Skip and limit from `tap`: make that this very module, not a second copy.
    sys.modules["tap"] = sys.modules["__main__"]
    bounded.adopt()
    signal.signal(signal.SIGALRM, _alarm)
    signal.signal(signal.SIGTERM, _terminate)
    module = _load(pathlib.Path(sys.argv[1]))
    tests = [(name, f) for name, f in vars(module).items() if name.startswith("test_") and callable(f)]
    if len(sys.argv) > 2:
        tests = [(name, f) for name, f in tests if name in sys.argv[2:]]
    print(f"1..{len(tests)}", flush=True)
    failed = 0
    for number, (name, function) in enumerate(tests, 1):
        verdict, why = _run(function)
        if verdict == "skip":
            print(f"ok {number} - {name} # SKIP {why}", flush=True)
            continue
        for line in why.splitlines():
            print("# " + line)
        print(f"{'ok' if verdict == 'ok' else 'not ok'} {number} - {name}", flush=True)
        failed += verdict == "fail"
    return 1 if failed or not tests else 0


if __name__ == "__main__":
    sys.exit(main())
