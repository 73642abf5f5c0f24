package vetgo

import (
	"go/ast"
	"go/token"
	"strings"

	"golang.org/x/tools/go/analysis"

	"github.com/warpline-ml/warpline/internal/finding"
	"github.com/warpline-ml/warpline/internal/vet"
)

// checks are the rules that programs in Go can break.
var checks = []struct {
	id  string
	run func(*checker)
}{
	{"R01", (*checker).movedInPart},
	{"R06", (*checker).kept},
	{"R09", (*checker).graphInEvaluation},
	{"R13", (*checker).waits},
	{"R48", (*checker).timed},
	{"V01", (*checker).discarded},
	{"V02", (*checker).state},
	{"V03", (*checker).evaluationMode},
	{"V06", (*checker).scaler},
	{"V14", (*checker).madeThenMoved},
	{"V16", (*checker).dropped},
	{"V19", (*checker).missed},
	{"V20", (*checker).probabilities},
	{"V27", (*checker).afterTurn},
	{"V28", (*checker).afterBackward},
	{"V29", (*checker).ignored},
	{"V30", (*checker).copied},
	{"V31", (*checker).twice},
}

// Analyzers are the rules as go vet runs them, each named by its id. Their order is that of the ids.
func Analyzers() (all []*analysis.Analyzer) {
	for _, c := range checks {
		r, ok := vet.Find(c.id)
		if !ok {
			panic("vetgo: no rule " + c.id)
		}
		all = append(all, &analysis.Analyzer{
			Name: r.ID, Doc: r.Name + ": " + r.Why, Requires: []*analysis.Analyzer{reader},
			Run: func(pass *analysis.Pass) (any, error) {
				p := pass.ResultOf[reader].(*program)
				p.Lock()
				defer p.Unlock()
				c.run(&checker{program: p, rule: r, report: pass.Report, seen: map[int]bool{}})
				return nil, nil
			},
		})
	}
	return all
}

// checker is a rule at a package.
type checker struct {
	*program
	rule   vet.Rule
	report func(analysis.Diagnostic)
	seen   map[int]bool // lines of the package's files, by position
}

// say is what a rule says of a place.
type say struct {
	at     ast.Node
	title  string
	fix    string
	gain   string
	sure   finding.Confidence
	unless string
	also   []analysis.RelatedInformation
	edits  []analysis.TextEdit // that do the fix, where it is mechanical
}

// The parts of a finding that a diagnostic has no place for go as related information, which go vet shows behind it; the last
// three in one line.
const (
	partFix    = "fix: "
	partGain   = "gain: "
	partUnless = "; unless: "
	partSure   = "; confidence: "
	partAlso   = "also: "
)

func (c *checker) say(s say) {
	at := c.pass.Fset.Position(s.at.Pos())
	key := c.pass.Fset.File(s.at.Pos()).Base() + at.Line
	if c.seen[key] || c.silent[c.pass.Fset.File(s.at.Pos()).Name()].Has(at.Line, c.rule) {
		return
	}
	c.seen[key] = true
	d := analysis.Diagnostic{Pos: s.at.Pos(), End: s.at.End(), Category: c.rule.Name, Message: s.title + " [" + c.rule.ID + " " + c.rule.Name + "]"}
	for _, a := range s.also {
		a.Message = partAlso + a.Message
		d.Related = append(d.Related, a)
	}
	for _, part := range []string{partFix + s.fix, partGain + s.gain + partUnless + s.unless + partSure + string(s.sure)} {
		d.Related = append(d.Related, analysis.RelatedInformation{Pos: s.at.Pos(), Message: part})
	}
	if len(s.edits) > 0 {
		d.SuggestedFixes = []analysis.SuggestedFix{{Message: s.fix, TextEdits: s.edits}}
	}
	c.report(d)
}

// related is another place that a finding is about.
func related(at ast.Node, text string) []analysis.RelatedInformation {
	return []analysis.RelatedInformation{{Pos: at.Pos(), End: at.End(), Message: text}}
}

// insert is an edit that puts text at a place.
func insert(at token.Pos, text string) []analysis.TextEdit {
	return []analysis.TextEdit{{Pos: at, End: at, NewText: []byte(text)}}
}

// replace is an edit that puts text in place of a node.
func replace(n ast.Node, text string) []analysis.TextEdit {
	return []analysis.TextEdit{{Pos: n.Pos(), End: n.End(), NewText: []byte(text)}}
}

// silences reads the comments //warpline:ok, by file. One on a line of its own is for the next line.
func (p *program) silences() map[string]vet.Silences {
	all := map[string]vet.Silences{}
	for _, f := range p.pass.Files {
		lines := vet.Silences{}
		all[p.pass.Fset.File(f.FileStart).Name()] = lines
		for _, group := range f.Comments {
			for _, m := range group.List {
				names, ok := silenced(m)
				if !ok {
					continue
				}
				line := p.line(m.Pos())
				if p.alone(m) {
					line++
				}
				lines.Add(line, names)
			}
		}
	}
	return all
}

// silenced are the rules that a comment names, up to another // in it.
func silenced(m *ast.Comment) (names string, ok bool) {
	text, _, _ := strings.Cut(strings.TrimPrefix(m.Text, "//"), "//")
	rest, ok := strings.CutPrefix(strings.TrimSpace(text), "warpline:")
	if !ok {
		return "", false
	}
	return strings.CutPrefix(strings.TrimSpace(rest), "ok")
}

// alone tells whether nothing stands before a comment on its line.
func (p *program) alone(m *ast.Comment) bool {
	f := p.pass.Fset.File(m.Pos())
	return strings.TrimSpace(p.between(f.LineStart(f.Line(m.Pos())), m.Pos())) == ""
}
