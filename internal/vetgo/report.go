package vetgo

import (
	"go/ast"
	"go/token"
	"slices"
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
	if c.seen[key] || c.silent.has(at.Filename, at.Line, c.rule) {
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

// silences are the rules that lines are not told of, by file and line; an empty list is for all rules.
type silences map[string]map[int][]string

// silences reads the comments //warpline:ok. One on a line of its own is for the next line.
func (p *program) silences() silences {
	all := silences{}
	for _, f := range p.pass.Files {
		for _, group := range f.Comments {
			for _, m := range group.List {
				text := strings.TrimSpace(strings.TrimPrefix(m.Text, "//"))
				rest, ok := strings.CutPrefix(text, "warpline:")
				if !ok {
					continue
				}
				names, ok := strings.CutPrefix(strings.TrimSpace(rest), "ok")
				if !ok {
					continue
				}
				at := p.pass.Fset.Position(m.Pos())
				if p.alone(m) {
					at.Line++
				}
				names, _, _ = strings.Cut(names, "//")
				all.add(at, strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' }))
			}
		}
	}
	return all
}

func (s silences) add(at token.Position, names []string) {
	if s[at.Filename] == nil {
		s[at.Filename] = map[int][]string{}
	}
	s[at.Filename][at.Line] = append(s[at.Filename][at.Line], names...)
}

func (s silences) has(file string, line int, r vet.Rule) bool {
	names, ok := s[file][line]
	return ok && (len(names) == 0 || slices.ContainsFunc(names, func(n string) bool { return strings.EqualFold(n, r.ID) || strings.EqualFold(n, r.Name) }))
}

// alone tells whether nothing stands before a comment on its line.
func (p *program) alone(m *ast.Comment) bool {
	f := p.pass.Fset.File(m.Pos())
	return strings.TrimSpace(p.between(f.LineStart(f.Line(m.Pos())), m.Pos())) == ""
}
