package vetgo

import (
	"errors"
	"go/ast"
	"go/token"
	"go/types"
	"maps"
	"slices"
	"strings"
	"testing"

	"golang.org/x/tools/go/analysis"

	"github.com/warpline-ml/warpline/internal/vet"
	"github.com/warpline-ml/warpline/internal/vet/vettest"
)

// FuzzRules runs all rules over programs that compile: those of the tests, of which a script puts expressions in place of others of
// their type, and copies, moves, wraps and drops statements. No rule may panic, and what a fix makes of a program must compile.
func FuzzRules(f *testing.F) {
	programs := sources(f)
	vettest.Examples(f, vet.Go, "go", func(r vet.Rule, broken, mended string) {
		programs[r.ID+"_broken.go"], programs[r.ID+"_mended.go"] = broken, mended
	})
	names := slices.Sorted(maps.Keys(programs))
	for i := range names {
		f.Add(uint8(i), []byte{byte(i), 5, 9, 1, 200, 3, 3, 80, 0, 4, 17, 120, 0, 30, 90})
	}
	f.Fuzz(func(t *testing.T, which uint8, script []byte) {
		name := names[int(which)%len(names)]
		c := altered(t, programs[name], script)
		r := &runner{pass: analysis.Pass{Fset: c.fset}}
		for _, d := range c.run(t) {
			for _, fix := range d.SuggestedFixes {
				source := apply(string(c.src), r.edits(fix))
				if m := compileIn(t, token.NewFileSet(), "mended.go", source); m.wrong != nil && c.wrong == nil {
					t.Errorf("%s: %s: %v\n%s", name, d.Message, m.wrong, source)
				}
			}
		}
	})
}

// altered is a program with as many edits of a script as compile.
func altered(t *testing.T, source string, script []byte) *compiled {
	c := compileIn(t, token.NewFileSet(), "altered.go", source)
	for range 12 {
		if len(script) < 3 {
			break
		}
		edited := c.edited(script[0], int(script[1]), int(script[2]))
		script = script[3:]
		if next := compileIn(t, token.NewFileSet(), "altered.go", edited); next.runs() {
			c = next
		}
	}
	return c
}

// runs tells whether rules may see a program: what nobody uses does not matter to them.
func (c *compiled) runs() bool {
	return c.pkg != nil && !slices.ContainsFunc(flat(c.wrong), func(err error) bool {
		e := types.Error{}
		return !errors.As(err, &e) || !e.Soft
	})
}

// flat are the errors that were joined.
func flat(err error) (all []error) {
	joined, ok := err.(interface{ Unwrap() []error })
	switch {
	case err == nil:
		return nil
	case !ok:
		return []error{err}
	}
	for _, e := range joined.Unwrap() {
		all = append(all, flat(e)...)
	}
	return all
}

// edited is the program with one edit, at the a-th place, by what is at the b-th.
func (c *compiled) edited(op byte, a, b int) string {
	var exprs []ast.Expr
	var stmts []ast.Stmt
	ast.Inspect(c.file, func(n ast.Node) bool {
		switch n := n.(type) {
		case ast.Expr:
			if tv, ok := c.info.Types[n]; ok && tv.IsValue() {
				exprs = append(exprs, n)
			}
		case *ast.BlockStmt:
			stmts = append(stmts, n.List...)
		}
		return true
	})
	if len(exprs) == 0 || len(stmts) == 0 {
		return string(c.src)
	}
	at, other := stmts[a*len(stmts)/256], stmts[b*len(stmts)/256]
	switch text := c.text(at); op % 8 {
	case 0:
		return c.replaced(at, "")
	case 1:
		return c.replaced(at, text+"\n"+text)
	case 2:
		return c.replaced(other, text+"\n"+c.text(other))
	case 3:
		return c.replaced(at, []string{"for range 3 {\n", "if true {\n", "func() {\n", "defer func() {\n", "{\n"}[b%5]+text+[]string{"\n}", "\n}", "\n}()", "\n}()", "\n}"}[b%5])
	case 4:
		return c.replaced(at, c.text(other))
	}
	from := exprs[a*len(exprs)/256]
	var fit []ast.Expr
	for _, e := range exprs {
		if types.AssignableTo(c.info.TypeOf(e), c.info.TypeOf(from)) {
			fit = append(fit, e)
		}
	}
	return c.replaced(from, c.text(fit[b*len(fit)/256]))
}

func (c *compiled) text(n ast.Node) string {
	return string(c.src[c.fset.Position(n.Pos()).Offset:c.fset.Position(n.End()).Offset])
}

func (c *compiled) replaced(n ast.Node, text string) string {
	return string(c.src[:c.fset.Position(n.Pos()).Offset]) + text + string(c.src[c.fset.Position(n.End()).Offset:])
}

// FuzzHeard: whatever the go command says, it is read or refused.
func FuzzHeard(f *testing.F) {
	f.Add(`{"p":{"R06":[{"posn":"a.go:3:4","message":"m [R06 x]","related":[{"posn":"a.go:1:1","message":"fix: f"}]}],"V16":{"error":"e"}}}`, "# p [p.test]\n# [p]\nvet: a.go:3:4: no\n\tmore")
	f.Add(`{"ImportPath":"p","DepsErrors":[{"Pos":"a.go:1:2","Err":"e"}]}`, "-json -R06=false x.cfg")
	f.Fuzz(func(t *testing.T, stdout, stderr string) {
		if a, err := parse(strings.Fields(stderr), &strings.Builder{}); err == nil {
			a.analyzers()
		}
		h := &heard{asked: &list{sound: []*listed{{ImportPath: "p"}}}, wrong: map[string]string{}, read: map[string]bool{}, found: map[string][]vet.Found{}}
		_ = h.findings([]byte(stdout)) // is told
		h.complaints([]byte(stderr))
		h.answer(&Answer{})
		_, _ = decoded([]byte(stdout)) // the same
	})
}
