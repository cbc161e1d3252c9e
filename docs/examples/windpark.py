"""A wind park: turbines tell their power, and that they stopped; windows move over it."""

from __future__ import annotations

import random
from datetime import UTC, datetime
from pathlib import Path

import streamsparql

PARK = "http://example.org/windpark#"
NUMBER = "http://www.w3.org/2001/XMLSchema#decimal"
START, MINUTE = 1_772_352_000_000, 60_000  # the 1st of March 2026


def readings(minutes: int, turbines: int) -> list[tuple[str, str, str, int]]:
    """Triples with their timestamps: a reading per turbine and minute, now and then a stop."""
    chance = random.Random(7)
    items = []
    for n in range(minutes * turbines):
        t, turbine = START + n * MINUTE // turbines, f"<{PARK}turbine{n % turbines}>"
        power = f'"{chance.uniform(0, 3):.1f}"^^<{NUMBER}>'
        items.append((f"<{PARK}reading{n}>", f"<{PARK}of>", turbine, t))
        items.append((f"<{PARK}reading{n}>", f"<{PARK}power>", power, t))
        if chance.random() < 0.1:
            items.append((f"<{PARK}stop{n}>", f"<{PARK}stopped>", turbine, t))
    return items


query = streamsparql.compile(Path(__file__).with_suffix(".rq").read_text("utf-8"))
park = [(f"<{PARK}turbine{k}>", f"<{PARK}partOf>", f"<{PARK}north>") for k in range(3)]
result = query.run(readings(minutes=30, turbines=5), graph=park)
for instant, rows in result.report(every=10 * MINUTE):
    print(datetime.fromtimestamp(instant / 1000, UTC).strftime("%H:%M"))
    for row in rows:
        name, mean = row["turbine"].removeprefix(PARK), float(row["mean"])
        print(f"    {name}  {mean:.2f} MW on average, {row['stops']} stops in the last hour")
