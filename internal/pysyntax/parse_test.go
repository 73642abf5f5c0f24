package pysyntax

import (
	"errors"
	"os"
	"strings"
	"testing"
)

// TestGrammar: the tree of every form is that of Python's own parser, which testdata/dump.py wrote.
func TestGrammar(t *testing.T) {
	source, err := os.ReadFile("testdata/grammar.py")
	if err != nil {
		t.Fatal(err)
	}
	want, err := os.ReadFile("testdata/grammar.golden")
	if err != nil {
		t.Fatal(err)
	}
	f, err := Parse("grammar.py", source)
	if err != nil {
		t.Fatal(err)
	}
	got, w := f.Dump(), strings.TrimSpace(string(want))
	for i := range min(len(got), len(w)) {
		if got[i] != w[i] {
			t.Fatalf("trees differ:\ngot  %.120s\nwant %.120s", got[max(i-60, 0):], w[max(i-60, 0):])
		}
	}
	if len(got) != len(w) {
		t.Errorf("%d bytes, want %d", len(got), len(w))
	}
}

// TestLater: what came after Python 3.11, by PEPs 695, 696, 701, 750 and 758.
func TestLater(t *testing.T) {
	for source, want := range map[string]string{
		"type X = int":                        "(file (type X int))",
		"type X[T: int, *Ts, **P] = list":     "(file (type X list))",
		"def f[T](x: T) -> T: pass":           "(file (def f (params (param x T)) T (do pass)))",
		"class A[T = int](B): pass":           "(file (class A B (do pass)))",
		`f"{a["b"]} {", ".join(c)}"`:          "(file (str (at a str) (call (. str join) c)))",
		`f"{f"{f"{1}"}"}"`:                    "(file (str (str (str num))))",
		"f'{a\n+ b # c\n}'":                   "(file (str (+ a b)))",
		`t"{a!r:{b}}"`:                        "(file (str a b))",
		"try: pass\nexcept A, B: pass":        "(file (try (do pass) (except (tuple A B) _ (do pass))))",
		`f'\N{DIGIT ONE}{a}'`:                 "(file (str a))",
		`rf'\{a}'`:                            "(file (str a))",
		"for x in y: pass; break":             "(file (for x y (do pass break)))",
		"x = [\n# nothing\n]":                 "(file (= x (list)))",
		"\ufeffx":                             "(file x)",
		"# -*- coding: latin-1 -*-\nx='\xe4'": "(file (= x str))",
	} {
		f, err := Parse("x.py", []byte(source))
		if err != nil {
			t.Errorf("%q: %v", source, err)
			continue
		}
		if got := f.Dump(); got != want {
			t.Errorf("%q: %s, want %s", source, got, want)
		}
	}
}

// TestErrors: what is no Python is refused, with the line and the column.
func TestErrors(t *testing.T) {
	for source, want := range map[string]string{
		"x = (1,\ny":                   "x.py:1:5: '(' is not closed",
		"f(\n  [a,\nb = 1\n\n":         "x.py:2:3: '[' is not closed",
		"x = {\nf(1])\n":               `x.py:2:4: "]" does not close '('`,
		"x = {\n'a': 1)\n":             `x.py:2:7: ")" does not close '{' of line 1`,
		"x = 1\ny = \"\"\"a\n\nb\n":    "x.py:2:5: the string has no end",
		"f\"\"\"{a\n":                  "x.py:1:2: a field of the string has no end",
		"if x\n  pass":                 `x.py:1:5: ":" is missing before the end of the line`,
		"if x:\npass":                  `x.py:2:1: an indented block is missing before "pass"`,
		"  x":                          "x.py:1:3: the line is indented, and no block begins before it",
		"if x:\n    y\n  z":            "x.py:3:3: the line is indented as no line before it",
		"print 'a'":                    "x.py:1:1: print is a statement of Python 2; this reads Python 3",
		"x = 'a\ny":                    "x.py:1:5: the string has no end on its line",
		"x = '''a\ny":                  "x.py:1:5: the string has no end",
		"f'{a'":                        "x.py:1:5: the string has no end",
		"f'{}'":                        "x.py:1:4: a field of the string is empty",
		"x)":                           `x.py:1:2: ")" closes nothing`,
		"(x]":                          `x.py:1:3: "]" does not close '('`,
		"\xff\xfex\x00":                "x.py:1:1: the file is in UTF-16, which Python does not read either; save it as UTF-8",
		"x = 1\ry = (\rz\r":            "x.py:2:5: '(' is not closed",
		"\xef\xbb\xbfx = 1\r\ny)":      `x.py:2:2: ")" closes nothing`,
		"ü = 'ä' + (1":                 "x.py:1:11: '(' is not closed",
		"x = \xff":                     "x.py:1:5: byte 0xff is not UTF-8; the file says that it is utf-8",
		"x = 1 +":                      "x.py:1:8: an expression is missing before the end of the line",
		"€ = 2":                        "x.py:1:1: '€' cannot be part of a name",
		"x = `y`":                      "x.py:1:5: '`' means nothing here",
		strings.Repeat("(", 5000):      "x.py:1:5000: '(' is not closed",
		strings.Repeat("-", 5000):      "x.py:1:401: the program is nested too deeply",
		strings.Repeat("a.", 20000):    "x.py:1:20204: the expression is too long",
		strings.Repeat("a+", 20000):    "x.py:1:20204: the expression is too long",
		strings.Repeat("a or ", 20000): "x.py:1:50508: the expression is too long",
		"a\x00b":                       "x.py:1:2: a byte of the source is zero",
		"def f(a b): pass":             `x.py:1:9: ")" is missing before "b"`,
		"x \\ y":                       "x.py:1:3: a backslash stands within a line",
		"async x":                      `x.py:1:7: def, for or with is missing before "x"`,
		"try: pass":                    "x.py:1:10: except or finally is missing before the end of the file",
		"match x:\n    case 1\n":       `x.py:2:11: ":" is missing before the end of the line`,
	} {
		_, err := Parse("x.py", []byte(source))
		var e *Error
		if !errors.As(err, &e) || err.Error() != want {
			t.Errorf("%.40q: %v, want %s", source, err, want)
		}
	}
}

// TestPlaces: nodes are where their text is.
func TestPlaces(t *testing.T) {
	f, err := Parse("x.py", []byte("a = 1\nif b:\r\n    c.d(e)  # f\n"))
	if err != nil {
		t.Fatal(err)
	}
	call := f.Body[1].(*If).Body[0].(*ExprStmt).X
	if f.Text(call) != "c.d(e)" || f.Line(call) != 3 || f.LineText(3) != "    c.d(e)  # f" || f.Comments[0].Text != "# f" || f.Line(f.Comments[0]) != 3 {
		t.Errorf("%q at line %d of %q, %v", f.Text(call), f.Line(call), f.LineText(3), f.Comments)
	}
	if p := f.Position(11); p != (Position{2, 6}) {
		t.Errorf("%v", p)
	}
}

func FuzzParse(f *testing.F) {
	grammar, err := os.ReadFile("testdata/grammar.py")
	if err != nil {
		f.Fatal(err)
	}
	for line := range strings.Lines(string(grammar)) {
		f.Add(line)
	}
	f.Add(string(grammar))
	f.Add("%time f()\n!ls \\\n -l\nx = !ls\nx?\nif x:\n\t?x\n(a\n% b)")
	f.Fuzz(func(t *testing.T, source string) {
		for _, parse := range []func(string, []byte) (*File, error){Parse, ParseCells} {
			whole(t, parse, source)
		}
	})
}

// whole checks the places in a program's tree, or in its error.
func whole(t *testing.T, parse func(string, []byte) (*File, error), source string) {
	file, err := parse("x.py", []byte(source))
	if err != nil {
		var e *Error
		if lines := positionIn([]byte(source), len(source)).Line; !errors.As(err, &e) || e.At.Line < 1 || e.At.Line > lines || e.At.Column < 1 || e.At.Column > len(e.Line)+1 {
			t.Fatalf("%v of %d lines", err, lines)
		}
		return
	}
	Inspect(file.Body, func(n Node) bool {
		if from, to := n.Span(); from < 0 || to < from || to > len(file.Source) {
			t.Fatalf("%T from %d to %d of %d", n, from, to, len(file.Source))
		}
		return true
	})
	file.Dump()
}

func BenchmarkParse(b *testing.B) {
	source, err := os.ReadFile("testdata/grammar.py")
	if err != nil {
		b.Fatal(err)
	}
	b.SetBytes(int64(len(source)))
	for b.Loop() {
		if _, err := Parse("grammar.py", source); err != nil {
			b.Fatal(err)
		}
	}
}
