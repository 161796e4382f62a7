"""Input of the projects that are compared: what streams read only grows; of the rest files are written anew, and go."""

import random
from typing import Any

from tests.pipelines.projects import Project


class Input:
    """Random input of a project, round by round. What streams read only grows."""

    def __init__(self, project: Project, seed: int) -> None:
        self.project, self.random, self.number = project, random.Random(seed), 0
        self.versions: dict[int, int] = {}

    def next(self) -> None:
        self.number += 1
        getattr(self, self.project.name, lambda: None)()

    def shop(self) -> None:
        pick = self.random.randint
        self._grow("orders", [
            {"id": self.number * 100 + i, "customer": pick(1, 6), "product": pick(1, 5), "quantity": pick(-1, 5), "day": f"d{pick(1, 4)}"}
            for i in range(pick(1, 40))
        ])  # fmt: skip
        self._grow("returns", [{"id": pick(100, self.number * 100 + 30), "quantity": 1} for _ in range(pick(1, 5))])
        self._stir("customers", "csv", lambda part: [{"customer": part * 2 + i, "town": self.random.choice("ABC")} for i in range(2)])
        self._stir("products", "json", lambda part: [
            {"product": part * 2 + i, "price": pick(1, 900) / 100, "kind": self.random.choice(("tool", "toy"))} for i in range(2)
        ])  # fmt: skip

    def fleet(self) -> None:
        pick = self.random.randint
        self._grow("positions", [
            {"van": f"v{pick(1, 6)}", "at": f"2026-01-01T{pick(10, 23)}:{pick(10, 59)}:00", "km": pick(0, 500) / 2, "load": pick(0, 100)}
            for _ in range(pick(5, 60))
        ])  # fmt: skip
        self._stir("vans", "csv", lambda part: [{"van": f"v{part * 2 + i}", "depot": self.random.choice("XYZ")} for i in range(2)])

    def bank(self) -> None:
        pick = self.random.randint
        self._grow("accounts", [self._event(pick(1, 8)) for _ in range(pick(1, 12))])
        self._grow("transfers", [
            {"id": self.number * 100 + i, "source": pick(1, 8), "target": pick(1, 8), "amount": pick(1, 90000) / 100}
            for i in range(pick(1, 40))
        ])  # fmt: skip
        self._stir("branches", "csv", lambda part: [{"branch": f"b{part}", "region": self.random.choice("NS")}])

    def _event(self, account: int) -> dict[str, Any]:
        self.versions[account] = version = self.versions.get(account, 0) + self.random.randint(1, 3)
        said = {"holder": self.random.choice(("ann", "bea")), "branch": f"b{self.random.randint(0, 4)}"}
        return {"account": account, **said, "version": version, "op": self.random.choice(("UPSERT", "UPSERT", "UPSERT", "DELETE"))}

    def retail(self) -> None:
        pick = self.random.randint
        self._grow("sales", [
            {"number": self.number * 100 + i, "buyer": f"b{pick(1, 5)}", "at": f"2026-01-0{pick(1, 5)}", "lines": self._some(6, pick(0, 3))}
            for i in range(pick(1, 20))
        ])  # fmt: skip
        states = ("NY", "CA")
        self._stir("buyers", "csv", lambda part: [{"buyer": f"b{part * 2 + i}", "state": self.random.choice(states)} for i in range(2)])

    def regions(self) -> None:
        pick = self.random.randint
        nations = ("FR", "DE", "IT")
        self._stir("customers", "json", lambda part: [{"c_key": part * 2 + i, "c_nation": self.random.choice(nations)} for i in range(2)])
        self._stir("orders", "json", lambda part: [
            {"o_key": part * 100 + i, "o_customer": pick(0, 6), "o_total": pick(1, 900) / 4} for i in range(pick(1, 9))
        ])  # fmt: skip

    def library(self) -> None:
        pick = self.random.randint
        self._grow("loans", [{"book": pick(1, 8), "days": pick(1, 40)} for _ in range(pick(1, 20))])
        self._stir("books", "csv", lambda part: [
            {"book": part * 3 + i, "title": f"on {pick(1, 9)}", "shelf": f"s{pick(1, 3)}"} for i in range(3)
        ])  # fmt: skip

    def devices(self) -> None:
        pick = self.random.randint
        self._stir("readings", "json", lambda part: [
            {"device": f"d{part}{i}", "place": {"room": f"r{pick(1, 3)}"}, "values": self._some(100, pick(1, 5))} for i in range(3)
        ])  # fmt: skip

    def visits(self) -> None:
        pick = self.random.randint
        self._stir("visits", "json", lambda part: [
            {"page": f"p{pick(1, 4)}", "visitor": f"v{pick(1, 6)}", "at": f"2026-01-01T{pick(10, 12)}:{pick(10, 59)}:00"} for _ in range(8)
        ])  # fmt: skip

    def contracts(self) -> None:
        found = []
        for _ in range(self.random.randint(1, 12)):
            id = self.random.randint(1, 5)
            self.versions[id] = changed = self.versions.get(id, 0) + self.random.randint(1, 3)
            plan, price = self.random.choice(("basic", "plus")), self.random.randint(1, 9)
            found.append({"id": id, "plan": plan, "price": price, "changed": changed, "gone": self.random.random() < 0.2})
        self._grow("contracts", found)

    def _some(self, most: int, count: int) -> list[int]:
        return [self.random.randint(1, most) for _ in range(count)]

    def _grow(self, folder: str, rows: list[dict[str, Any]]) -> None:
        self.random.shuffle(rows)
        self.project.put(f"{folder}/{self.number}.json", rows)

    def _stir(self, folder: str, suffix: str, rows: Any) -> None:
        """Some files of a folder are written anew, and one may go."""
        parts = list(range(3)) if self.number == 1 else self.random.sample(range(3), self.random.randint(0, 2))
        for part in parts:
            self.project.put(f"{folder}/{part}.{suffix}", rows(part))
        there = sorted((self.project.folder / "in" / folder).glob(f"*.{suffix}"))
        if self.number > 1 and len(there) > 1 and self.random.random() < 0.4:
            self.random.choice(there).unlink()
