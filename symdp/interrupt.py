"""Limits of time: work that is stopped when its time is up, and what stands in for it then."""

from __future__ import annotations

import _weakrefset
import contextlib
import gc
import math
import signal
import sys
import threading
import time
import weakref
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import dataclass
from types import FrameType
from typing import Any, NamedTuple, TypeVar

from symdp.errors import AccuracyError
from symdp.turns import if_ours

T = TypeVar("T")

_LEAST = 1e-3  # seconds; a timer set to zero would never ring
_SOON = 0.01  # seconds until it rings again where what runs must end first
WAITING = 10.0  # seconds that may pass for a second of work, on a machine that others keep busy
# Files whose code comes to its end: those of imports, and of callbacks of weak references.
_ENDING = ("<frozen importlib", weakref.__file__, _weakrefset.__file__)
_AGAIN = 1.0  # seconds until it rings again where its first ring was lost, as in a destructor


class _TimeUpError(BaseException):
    """The time of the attempt at a depth is up; nothing that catches errors may catch it."""

    def __init__(self, depth: int) -> None:
        super().__init__(depth)
        self.depth = depth


@dataclass(frozen=True)
class _End:
    """When an attempt must end, on the clock on the wall and on that of the thread's own work."""

    passed: float
    worked: float = math.inf

    @property
    def left(self) -> float:
        """Seconds until the first of the two; that of the work comes no sooner than these."""
        return min(self.passed - time.monotonic(), self.worked - worked())


class _Ends(threading.local):
    """When the attempts that this thread is in must end, the outermost first."""

    def __init__(self) -> None:
        self.times: list[_End] = []
        self.charged = 0.0  # seconds that child processes worked for this thread


_ends = _Ends()
_interrupted = [0]
_foreign: list[tuple[float, Any]] = []  # end and handler of a timer that was set before ours


def time_left() -> float:
    """Return the seconds until the first of the attempts around must end, ∞ outside of any."""
    return max(0.0, min((end.left for end in _ends.times), default=math.inf))


def worked() -> float:
    """Return the processor seconds of this thread, and what it was charged with.

    Waiting does not count, so that a machine that others keep busy changes no derivation.
    """
    return time.thread_time() + _ends.charged


def charge(seconds: float) -> None:
    """Add what a child process worked for this thread, for the system's timer too."""
    _ends.charged += seconds
    if _can_ring() and (left := signal.getitimer(signal.ITIMER_PROF)[0]):
        signal.setitimer(signal.ITIMER_PROF, max(_LEAST, left - seconds))
    if _ends.times and _can_ring():
        _arm()


@dataclass
class Outcome:
    """How a `limit` ended: `late` where the time was up before the work was done."""

    late: bool = False


def generation() -> int:
    """Return how often numeric work was interrupted: what it kept before may be half made."""
    return _interrupted[0]


@contextmanager
def limit(seconds: float, *, symbolic: bool = False, of_work: bool = False) -> Iterator[Outcome]:
    """Leave the block when its time is up, as if it had ended there.

    Limits may stand within limits; the shortest time counts.  Only the main thread of a system
    with timers can be interrupted: elsewhere the work goes on to its end, but `time_left` tells it
    to hurry.
    """
    depth = len(_ends.times)
    outcome = Outcome()
    seconds = max(_LEAST, seconds)
    if of_work:
        end = _End(time.monotonic() + WAITING * seconds, worked() + seconds)
    else:
        end = _End(time.monotonic() + seconds)
    _ends.times.append(end)
    state = _numeric_state()
    try:
        with _ringing(depth):
            yield outcome
    except (_TimeUpError, SystemError) as error:
        late = _time_up(error)
        if late is None:
            raise
        _restore(state)
        _interrupted[0] += not symbolic
        if late.depth != depth:
            raise late from None
        outcome.late = True
    finally:
        del _ends.times[depth:]
        if depth and _can_ring():
            _arm()


def attempt(work: Callable[[], T], otherwise: T, seconds: float) -> T:
    """Return what symbolic work returns, or `otherwise` where its time is up first; see `limit`."""
    if seconds > 0:
        with limit(seconds, symbolic=True, of_work=True):
            return work()
    return otherwise


@contextmanager
def time_limit(seconds: float | None) -> Iterator[None]:
    """Raise AccuracyError when a block has worked for so long; see `limit` for where that works."""
    if seconds is None or math.isinf(seconds):
        yield
        return
    with limit(seconds, of_work=True) as outcome:
        yield
    if outcome.late:
        raise AccuracyError(f"no answer within {seconds:.3g} s")


class Deadline:
    """A number of seconds from now, on the wall or by another clock; None is for ever."""

    def __init__(self, seconds: float | None, clock: Callable[[], float] = time.monotonic) -> None:
        self.seconds = math.inf if seconds is None else seconds
        self._clock = clock
        self._end = clock() + self.seconds

    @property
    def left(self) -> float:
        """Seconds that are left."""
        return max(0.0, self._end - self._clock())

    @property
    def is_past(self) -> bool:
        """Whether the time is up."""
        return not self.left > 0

    def check(self) -> None:
        """Raise AccuracyError when the time is up."""
        if self.is_past:
            raise AccuracyError(f"no proof came within {self.seconds:.3g} s")

    def within(self, most: float = math.inf) -> AbstractContextManager[None]:
        """Return `time_limit` for what is left, or for `most` seconds; without an end, for ever."""
        return time_limit(self.left if math.isinf(self.left) else min(self.left, most))


@contextmanager
def undisturbed() -> Iterator[None]:
    """Let no timer ring inside, as where a process forks; one that is due rings afterwards."""
    if not _can_ring():
        yield
        return
    before = signal.pthread_sigmask(signal.SIG_BLOCK, {signal.SIGALRM})
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)


class Clock:
    """Seconds that may be `worked` altogether, in attempts with pauses between them."""

    def __init__(self, seconds: float) -> None:
        self.seconds = seconds
        self._spent = 0.0
        self._since: float | None = None

    @property
    def left(self) -> float:
        """Seconds that are left."""
        running = 0.0 if self._since is None else worked() - self._since
        return max(0.0, self.seconds - self._spent - running)

    def attempt(
        self, work: Callable[[], T], otherwise: T, share: float = 1.0, least: float = 0.0
    ) -> T:
        """Return what the work returns, or `otherwise` where its time was up first."""
        seconds = max(least, min(share * self.seconds, self.left))
        if self._since is not None:
            return attempt(work, otherwise, seconds)
        self._since = worked()
        try:
            return attempt(work, otherwise, seconds)
        finally:
            self._spent += worked() - self._since
            self._since = None


def is_interrupt(error: BaseException | None) -> bool:
    """Return whether the user's interrupt is behind an error, as where C code calls Python back."""
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__cause__ or error.__context__
    return error is not None


def quiet_when_interrupted() -> None:
    """Print nothing of an interrupt that arrives where none can be raised, as in a destructor."""
    usual = sys.unraisablehook

    def hook(args: Any) -> None:
        if not isinstance(args.exc_value, KeyboardInterrupt | _TimeUpError):
            usual(args)

    sys.unraisablehook = hook


def _time_up(error: BaseException | None) -> _TimeUpError | None:
    """The end of time behind an error: C code that calls Python back reports it as its own."""
    while error is not None and not isinstance(error, _TimeUpError):
        error = error.__cause__ or error.__context__
    return error


def _can_ring() -> bool:
    return hasattr(signal, "setitimer") and threading.current_thread() is threading.main_thread()


@contextmanager
def _ringing(depth: int) -> Iterator[None]:
    """Set the timer; the outermost limit keeps one that was set before, which goes on later."""
    if depth or not _can_ring():
        if _can_ring():
            _arm()
        yield
        return
    handler = signal.signal(signal.SIGALRM, _ring)
    seconds, interval = signal.setitimer(signal.ITIMER_REAL, 0.0)
    if seconds > 0:
        _foreign.append((time.monotonic() + seconds, handler))
    try:
        _arm()
        yield
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0.0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL if handler is None else handler)
        if _foreign:
            end, _ = _foreign.pop()
            signal.setitimer(signal.ITIMER_REAL, max(_LEAST, end - time.monotonic()), interval)


def _arm() -> None:
    waits = [end.left for end in _ends.times] + [end - time.monotonic() for end, _ in _foreign]
    first = min(waits, default=math.inf)
    if math.isfinite(first):
        signal.setitimer(signal.ITIMER_REAL, max(_LEAST, first), _AGAIN)


def _must_end(frame: FrameType | None) -> bool:
    """Return whether what runs has to come to its end first.

    A module that is imported would stay half done for ever; what a destructor raises, or a callback
    of the garbage collector or of a weak reference, Python would only print; what is raised on the
    way into or out of a `with`, its block would not see.
    """
    if frame is not None and frame.f_code.co_filename == contextlib.__file__:
        return True
    callbacks = {getattr(callback, "__code__", None) for callback in gc.callbacks}
    while frame is not None:
        code = frame.f_code
        if code.co_filename.startswith(_ENDING) or code.co_name == "__del__" or code in callbacks:
            return True
        frame = frame.f_back
    return False


def _ring(number: int, frame: FrameType | None) -> None:
    if _must_end(frame):
        signal.setitimer(signal.ITIMER_REAL, _SOON, _AGAIN)
        return
    for depth, end in enumerate(_ends.times):
        if end.left <= 0:
            raise _TimeUpError(depth)
    if _foreign and time.monotonic() >= _foreign[0][0]:
        _, handler = _foreign.pop()
        if callable(handler):
            handler(number, frame)
    _arm()


class _State(NamedTuple):
    """What interrupted work may leave behind: working precisions, and what NumPy does in errors."""

    mpmath: int | None
    flint: int | None
    numpy: dict[str, Any] | None


def _numeric_state() -> _State:
    """Return the state; of precisions that another thread may have set, nothing."""
    mpmath, flint, numpy = (sys.modules.get(name) for name in ("mpmath", "flint", "numpy"))
    with if_ours() as ours:
        return _State(
            mpmath.mp.prec if mpmath is not None and ours else None,
            flint.ctx.prec if flint is not None and ours else None,
            numpy.geterr() if numpy is not None and hasattr(numpy, "geterr") else None,
        )


def _restore(state: _State) -> None:
    """Set the precisions back, and forget what SymPy may have half worked out."""
    mpmath, flint, sympy = (sys.modules.get(name) for name in ("mpmath", "flint", "sympy"))
    if state.numpy is not None:
        sys.modules["numpy"].seterr(**state.numpy)
    with if_ours() as ours:  # else another thread works with its own
        if mpmath is not None and state.mpmath is not None and ours:
            mpmath.mp.prec = state.mpmath
        if flint is not None and state.flint is not None and ours:
            flint.ctx.prec = state.flint
    if sympy is not None:
        sympy.core.cache.clear_cache()
