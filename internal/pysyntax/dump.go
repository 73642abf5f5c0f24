package pysyntax

import (
	"slices"
	"strings"
)

// Dump is a program's tree as one line of text, as testdata/dump.py writes that of Python's own parser.
func (f *File) Dump() string {
	d := &dumper{}
	d.open("file")
	d.stmts(f.Body)
	d.close()
	return d.String()
}

type dumper struct{ strings.Builder }

func (d *dumper) word(w string) {
	if n := d.Len(); n > 0 {
		d.WriteByte(' ')
	}
	d.WriteString(w)
}

func (d *dumper) open(w string) { d.word("(" + w) }
func (d *dumper) close()        { d.WriteByte(')') }

// node is a word with operands.
func (d *dumper) node(w string, operands ...Expr) {
	d.open(w)
	for _, x := range operands {
		d.expr(x)
	}
	d.close()
}

func (d *dumper) stmts(body []Stmt) {
	for _, s := range body {
		d.stmt(s)
	}
}

// body is a block, if it is not empty.
func (d *dumper) body(w string, body []Stmt) {
	if len(body) == 0 {
		return
	}
	d.open(w)
	d.stmts(body)
	d.close()
}

// expr is an expression; one that is left out is _.
func (d *dumper) expr(x Expr) {
	switch x := x.(type) {
	case nil:
		d.word("_")
	case *Name:
		d.word(x.ID)
	case *Number:
		d.word("num")
	case *Ellipsis:
		d.word("...")
	case *String:
		d.str(x)
	case *Attribute:
		d.open(".")
		d.expr(x.X)
		d.word(x.Attr)
		d.close()
	case *Call:
		d.open("call")
		d.expr(x.Func)
		d.args(x.Args)
		d.close()
	case *Subscript:
		d.node("at", x.X, x.Index)
	case *Slice:
		d.node("slice", x.Low, x.High, x.Step)
	case *Unary:
		d.node(x.Op, x.X)
	case *Binary:
		d.node(x.Op, x.X, x.Y)
	case *Compare:
		d.open("cmp")
		d.expr(x.First)
		for i, r := range x.Rest {
			d.word(x.Ops[i])
			d.expr(r)
		}
		d.close()
	default:
		d.larger(x)
	}
}

func (d *dumper) larger(x Expr) {
	switch x := x.(type) {
	case *Conditional:
		d.node("?", x.Test, x.Then, x.Else)
	case *Lambda:
		d.open("lambda")
		d.params(x.Params)
		d.expr(x.Body)
		d.close()
	case *Sequence:
		d.node(map[byte]string{'(': "tuple", '[': "list", '{': "set"}[x.Kind], x.Elements...)
	case *Dict:
		d.open("dict")
		for i, v := range x.Values {
			if x.Keys[i] == nil {
				d.node("**", v)
			} else {
				d.node(":", x.Keys[i], v)
			}
		}
		d.close()
	case *Comprehension:
		d.comprehension(x)
	case *Yield:
		if x.From {
			d.node("yieldfrom", x.X)
		} else {
			d.node("yield", x.X)
		}
	case *Walrus:
		d.node(":=", x.Name, x.Value)
	}
}

func (d *dumper) str(x *String) {
	switch {
	case x.Bytes:
		d.word("bytes")
	case len(x.Fields) == 0:
		d.word("str")
	default:
		d.node("str", x.Fields...)
	}
}

func (d *dumper) comprehension(x *Comprehension) {
	word := map[byte]string{'(': "generator", '[': "listcomp", '{': "setcomp"}[x.Kind]
	if x.Key != nil {
		word = "dictcomp"
	}
	d.open(word)
	if x.Key != nil {
		d.expr(x.Key)
	}
	d.expr(x.Element)
	for _, c := range x.Clauses {
		d.open("for")
		if c.Async {
			d.word("async")
		}
		d.expr(c.Target)
		d.expr(c.Iter)
		for _, i := range c.Conds {
			d.expr(i)
		}
		d.close()
	}
	d.close()
}

func (d *dumper) args(args []Arg) {
	for _, a := range args {
		switch {
		case a.Star != "":
			d.node(a.Star, a.Value)
		case a.Name != "":
			d.open("kw")
			d.word(a.Name)
			d.expr(a.Value)
			d.close()
		default:
			d.expr(a.Value)
		}
	}
}

func (d *dumper) params(params []Param) {
	d.open("params")
	for _, p := range params {
		d.open("param" + p.Star)
		d.word(p.Name)
		if p.Annotation != nil {
			d.expr(p.Annotation)
		}
		if p.Default != nil {
			d.node("=", p.Default)
		}
		d.close()
	}
	d.close()
}

func (d *dumper) stmt(s Stmt) {
	switch s := s.(type) {
	case *ExprStmt:
		d.expr(s.X)
	case *Assign:
		d.node("=", append(s.Targets[:len(s.Targets):len(s.Targets)], s.Value)...)
	case *AugAssign:
		d.node(s.Op+"=", s.Target, s.Value)
	case *AnnAssign:
		d.node("ann", s.Target, s.Annotation, s.Value)
	case *Return:
		d.node("return", s.X)
	case *Raise:
		d.node("raise", s.X, s.From)
	case *Assert:
		d.node("assert", s.Test, s.Message)
	case *Delete:
		d.node("del", s.Targets...)
	case *Branch:
		d.word(s.Word)
	case *Scope:
		d.open(s.Word)
		for _, n := range s.Names {
			d.word(n)
		}
		d.close()
	case *Import:
		d.aliases("import", s.Names)
	case *ImportFrom:
		d.aliases("from "+strings.Repeat(".", s.Level)+s.Module, s.Names)
	case *TypeAlias:
		d.open("type")
		d.word(s.Name)
		d.expr(s.Value)
		d.close()
	default:
		d.block(s)
	}
}

func (d *dumper) aliases(word string, names []Alias) {
	d.open(word)
	for _, n := range names {
		if n.As != "" {
			n.Name += "=" + n.As
		}
		d.word(n.Name)
	}
	d.close()
}

// async is a word with what an asynchronous form has before it.
func async(is bool, word string) string {
	if is {
		return "async" + word
	}
	return word
}

// block is a statement with blocks.
func (d *dumper) block(s Stmt) {
	switch s := s.(type) {
	case *If:
		d.open("if")
		d.expr(s.Test)
		d.body("then", s.Body)
		d.body("else", s.Else)
	case *For:
		d.open(async(s.Async, "for"))
		d.expr(s.Target)
		d.expr(s.Iter)
		d.body("do", s.Body)
		d.body("else", s.Else)
	case *While:
		d.open("while")
		d.expr(s.Test)
		d.body("do", s.Body)
		d.body("else", s.Else)
	case *Try:
		d.open("try")
		d.body("do", s.Body)
		for _, h := range s.Handlers {
			d.handler(&h)
		}
		d.body("else", s.Else)
		d.body("finally", s.Finally)
	case *With:
		d.open(async(s.Async, "with"))
		for _, i := range s.Items {
			d.node("item", i.Context, i.Target)
		}
		d.body("do", s.Body)
	case *Function:
		d.def(s)
	case *Class:
		d.open("class " + s.Name)
		d.decorators(s.Decorators)
		d.args(s.Bases)
		d.body("do", s.Body)
	case *Match:
		d.open("match")
		d.expr(s.Subject)
		for _, c := range s.Cases {
			d.match(&c)
		}
	}
	d.close()
}

func (d *dumper) handler(h *Handler) {
	d.open("except")
	d.expr(h.Type)
	if h.Name == "" {
		d.word("_")
	} else {
		d.word(h.Name)
	}
	d.body("do", h.Body)
	d.close()
}

func (d *dumper) decorators(all []Expr) {
	for _, x := range all {
		d.node("@", x)
	}
}

func (d *dumper) def(s *Function) {
	d.open(async(s.Async, "def") + " " + s.Name)
	d.decorators(s.Decorators)
	d.params(s.Params)
	d.expr(s.Returns)
	d.body("do", s.Body)
}

func (d *dumper) match(c *Case) {
	d.open("case")
	for _, n := range slices.Sorted(slices.Values(c.Binds)) {
		d.word(n)
	}
	d.expr(c.Guard)
	d.body("do", c.Body)
	d.close()
}
