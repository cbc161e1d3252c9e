"""The simulation of a wind park, by minute: wind, power, starts and stops.

It computes with integers (millimetres per second, kilowatts) and the raw bits of PCG64, whose
sequence numpy guarantees. Functions of mathematical libraries may differ in their last digit from
one machine to another; without them, a seed yields the same park everywhere.

The wind at a turbine is the sum of a daily swing, the weather that drifts over an hour, gust
fronts that pass the whole park, and the turbulence at the turbine.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Integers = NDArray[np.int64]
Flags = NDArray[np.bool_]
RandomBits = NDArray[np.uint64]

DAY = 1440
"""The number of minutes in a day."""

CUT_IN, START_ABOVE, START_BELOW, CUT_OUT = 3_000, 3_500, 18_500, 22_000
"""Wind in mm/s: turbines stop below the first and above the last, start between the others."""

REASONS = ("Storm", "Calm", "Fault", "Service")
"""The reasons of stops."""

_TURBINE_STREAM, _MAST_STREAM = 380, 381  # independent random sequences
_MEAN, _SWING = 11_000, 2_500
_SHIFTS = (0, 16, 32, 48)
_DEVIATION = 37_837  # the standard deviation of the sum of four 16-bit numbers


class Model(NamedTuple):
    """A model of turbine: its name, its rated power in kW, and the wind in mm/s that yields it."""

    name: str
    rated_power: int
    rated_wind: int


MODELS = (Model("Breeze", 2_000, 12_000), Model("Gale", 3_200, 14_000))


class Readings(NamedTuple):
    """The readings of a few minutes: arrays by minute and turbine."""

    wind: Integers
    """Tenths of metres per second."""
    power: Integers
    """Kilowatts."""
    started: Flags
    stopped: Flags
    reason: Integers
    """The index in REASONS, if the turbine stopped."""
    starts: Integers
    stops: Integers
    """The numbers of starts and stops since the turbine was built."""
    chance: Integers
    """Independent random numbers below 2**16."""


def turbine_readings(turbines: int, seed: int, first: int, size: int) -> Iterator[Readings]:
    """Yield readings without end, `size` minutes at a time; `first` is the first minute of the day.

    >>> readings = next(turbine_readings(3, 7, 480, 1))
    >>> readings.wind.tolist(), readings.power.tolist()
    ([[100, 79, 88]], [[0, 547, 770]])
    """
    bits = np.random.PCG64([seed, _TURBINE_STREAM])
    starts = 20 + _number(bits.random_raw(turbines), 0, 40)
    running = _number(bits.random_raw(turbines), 0, 4) != 0
    stops, pause = starts - running, np.where(running, 0, 1 + starts % 9)
    model = _WindModel(first, np.zeros(turbines, np.int64))
    while True:
        raw = bits.random_raw((size, 2 + 3 * turbines))
        own = raw[:, 2:].reshape(size, 3, turbines)
        wind = model.wind(raw[:, :2], own[:, 0], _number(own[:, 1], 0, 64))
        reason, next_pause = _stop_reasons(wind, own[:, 2])
        must_stop, can_start = reason >= 0, (wind > START_ABOVE) & (wind < START_BELOW)
        on, started, stopped = (np.empty(wind.shape, np.bool_) for _ in range(3))
        for k in range(size):
            pause = pause - 1
            stopped[k] = running & must_stop[k]
            started[k] = ~running & (pause <= 0) & can_start[k]
            on[k] = running = (running & ~stopped[k]) | started[k]
            pause = np.where(stopped[k], next_pause[k], pause)
        all_starts = starts + np.cumsum(started, axis=0)
        all_stops = stops + np.cumsum(stopped, axis=0)
        starts, stops = all_starts[-1], all_stops[-1]
        yield Readings(
            wind // 100,
            np.where(on, _power(wind), 0),
            started,
            stopped,
            reason,
            all_starts,
            all_stops,
            _number(own[:, 1], 48, 1 << 16),
        )


class _WindModel:
    """The wind over a park, with its state from one minute to the next."""

    def __init__(self, minute: int, turbulence: Integers) -> None:
        self._minute, self._turbulence = minute, turbulence
        self._weather = self._front = 0

    def wind(self, park: RandomBits, own: RandomBits, share: Integers) -> Integers:
        """Return the wind at the turbines in the next minutes, from random bits.

        `park` has bits for the weather and the gusts, `own` for the turbulence at each turbine;
        `share` is how strongly a gust hits each turbine.
        """
        drift = (_noise(park[:, 0]) * 350 // _DEVIATION).tolist()
        swirl = _noise(own) * 900 // _DEVIATION
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
        wind: Integers = np.maximum(np.array(common)[:, None] + swirl + gusts, 0)
        return wind


def model_index(turbine: int) -> int:
    """Return the index in MODELS of a turbine's model: every third turbine is a Gale."""
    return int(turbine % 3 == 2)


def _number(raw: RandomBits, shift: int, below: int) -> Integers:
    return ((raw >> np.uint64(shift)) % np.uint64(below)).astype(np.int64)


def _noise(raw: RandomBits) -> Integers:
    """Return nearly normal numbers around 0: each is the sum of four uniform ones."""
    total = np.full(raw.shape, -131_070, np.int64)
    for shift in _SHIFTS:
        total += _number(raw, shift, 1 << 16)
    return total


def _swing(minute: int) -> int:
    """Return the daily swing, two parabolas: least at 03:00, greatest at 15:00.

    >>> _swing(3 * 60), _swing(9 * 60), _swing(15 * 60)
    (-2500, 0, 2500)
    """
    half = DAY // 2
    up = (minute - 9 * 60) % DAY
    x = up % half
    height = 4 * _SWING * x * (half - x) // (half * half)
    return height if up < half else -height


def _stop_reasons(wind: Integers, raw: RandomBits) -> tuple[Integers, Integers]:
    """Return the reason why a running turbine must stop, else -1, and the minutes of the stop."""
    chance, length = _number(raw, 0, 1 << 16), _number(raw, 16, 1 << 16)
    reason = np.full(wind.shape, -1)
    pause = np.zeros(wind.shape, np.int64)
    for k, (applies, shortest, longest) in enumerate(
        (
            (wind > CUT_OUT, 4, 10),
            (wind < CUT_IN, 3, 6),
            (chance < 240, 5, 20),
            ((chance >= 240) & (chance < 290), 20, 40),
        )
    ):
        applies = applies & (reason < 0)
        reason = np.where(applies, k, reason)
        pause = np.where(applies, shortest + length % (longest - shortest), pause)
    return reason, pause


def _power(wind: Integers) -> Integers:
    """Return the power: it grows with the cube of the wind, from the cut-in to the rated wind."""
    models = [MODELS[model_index(k)] for k in range(wind.shape[1])]
    rated_power, rated_wind = (np.array([model[k] for model in models]) for k in (1, 2))
    wind = np.minimum(wind, rated_wind) // 100
    least, most = (CUT_IN // 100) ** 3, (rated_wind // 100) ** 3
    power: Integers = rated_power * np.maximum(wind**3 - least, 0) // (most - least)
    return power


class MastReadings(NamedTuple):
    """The readings of the masts at an instant: arrays by field."""

    temperature: Integers
    """Tenths of a degree Celsius."""
    humidity: Integers
    """Per cent, relative."""


def mast_readings(masts: int, seed: int, first: int, step: int) -> Iterator[MastReadings]:
    """Yield readings without end, every `step` minutes from the minute `first` of the day on.

    >>> readings = next(mast_readings(2, 7, 480, 5))
    >>> readings.temperature.tolist(), readings.humidity.tolist()
    ([-3, -7], [85, 88])
    """
    bits = np.random.PCG64([seed, _MAST_STREAM])
    warm, damp, at = np.zeros(masts, np.int64), np.zeros(masts, np.int64), first
    while True:
        raw = bits.random_raw((2, masts))
        warm += _noise(raw[0]) * 400 // _DEVIATION - warm // 16
        damp += _noise(raw[1]) * 1_500 // _DEVIATION - damp // 16
        day = _swing(at)
        temperature = (300 + day + 500 * np.arange(masts) + warm) // 100
        humidity = np.clip(85_000 - 4 * day + damp, 30_000, 100_000) // 1_000
        yield MastReadings(temperature, humidity)
        at += step
