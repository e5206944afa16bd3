"""Kinds of text told from the text alone."""

import random
from pathlib import Path
from pydoc_data import topics

import pytest

from tests.layers.filter.documents import judged

CODE = {
    "python": '''
@dataclass(frozen=True)
class Gauge:
    """One gauge of a river."""
    name: str
    readings: list[float] = field(default_factory=list)

    def mean(self, last: int = 0) -> float:
        values = self.readings[-last:]
        if not values:
            raise ValueError(f"{self.name}: no readings")
        return sum(values) / len(values)
''',
    "c": """
#include <stdio.h>
/* Reads levels until the end of the file. */
static int read_level(FILE *in, struct level *out)
{
    if (fscanf(in, "%d %d", &out->day, &out->mm) != 2)
        return -1;
    return out->mm > 0 ? 0 : 1;
}
""",
    "java": """
package org.example.river;
public final class Gauge implements Comparable<Gauge> {
    private final String name;
    @Override
    public int compareTo(Gauge other) {
        return this.name.compareTo(other.name);
    }
}
""",
    "javascript": """
const levels = await fetch(`/api/levels?gauge=${id}`).then((r) => r.json());
export function highest(levels) {
  return levels.reduce((best, level) => (level.mm > best.mm ? level : best), levels[0]);
}
document.querySelector("#gauge").addEventListener("change", () => draw(levels));
""",
    "minified": "function a(b,c){return b.map(function(d){return d.x*c}).filter(function(e){return e>0})}"
    'var f=a([],2),g=f.length;if(g===0){console.log("empty")}else{for(var h=0;h<g;h++){f[h]=f[h]+1}}'
    "window.levels=f;",
    "rust": """
pub fn highest(levels: &[Level]) -> Option<&Level> {
    let mut best = levels.first()?;
    for level in levels.iter().skip(1) {
        if level.mm > best.mm { best = level; }
    }
    Some(best)
}
""",
    "go": """
package main
import "fmt"
func highest(levels []Level) (best Level, err error) {
	for _, level := range levels {
		if level.MM > best.MM {
			best = level
		}
	}
	fmt.Println(best.Day)
	return best, nil
}
""",
    "sql": """
CREATE TABLE reading (
    id BIGINT PRIMARY KEY,
    gauge_id INT NOT NULL REFERENCES gauge (id),
    level_mm INT CHECK (level_mm >= 0)
);
SELECT g.name, max(r.level_mm) AS highest
FROM reading r JOIN gauge g ON g.id = r.gauge_id
WHERE r.level_mm > 100
GROUP BY g.name;
""",
    "shell": """
#!/bin/sh
set -eu
for file in "$DIR"/*.csv; do
    if [ -s "$file" ]; then
        cut -d, -f2 "$file" | sort -n | tail -1 >> "$OUT"
    fi
done
echo "done: $OUT"
""",
    "ruby": """
require "csv"
class Gauge
  attr_reader :name, :levels
  def initialize(name)
    @name = name
    @levels = []
  end
  def highest
    @levels.max_by { |level| level.mm }
  end
end
""",
    "typescript": """
interface Level { day: number; mm: number }
export const highest = (levels: Level[]): Level | undefined =>
  levels.sort((a, b) => b.mm - a.mm)[0];
type Named<T> = T & { name: string };
let current: Named<Level> | null = null;
""",
    "css": """
.gauge-list > li { margin: 0 0.5rem; color: #334; }
@media (max-width: 40em) {
  .gauge-list { display: grid; grid-template-columns: 1fr 2fr; }
}
.gauge-list a:hover { text-decoration: none; }
""",
    "chinese comments": """
def 最高水位(读数列表):
    # 返回一天之中最高的水位，单位是毫米
    result = None
    for item in 读数列表:
        if result is None or item.mm > result.mm:
            result = item  # 记住目前最高的一个
    return result
""",
}
PROSE = {
    "english": "The gauge at the old bridge was read every morning. In spring the river rose by two metres,"
    " and the meadows\nstood under water for a week; nobody could cross it.\n" * 3,
    "bullets": "".join(
        f"* {line}\n" for line in ["Open the valve slowly", "Read the scale twice", "Write it down"] * 4
    ),
    "clauses": "".join(
        f"- the {name} of the river in that year;\n" for name in ["level", "width", "course"] * 4
    ),
    "man page": """
GAUGE(1)                     User Commands                     GAUGE(1)
NAME
       gauge - print the level of a river
SYNOPSIS
       gauge [OPTION]... [FILE]
DESCRIPTION
       Print the highest level of each FILE. With no FILE, or when FILE is -, read
       standard input, which must hold one reading in each line.
       -n, --lines=NUMBER
              look at no more than this number of lines from the end of each file
       -q, --quiet
              print nothing; the exit status alone says whether a level was too high
""",
    "api page": """
levels.highest(readings, *, unit="mm")
Return the highest of the readings. The argument may be any iterable of numbers, and readings that are missing
are left out. If there is none at all, ValueError is raised. The keyword argument unit names the unit of the
result; see convert() for those that are understood. Changed in version 3.2: the unit may be left out.
""",
    "chinese": "河边的水位每天早上读一次。春天水涨了两米，草地在水里泡了一个星期；没有人能过河。\n" * 4,
    "chinese bullets": "".join(
        f"# {line}\n" for line in ["打开阀门之前先看刻度", "把读数写在本子上", "关上门"] * 4
    ),
    "chinese technical": "在终端里运行 gauge --lines=10 命令，可以看到最近十次读数（level_mm 字段）。\n"
    "如果配置文件 /etc/gauge.conf 不存在，程序会使用默认值，例如 unit=mm。\n" * 3,
    "russian": "".join(
        f"    {line},\n" for line in ["Утром мы смотрели на реку", "Вода стояла высоко у моста"] * 5
    ),
    "verse": "".join(
        f"  {line},\n"
        for line in ["The river rose beside the mill", "And all the fields were grey and still"] * 4
    ),
    "numbers": "\n".join(str(number) for number in range(11_000, 11_200)),
    "empty": "",
}


def kind(texts):
    return judged(texts).outputs["verdicts"]["kind"].to_pylist()


@pytest.mark.parametrize("name", CODE)
def test_code_is_recognised(name):
    assert kind([CODE[name].strip("\n")]) == ["code"]


@pytest.mark.parametrize("name", PROSE)
def test_prose_is_left_as_prose(name):
    assert kind([PROSE[name]]) == ["prose"]


def test_shares_on_text_that_ships_with_python():
    prose = [text[:4_000] for _, text in sorted(topics.topics.items()) if len(text) > 1_500]
    sources = [p.read_text(encoding="utf-8") for p in sorted(Path(random.__file__).parent.glob("*.py"))[:120]]
    pieces = [
        s[start : start + 3_000] for s in sources for start in range(0, min(len(s) - 1_500, 9_000), 3_000)
    ]
    assert len(pieces) > 200
    # The first pieces of modules are long docstrings.
    assert kind(pieces).count("code") / len(pieces) >= 0.85
    assert kind(prose).count("code") / len(prose) <= 0.05


def test_the_kind_does_not_depend_on_the_batch():
    texts = [*CODE.values(), *PROSE.values()]
    assert kind(texts) == [k for text in texts for k in kind([text])]


def test_an_empty_batch_has_no_kinds():
    assert kind([]) == []


def test_hints_decide():
    verdicts = judged([PROSE["english"], CODE["c"], CODE["c"]], ["code", "", "dialogue"]).outputs["verdicts"]
    assert verdicts["kind"].to_pylist() == ["code", "code", "dialogue"]
