"""Events of the M5 calendar, and a correction of a copy with inconsistent event numbers.

The copy published by functime numbers events in train and test separately: 1 is the Super Bowl in
train and Pesach End in test. Here the test days have the numbers of train, in the order of the M5
calendar.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import pandas as pd

# event -> (its number, the number of its type)
TYPES = {"Sporting": 1, "Cultural": 2, "National": 3, "Religious": 4}
EVENTS = {
    "SuperBowl": 1, "ValentinesDay": 2, "PresidentsDay": 3, "LentStart": 4, "LentWeek2": 5, "StPatricksDay": 6, "Purim End": 7,
    "OrthodoxEaster": 8, "Pesach End": 9, "Cinco De Mayo": 10, "Mother's day": 11, "MemorialDay": 12, "NBAFinalsStart": 13,
    "NBAFinalsEnd": 14, "Father's day": 15, "IndependenceDay": 16, "Ramadan starts": 17, "Eid al-Fitr": 18, "LaborDay": 19,
    "ColumbusDay": 20, "Halloween": 21, "EidAlAdha": 22, "VeteransDay": 23, "Thanksgiving": 24, "Christmas": 25,
    "Chanukah End": 26, "NewYear": 27, "OrthodoxChristmas": 28, "MartinLutherKingDay": 29, "Easter": 30,
}  # fmt: skip
FIRST_TEST_DAY = "2016-04-25"
# meaning of the numbers in the test days of the copy
TEST_EVENTS = {"1": "Pesach End", "2": "OrthodoxEaster", "3": "Cinco De Mayo", "4": "Mother's day"}
TEST_TYPES = {"1": "Religious", "2": "Cultural"}


def align_event_numbers(frame: pd.DataFrame) -> None:
    """Renumber the events of test days as in train, in place."""
    test = frame["ds"] >= FIRST_TEST_DAY
    event, event_type = frame["event"].astype(object), frame["event_type"].astype(object)
    if not set(event[test]) <= {"0", *TEST_EVENTS}:
        return  # already consistent
    event[test] = event[test].map({"0": "0"} | {number: str(EVENTS[name]) for number, name in TEST_EVENTS.items()})
    type_numbers = {"0": "0"} | {number: str(TYPES[name]) for number, name in TEST_TYPES.items()}
    event_type[test] = event_type[test].map(type_numbers)
    frame["event"], frame["event_type"] = event.astype("category"), event_type.astype("category")
