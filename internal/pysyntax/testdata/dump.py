"""Python's own parser as the judge of ours: the tree of each program as one line of text, as pysyntax.Dump writes it.

    python dump.py FILE...        # "FILE<tab>tree", or "FILE<tab>!reason"
    python dump.py -hash DIR      # all programs of a folder, "FILE<tab>sha256 of the tree"
"""
import ast
import hashlib
import os
import sys
import warnings

warnings.simplefilter("ignore")
sys.setrecursionlimit(20000)
OPS = {"Add": "+", "Sub": "-", "Mult": "*", "MatMult": "@", "Div": "/", "Mod": "%", "Pow": "**", "LShift": "<<", "RShift": ">>", "BitOr": "|", "BitXor": "^",
       "BitAnd": "&", "FloorDiv": "//", "Invert": "~", "Not": "not", "UAdd": "+", "USub": "-", "Eq": "==", "NotEq": "!=", "Lt": "<", "LtE": "<=", "Gt": ">",
       "GtE": ">=", "Is": "is", "IsNot": "is not", "In": "in", "NotIn": "not in", "And": "and", "Or": "or"}


def op(o):
    return OPS[type(o).__name__]


def p(word, *parts):
    return "(" + " ".join([word, *[x for x in parts if x is not None]]) + ")"


def body(word, stmts):
    return p(word, *[d(s) for s in stmts]) if stmts else None


def one(x):
    return d(x) if x is not None else "_"


def args(a):
    out = []
    plain = a.posonlyargs + a.args
    defaults = [None] * (len(plain) - len(a.defaults)) + list(a.defaults)
    for x, v in zip(plain, defaults):
        out.append(p("param", x.arg, x.annotation and d(x.annotation), v and p("=", d(v))))
    if a.vararg:
        out.append(p("param*", a.vararg.arg, a.vararg.annotation and d(a.vararg.annotation)))
    for x, v in zip(a.kwonlyargs, a.kw_defaults):
        out.append(p("param", x.arg, x.annotation and d(x.annotation), v and p("=", d(v))))
    if a.kwarg:
        out.append(p("param**", a.kwarg.arg, a.kwarg.annotation and d(a.kwarg.annotation)))
    return p("params", *out)


def call_args(n, plain):
    # In the order of the source, as ours are.
    items = [(a.lineno, a.col_offset, p("*", d(a.value)) if isinstance(a, ast.Starred) else d(a)) for a in plain]
    for k in n.keywords:
        items.append((k.lineno, k.col_offset, p("**", d(k.value)) if k.arg is None else p("kw", k.arg, d(k.value))))
    return [x for _, _, x in sorted(items, key=lambda i: i[:2])]


def fields(n):
    out = []
    for v in n.values:
        if isinstance(v, ast.FormattedValue):
            out.append(d(v.value))
            if v.format_spec is not None:
                out += fields(v.format_spec)
        elif isinstance(v, ast.JoinedStr):
            out += fields(v)
    return out


def binds(n):
    out = []
    for x in ast.walk(n):
        for name in ("name", "rest"):
            v = getattr(x, name, None)
            if isinstance(x, (ast.MatchAs, ast.MatchStar, ast.MatchMapping)) and v is not None:
                out.append(v)
    return sorted(out)


def comp(word, n, *elements):
    clauses = [p("for", "async" if g.is_async else None, d(g.target), d(g.iter), *[d(i) for i in g.ifs]) for g in n.generators]
    return p(word, *[d(e) for e in elements], *clauses)


def d(n):
    t = type(n).__name__
    if t == "Name":
        return n.id
    if t == "Constant":
        if n.value is None or n.value is True or n.value is False:
            return str(n.value)
        if n.value is ...:
            return "..."
        return "bytes" if isinstance(n.value, bytes) else "str" if isinstance(n.value, str) else "num"
    if t == "JoinedStr":
        f = fields(n)
        return p("str", *f) if f else "str"
    if t == "Attribute":
        return p(".", d(n.value), n.attr)
    if t == "Call":
        return p("call", d(n.func), *call_args(n, n.args))
    if t == "Subscript":
        return p("at", d(n.value), d(n.slice))
    if t == "Slice":
        return p("slice", one(n.lower), one(n.upper), one(n.step))
    if t == "Starred":
        return p("*", d(n.value))
    if t == "UnaryOp":
        return p(op(n.op), d(n.operand))
    if t == "Await":
        return p("await", d(n.value))
    if t == "BinOp":
        return p(op(n.op), d(n.left), d(n.right))
    if t == "BoolOp":
        x = d(n.values[0])
        for v in n.values[1:]:
            x = p(op(n.op), x, d(v))
        return x
    if t == "Compare":
        return p("cmp", d(n.left), *[y for o, c in zip(n.ops, n.comparators) for y in (op(o), d(c))])
    if t == "IfExp":
        return p("?", d(n.test), d(n.body), d(n.orelse))
    if t == "Lambda":
        return p("lambda", args(n.args), d(n.body))
    if t in ("Tuple", "List", "Set"):
        return p(t.lower(), *[d(e) for e in n.elts])
    if t == "Dict":
        return p("dict", *[p("**", d(v)) if k is None else p(":", d(k), d(v)) for k, v in zip(n.keys, n.values)])
    if t == "ListComp":
        return comp("listcomp", n, n.elt)
    if t == "SetComp":
        return comp("setcomp", n, n.elt)
    if t == "GeneratorExp":
        return comp("generator", n, n.elt)
    if t == "DictComp":
        return comp("dictcomp", n, n.key, n.value)
    if t == "Yield":
        return p("yield", one(n.value))
    if t == "YieldFrom":
        return p("yieldfrom", d(n.value))
    if t == "NamedExpr":
        return p(":=", d(n.target), d(n.value))
    return statement(t, n)


def statement(t, n):
    if t == "Expr":
        return d(n.value)
    if t == "Assign":
        return p("=", *[d(x) for x in n.targets], d(n.value))
    if t == "AugAssign":
        return p(op(n.op) + "=", d(n.target), d(n.value))
    if t == "AnnAssign":
        return p("ann", d(n.target), d(n.annotation), one(n.value))
    if t == "Return":
        return p("return", one(n.value))
    if t == "Raise":
        return p("raise", one(n.exc), one(n.cause))
    if t == "Assert":
        return p("assert", d(n.test), one(n.msg))
    if t == "Delete":
        return p("del", *[d(x) for x in n.targets])
    if t in ("Pass", "Break", "Continue"):
        return t.lower()
    if t in ("Global", "Nonlocal"):
        return p(t.lower(), *n.names)
    if t == "Import":
        return p("import", *[a.name + ("=" + a.asname if a.asname else "") for a in n.names])
    if t == "ImportFrom":
        return p("from", "." * n.level + (n.module or ""), *[a.name + ("=" + a.asname if a.asname else "") for a in n.names])
    if t == "If":
        return p("if", d(n.test), body("then", n.body), body("else", n.orelse))
    if t in ("For", "AsyncFor"):
        return p("for" if t == "For" else "asyncfor", d(n.target), d(n.iter), body("do", n.body), body("else", n.orelse))
    if t == "While":
        return p("while", d(n.test), body("do", n.body), body("else", n.orelse))
    if t in ("Try", "TryStar"):
        hs = [p("except", one(h.type), h.name or "_", body("do", h.body)) for h in n.handlers]
        return p("try", body("do", n.body), *hs, body("else", n.orelse), body("finally", n.finalbody))
    if t in ("With", "AsyncWith"):
        return p("with" if t == "With" else "asyncwith", *[p("item", d(i.context_expr), one(i.optional_vars)) for i in n.items], body("do", n.body))
    if t in ("FunctionDef", "AsyncFunctionDef"):
        return p("def" if t == "FunctionDef" else "asyncdef", n.name, *[p("@", d(x)) for x in n.decorator_list], args(n.args), one(n.returns), body("do", n.body))
    if t == "ClassDef":
        return p("class", n.name, *[p("@", d(x)) for x in n.decorator_list], *call_args(n, n.bases), body("do", n.body))
    if t == "Match":
        return p("match", d(n.subject), *[p("case", *binds(c.pattern), one(c.guard), body("do", c.body)) for c in n.cases])
    if t == "TypeAlias":
        return p("type", d(n.name), d(n.value))
    raise SystemExit("no " + t)


def tree(path):
    with open(path, "rb") as f:
        source = f.read()
    try:
        module = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError) as e:
        return "!" + type(e).__name__ + " " + str(e).replace("\n", " ")
    return p("file", *[d(s) for s in module.body])


def main():
    if sys.argv[1] != "-hash":
        for path in sys.argv[1:]:
            print(path + "\t" + tree(path))
        return
    for root, dirs, files in os.walk(sys.argv[2]):
        dirs.sort()
        for name in sorted(files):
            path = os.path.join(root, name)
            if name.endswith(".py") and os.path.isfile(path):
                t = tree(path)
                print(path + "\t" + (t if t.startswith("!") else hashlib.sha256(t.encode("utf-8", "surrogatepass")).hexdigest()))


main()
