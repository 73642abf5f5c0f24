# -*- coding: utf-8 -*-
"""Every form of the grammar, for the comparison with Python's own parser."""
from __future__ import annotations
import os, os.path as path, a.b.c
from . import x as y, z
from ...pkg.mod import (one, two as zwei,)
from m import *

@decorator
@other.one(1, *a, k=2, **kw)
async def f(a, b: int = 1, /, c=2, *args: str, d, e: float = 3, **kwargs) -> dict[str, int]:
    global g1, g2
    async for i, *j in agen(): await i; break
    else:
        pass
    async with open(x) as f1, lock: return
    return [await z async for z in q if z if not z]

def g(*, a=(yield)):
    nonlocal b
    x = yield
    y = yield 1, 2
    z = yield from g()
    lambda: (yield)
    return *a, b

class A(B, metaclass=M, *c, **d):
    x: int
    y: "str" = 'a' "b" r'\d'
    (z): int = 1

class C: pass
if a: b
elif c: d
elif e:
    f
else: g
while not (x := next(it)): continue
else: del x, (y, z), a[0], b.c
del (a, b)
for x in *a, b: pass
for (x, y), z in []: pass
try:
    raise
except (A, B) as e:
    raise E from None
except C:
    ...
else: pass
finally: pass
try: pass
except* G as g: pass
with a, b as c, d as (e, f): pass
with (a, b): pass
with (a as b, c as d,): pass
with (yield): pass
with (a).b as c: pass
with (open(a) if b else c) as d: pass
assert x, "message"
a = b = c, d = 1, 2
a += 1; b -= 2; c **= d; e //= f; g @= h; i >>= j; k <<= l; m |= n; o ^= p; q &= r; s %= t; u /= v; w *= x
1 if a else 2 if b else 3
not a and b or c and not d
a < b <= c != d is not e not in f in g is h == i > j >= k
-a ** -b + +c * ~d // e % f @ g << h >> i & j ^ k | l
a.b.c[0][1:2][::][:, ...][a:b:c, d][*e][*f, g](h)(*i, j=1, *k, **l)
f(x for x in y)
f(a, b := c, d=lambda x, *y, z=1, **k: x)
lambda *, a: a
lambda: 0
lambda a, /, b=1: (a, b)
{}, {1}, {1, *a}, {1: 2, **b, 'c': d}, [], [1], [*a, b], (), (1,), (1), (*a,)
[x for x in a if b if c for y in d if e], {x for x in a}, {x: y for x, y in z}, (x async for x in y)
[a for a in b if c or d], [x if y else z for x in a]
0x_ff, 0o17, 0b1, 1_000, 1., .5, 1e10, 1E-5, 1j, 1.5J, 0xfor 1, 1if 1else 2
f"a{b}c{d!r:>{width}}e{{f}}" "g" f'{h:%H:%M}' F"{i=}" rf"\d{j}" f"{k == l}" f"{m != n!s}" f'{a["b"]}' f"{(lambda x: x)(1)}"
f"""{
    a
    + b
}
{x:{y}.{z}}"""
'''a "b" 'c' \''' ''', """d\
e"""
print(*a, sep='', file=f)
match = 1
case = match
match(x)
match[0] = 1
match.x, match
type = 5
type(x)
match x:
    case 1 | 2: pass
    case "a" if b: pass
    case [a, *rest]: pass
    case {"k": v, **others}: pass
    case P(x, y=z): pass
    case A.B: pass
    case (1, c) as d: pass
    case -1 | 1+2j | None | True: pass
    case _: pass
match a, b:
    case c, d:
        pass
if True:
	tabbed
x = \
    1 + \
    2
if (a and
        b): pass  # a comment
# the end
a if b else(lambda: c)
x = (  # in brackets
    1,
    # alone
    2,
)
def h(): return; pass
print(a if b else c, not d)
a[b, c:d], a[b:c, ], a[lambda: 1]
i = 5 ; j = 6 ;
