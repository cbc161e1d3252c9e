"""What happens in a wind park, minute by minute: the wind, the turbines' power, starts and stops.

All of it is whole numbers (millimetres per second, kilowatts) and the raw bits of PCG64, whose
sequence numpy keeps: no function of a mathematical library, whose last digit may differ from one
machine to the next. So a seed gives the same park everywhere.

The wind at a turbine is the sum of the day's swing, the weather that drifts over an hour, gust
fronts that pass the whole park, and the turbine's own turbulence.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Whole = NDArray[np.int64]
Truth = NDArray[np.bool_]
Raw = NDArray[np.uint64]

DAY = 1440
"""The minutes of a day."""

CUT_IN, AGAIN_FROM, AGAIN_BELOW, CUT_OUT = 3_000, 3_500, 18_500, 22_000
"""Wind at which turbines stop (below the first, above the last), and between which they start."""

REASONS = ("Storm", "Calm", "Fault", "Service")
"""Why a turbine stops."""

_PARK, _MAST = 380, 381  # so that each has a sequence of its own
_MEAN, _SWING = 11_000, 2_500
_PIECES = (0, 16, 32, 48)
_SPREAD = 37_837  # the standard deviation of the sum of four 16-bit numbers


class Model(NamedTuple):
    """A kind of turbine: its name, its greatest power in kW, and the wind that gives it."""

    name: str
    rated: int
    enough: int


MODELS = (Model("Breeze", 2_000, 12_000), Model("Gale", 3_200, 14_000))


class Stretch(NamedTuple):
    """What the turbines of a park tell in some minutes: arrays by minute and turbine."""

    wind: Whole
    """Tenths of metres per second."""
    power: Whole
    """Kilowatts."""
    started: Truth
    stopped: Truth
    reason: Whole
    """Of those that stopped: the place in REASONS."""
    starts: Whole
    stops: Whole
    """How often each started and stopped since it was built."""
    chance: Whole
    """Numbers below 2**16 that nothing depends on."""


def life(turbines: int, seed: int, first: int, size: int) -> Iterator[Stretch]:
    """A park's life, endless, so many minutes at a time; `first` is the minute of the day at first.

    >>> stretch = next(life(3, 7, 480, 1))
    >>> stretch.wind.tolist(), stretch.power.tolist()
    ([[100, 79, 88]], [[0, 547, 770]])
    """
    bits = np.random.PCG64([seed, _PARK])
    starts = 20 + _number(bits.random_raw(turbines), 0, 40)
    runs = _number(bits.random_raw(turbines), 0, 4) != 0
    stops, rest = starts - runs, np.where(runs, 0, 1 + starts % 9)
    air = _Air(first, np.zeros(turbines, np.int64))
    while True:
        raw = bits.random_raw((size, 2 + 3 * turbines))
        own = raw[:, 2:].reshape(size, 3, turbines)
        wind = air.wind(raw[:, :2], own[:, 0], _number(own[:, 1], 0, 64))
        reason, pause = _trouble(wind, own[:, 2])
        weak, fair = reason >= 0, (wind > AGAIN_FROM) & (wind < AGAIN_BELOW)
        on, started, stopped = (np.empty(wind.shape, np.bool_) for _ in range(3))
        for k in range(size):
            rest = rest - 1
            stopped[k] = runs & weak[k]
            started[k] = ~runs & (rest <= 0) & fair[k]
            on[k] = runs = (runs & ~stopped[k]) | started[k]
            rest = np.where(stopped[k], pause[k], rest)
        starts_then = starts + np.cumsum(started, axis=0)
        stops_then = stops + np.cumsum(stopped, axis=0)
        starts, stops = starts_then[-1], stops_then[-1]
        yield Stretch(
            wind // 100,
            np.where(on, _power(wind), 0),
            started,
            stopped,
            reason,
            starts_then,
            stops_then,
            _number(own[:, 1], 48, 1 << 16),
        )


class _Air:
    """The wind over a park: what of it goes on from one minute to the next."""

    def __init__(self, minute: int, turbulence: Whole) -> None:
        self._minute, self._turbulence = minute, turbulence
        self._weather = self._front = 0

    def wind(self, park: Raw, own: Raw, share: Whole) -> Whole:
        """The wind at the turbines in the next minutes, driven by chance: the park's, their own."""
        drift = (_noise(park[:, 0]) * 350 // _SPREAD).tolist()
        swirl = _noise(own) * 900 // _SPREAD
        common, fronts = [], []
        for k, gust in enumerate(park[:, 1].tolist()):
            self._weather += drift[k] - self._weather // 64
            new = gust % 37 == 0
            self._front = 6_000 + (gust >> 40) % 8_000 if new else self._front * 5 // 8
            self._turbulence = swirl[k] = swirl[k] + self._turbulence - self._turbulence // 4
            common.append(_MEAN + _swing(self._minute) + self._weather)
            fronts.append(self._front)
            self._minute += 1
        gusts = np.array(fronts)[:, None] * (64 + share) // 128
        wind: Whole = np.maximum(np.array(common)[:, None] + swirl + gusts, 0)
        return wind


def model_of(turbine: int) -> int:
    """The place in MODELS of a turbine's model: every third is of the second kind."""
    return int(turbine % 3 == 2)


def _number(raw: Raw, shift: int, below: int) -> Whole:
    return ((raw >> np.uint64(shift)) % np.uint64(below)).astype(np.int64)


def _noise(raw: Raw) -> Whole:
    """Nearly normal, around 0 with the deviation _SPREAD: the sum of four even ones."""
    total = np.full(raw.shape, -131_070, np.int64)
    for shift in _PIECES:
        total += _number(raw, shift, 1 << 16)
    return total


def _swing(minute: int) -> int:
    """The day's swing: two parabolas, least at 3 in the morning, greatest at 3 in the afternoon.

    >>> _swing(3 * 60), _swing(9 * 60), _swing(15 * 60)
    (-2500, 0, 2500)
    """
    half = DAY // 2
    up = (minute - 9 * 60) % DAY
    x = up % half
    height = 4 * _SWING * x * (half - x) // (half * half)
    return height if up < half else -height


def _trouble(wind: Whole, raw: Raw) -> tuple[Whole, Whole]:
    """Why a turbine that runs has to stop, -1 where it need not, and for how many minutes."""
    chance, length = _number(raw, 0, 1 << 16), _number(raw, 16, 1 << 16)
    reason = np.full(wind.shape, -1)
    pause = np.zeros(wind.shape, np.int64)
    for k, (when, least, most) in enumerate(
        (
            (wind > CUT_OUT, 4, 10),
            (wind < CUT_IN, 3, 6),
            (chance < 240, 5, 20),
            ((chance >= 240) & (chance < 290), 20, 40),
        )
    ):
        when = when & (reason < 0)
        reason = np.where(when, k, reason)
        pause = np.where(when, least + length % (most - least), pause)
    return reason, pause


def _power(wind: Whole) -> Whole:
    """The power curve: as the cube of the wind, from where turbines start to where it is enough."""
    models = [MODELS[model_of(k)] for k in range(wind.shape[1])]
    rated, enough = (np.array([model[k] for model in models]) for k in (1, 2))
    wind = np.minimum(wind, enough) // 100
    least, most = (CUT_IN // 100) ** 3, (enough // 100) ** 3
    power: Whole = rated * np.maximum(wind**3 - least, 0) // (most - least)
    return power


class Mast(NamedTuple):
    """What the mast of each field measures at one time."""

    temperature: Whole
    """Tenths of a degree Celsius."""
    humidity: Whole
    """Per cent."""


def air(masts: int, seed: int, first: int, step: int) -> Iterator[Mast]:
    """What the masts measure each `step` minutes, from the minute `first` of the day on.

    >>> measured = next(air(2, 7, 480, 5))
    >>> measured.temperature.tolist(), measured.humidity.tolist()
    ([-3, -7], [85, 88])
    """
    bits = np.random.PCG64([seed, _MAST])
    warm, damp, at = np.zeros(masts, np.int64), np.zeros(masts, np.int64), first
    while True:
        raw = bits.random_raw((2, masts))
        warm += _noise(raw[0]) * 400 // _SPREAD - warm // 16
        damp += _noise(raw[1]) * 1_500 // _SPREAD - damp // 16
        day = _swing(at)
        temperature = (300 + day + 500 * np.arange(masts) + warm) // 100
        humidity = np.clip(85_000 - 4 * day + damp, 30_000, 100_000) // 1_000
        yield Mast(temperature, humidity)
        at += step
