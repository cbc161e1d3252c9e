"""Numbers as text for readers: three significant figures, with a space before the unit."""

from __future__ import annotations

from decimal import Context

_SIGNIFICANT, _SHOWN = 15, 10
"""Numbers of more digits than a double holds are computed; these are shown with fewer."""
_LAGS = (("d", 86_400_000), ("h", 3_600_000), ("min", 60_000), ("s", 1000))
_THOUSANDS = ((10**12, "T"), (10**9, "G"), (10**6, "M"), (10**3, "k"))
_BAR_CELLS = " ▏▎▍▌▋▊▉█"


def count(n: int) -> str:
    """Return the text of a count; exact below 10,000.

    >>> count(0), count(1234), count(12_345), count(123_456), count(9_999_999)
    ('0', '1,234', '12.3 k', '123 k', '10.0 M')
    """
    return f"{n:,}" if n < 10_000 else _with_unit(n)


def _with_unit(n: float) -> str:
    for unit, name in _THOUSANDS:
        if n >= 0.9995 * unit:
            return f"{_three_figures(n / unit)} {name}"
    return _three_figures(n)


def _three_figures(x: float) -> str:
    """Round a number below 1,000 to three figures.

    >>> _three_figures(1.234), _three_figures(12.34), _three_figures(123.4), _three_figures(99.97)
    ('1.23', '12.3', '123', '100')
    """
    for digits, below in ((2, 9.995), (1, 99.95)):
        if x < below:
            return f"{x:.{digits}f}"
    return f"{x:.0f}"


def percent(share: float) -> str:
    """Return a share of a whole as a percentage.

    >>> percent(0.034), percent(1), percent(0), percent(0.0001), percent(0.9999)
    ('3.4 %', '100 %', '0 %', '<0.1 %', '>99.9 %')
    """
    if share in (0, 1):
        return f"{share * 100:.0f} %"
    if share < 0.001:
        return "<0.1 %"
    return f"{share * 100:.1f} %" if share < 0.9995 else ">99.9 %"


def ratio(value: float) -> str:
    """Return a ratio of output to input rows: a percentage up to 1, a factor above.

    >>> ratio(0.25), ratio(1), ratio(2.5), ratio(12_345)
    ('25.0 %', '100 %', '×2.50', '×12.3 k')
    """
    return percent(value) if value <= 1 else f"×{_with_unit(value)}"


def seconds(value: float) -> str:
    """Return a measured duration, in seconds, with a unit that suits it.

    >>> seconds(0.0000123), seconds(0.0123), seconds(1.234), seconds(150), seconds(7320)
    ('<0.1 ms', '12.3 ms', '1.23 s', '150 s', '2.03 h')
    """
    if value < 0.9995:
        return "<0.1 ms" if value < 0.0001 else f"{_three_figures(value * 1000)} ms"
    unit, name = (1, "s") if value < 600 else (60, "min") if value < 6000 else (3600, "h")
    return f"{_three_figures(value / unit)} {name}"


def lag(milliseconds: int) -> str:
    """Return a length of time in its two largest units; below a minute, in tenths of seconds.

    >>> lag(8), lag(8_249), lag(9_000), lag(59_990), lag(11_100_000), lag(90_000_000)
    ('8 ms', '8.2 s', '9 s', '1 min', '3 h 5 min', '1 d 1 h')
    """
    if milliseconds < 1000:
        return f"{milliseconds} ms"
    tenths = round(milliseconds / 100)
    if tenths < 600:
        return f"{tenths / 10:g} s"
    rest = tenths * 100
    parts = []
    for name, unit in _LAGS:
        number, rest = divmod(rest, unit)
        parts.append((number, name))
    first = next(k for k, (number, _) in enumerate(parts) if number)
    return " ".join(f"{number} {name}" for number, name in parts[first : first + 2] if number)


def short_number(text: str) -> str:
    """Return a number as it is written, or rounded to 10 digits if it has more than 15.

    Quotients have up to 34 digits, and sums of doubles end in noise. Whole numbers are exact.

    >>> short_number("55.33333333333333333333333333333333"), short_number("0.30000000000000004")
    ('55.33333333', '0.3')
    >>> short_number("1234567.891"), short_number("12345678901234567890.5"), short_number("1.5E-9")
    ('1234567.891', '12345678901234567890', '1.5E-9')
    """
    mantissa, exponent, power = text.partition("E" if "E" in text else "e")
    whole, point, fraction = mantissa.lstrip("+-").partition(".")
    digits = len((whole + fraction).lstrip("0"))
    if not point or digits <= _SIGNIFICANT:
        return text
    precise = Context(prec=max(_SHOWN, len(whole.lstrip("0"))))
    rounded = precise.create_decimal(mantissa).normalize(precise)
    return f"{rounded:f}{exponent}{power}"


def bar(share: float, width: int) -> str:
    """Return a share as a bar; a share of 1 fills `width` cells.

    >>> bar(1, 4), bar(0.55, 4), bar(0.03, 4), bar(0, 4)
    ('████', '██▎', '▏', '')
    """
    whole, rest = divmod(round(share * width * 8), 8)
    return "█" * whole + _BAR_CELLS[rest].strip()
