"""Boxes of an array as one description for each pair of ranks: a Lacuna layout, or an MPI datatype."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Generic, Protocol, TypeVar

from lacuna._core import Layout
from lacuna.resharding.spans import Term

Made = TypeVar("Made")


class Maker(Protocol[Made]):
    """How descriptions are made, in bytes."""

    def element(self, size: int) -> Made: ...
    def repeated(self, count: int, stride: int, inner: Made) -> Made: ...
    def placed(self, places: list[int], inner: list[Made]) -> Made: ...


class LayoutMaker:
    def element(self, size: int) -> Layout:
        return Layout.bytes(size)

    def repeated(self, count: int, stride: int, inner: Layout) -> Layout:
        return Layout.hvector(count, 1, stride, inner)

    def placed(self, places: list[int], inner: list[Layout]) -> Layout:
        if len(places) == 1:
            return Layout.hindexed([1], places, inner[0]) if places[0] else inner[0]
        return Layout.struct([1] * len(places), places, inner)


class DatatypeMaker(Generic[Made]):
    """Datatypes of mpi4py, which are freed by `free()`."""

    def __init__(self, mpi: Any) -> None:
        self._mpi, self._made = mpi, []  # type: Any, list[Any]

    def element(self, size: int) -> Any:
        return self._kept(self._mpi.BYTE.Create_contiguous(size))

    def repeated(self, count: int, stride: int, inner: Any) -> Any:
        return self._kept(inner.Create_hvector(count, 1, stride))

    def placed(self, places: list[int], inner: list[Any]) -> Any:
        return self._kept(self._mpi.Datatype.Create_struct([1] * len(places), places, inner))

    def _kept(self, datatype: Any) -> Any:
        self._made.append(datatype)
        return datatype

    def free(self) -> None:
        for datatype in self._made:
            datatype.Free()
        self._made.clear()


def describe(
    maker: Maker[Made], boxes: Sequence[Sequence[Term]], strides: Sequence[int], itemsize: int, *, of_source: bool
) -> Made:
    """The product of what two ranks have in common in each dimension, in the array of one of them, whose strides are in
    bytes. Its size grows with the terms of all dimensions, not with their product."""
    made = maker.element(itemsize)
    for terms, stride in zip(reversed(boxes), reversed(strides), strict=True):
        places, inner = [], []
        for term in terms:
            step = term.source_step if of_source else term.target_step
            block = maker.repeated(term.length, stride, made) if term.length > 1 else made
            inner.append(maker.repeated(term.times, step * stride, block) if term.times > 1 else block)
            places.append((term.source if of_source else term.target) * stride)
        made = maker.placed(places, inner)
    return made
