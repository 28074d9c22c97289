"""Work that is cut into blocks: done here or by an executor's workers, each block kept as a file.

A block's file carries in its name a checksum of its bytes, its number and the question: one that is
whole is taken as it is, one that is damaged or another's is made again. What a worker had not
finished when it was killed is all that is lost: the same question asked again goes on where the
last one ended. Nothing is held but the blocks on their way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import FIRST_COMPLETED, BrokenExecutor, Future, wait
from pathlib import Path
from typing import TYPE_CHECKING, Any

from symdp.durable import Kept, checksum, locked, replace_file
from symdp.errors import AccuracyError, InputError
from symdp.version import __version__

if TYPE_CHECKING:
    from concurrent.futures import Executor

_FOLDER = Kept(
    "symdp-blocks", 1, "the blocks of a question", "name an empty folder, or one of this question"
)
_AHEAD = 64  # blocks that are with workers at once
_DIGITS = 32  # of a checksum, in a file's name

Work = Callable[..., bytes]
Progress = Callable[[int, int], object]


def kept_blocks(
    folder: Path,
    question: Mapping[str, Any],
    blocks: int,
    work: Work,
    task: Callable[[int], tuple[Any, ...]],
    suffix: str,
    executor: Executor | None = None,
    progress: Progress | None = None,
) -> list[Path]:
    """Return the files of all blocks in order, those made that are not there."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputError(f"{folder} is no folder: {error.strerror or error}") from None
    with locked(folder / "question.json"):
        claim = _claimed(folder, {**question, "blocks": blocks, "symdp": __version__})
        files = _whole(folder, suffix, claim)
        missing = iter([k for k in range(blocks) if k not in files])
        new_blocks = _done(missing, work, task, executor)
        while len(files) < blocks:
            try:
                number, data = next(new_blocks)
            except BrokenExecutor:
                raise AccuracyError(
                    f"a worker ended before its block was done: {len(files)} of {blocks} blocks "
                    f"are kept in {folder}; ask again to go on from there"
                ) from None
            files[number] = folder / f"{number:08d}-{_digest(claim, number, data)}{suffix}"
            _write(files[number], data)
            if progress is not None:
                progress(len(files), blocks)
        return [files[k] for k in range(blocks)]


def _write(file: Path, data: bytes) -> None:
    replace_file(file, lambda part: part.write(data), private=True)


def _claimed(folder: Path, question: Mapping[str, Any]) -> str:
    """Write down whose folder it is, and return that; InputError where it is another question's."""
    file, claim = folder / "question.json", checksum(question)
    if not file.exists():
        _FOLDER.write(file, {"question": claim})
    elif _FOLDER.read(file)["question"] != claim:
        raise InputError(
            f"{folder} holds the blocks of another question, or of another version of symdp: name "
            "an empty folder"
        )
    return claim


def _digest(question: str, number: int, data: bytes) -> str:
    return checksum([question, number], data)[:_DIGITS]


def _whole(folder: Path, suffix: str, question: str) -> dict[int, Path]:
    """Return the blocks of a question whose bytes have the checksum of their names."""
    files = {}
    for path in folder.glob(f"*-*{suffix}"):
        number, _, digest = path.name.removesuffix(suffix).partition("-")
        if number.isdecimal() and _digest(question, int(number), path.read_bytes()) == digest:
            files[int(number)] = path
    return files


def _done(
    numbers: Iterator[int],
    work: Work,
    task: Callable[[int], tuple[Any, ...]],
    executor: Executor | None,
) -> Iterator[tuple[int, bytes]]:
    """Yield blocks as they are done, at most so many of them on their way."""
    if executor is None:
        for number in numbers:
            yield number, work(*task(number))
        return
    waiting: dict[Future[bytes], int] = {}
    failed: BaseException | None = None
    while True:
        while failed is None and len(waiting) < _AHEAD:
            following = next(numbers, None)
            if following is None:
                break
            try:
                waiting[executor.submit(work, *task(following))] = following
            except BrokenExecutor as broken:  # those that were done before it broke are still kept
                failed = broken
        if not waiting:
            break
        for future in wait(waiting, return_when=FIRST_COMPLETED).done:
            number = waiting.pop(future)
            error = future.exception()
            if error is None:
                yield number, future.result()
            elif failed is None:
                failed = error
                for other in waiting:
                    other.cancel()
    if failed is not None:
        raise failed
