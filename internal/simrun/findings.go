package simrun

import (
	"fmt"
	"strings"

	"github.com/warpline-ml/warpline/internal/gpusim"
	"github.com/warpline-ml/warpline/internal/ptx"
)

// Module is the text of a module that some program loaded, of which findings are told.
type Module struct{ *file }

// NewModule is the module of a text. Of one that cannot be parsed no lines are told.
func NewModule(text []byte) *Module {
	m, err := ptx.Parse(string(text))
	if err != nil {
		m = &ptx.Module{}
	}
	return &Module{&file{module: m, lines: strings.Split(string(text), "\n"), sources: map[string][]string{}}}
}

// Findings are those of a launch, with the lines concerned.
func (m *Module) Findings(rep *gpusim.Report, fault *gpusim.Fault) []Finding {
	return m.findings(rep, fault)
}

// Told is a finding about a program and no kernel: the check, who did it, and what.
func Told(check, by, what string) Finding {
	return NewModule(nil).finding(gpusim.Finding{Kernel: by, Msg: what}, check)
}

func (m *file) findings(rep *gpusim.Report, fault *gpusim.Fault) (list []Finding) {
	for _, f := range rep.Findings {
		list = append(list, m.finding(f, f.Check.String()))
	}
	if fault != nil && fault.Finding.Check == 0 {
		list = append(list, m.finding(fault.Finding, fault.Code.String()))
	}
	return list
}

func (m *file) finding(f gpusim.Finding, check string) Finding {
	callers := m.inlined(f.Kernel, f.Line)
	texts, into := []string{}, ""
	for _, c := range callers {
		texts = append(texts, m.sourceLine(c))
	}
	if len(callers) > 0 {
		into = callers[0]
	}
	return Finding{Finding: true, Check: check, Kernel: f.Kernel, Block: f.Block, Thread: f.Thread, Line: f.Line, PTX: m.line(f.Line),
		Source: f.Source, SourceText: m.sourceLine(f.Source), Inlined: into, Callers: callers, callerTexts: texts,
		Message: f.Message(), kind: kindOf(f, check, strings.Join(callers, " ")), Space: f.Space, Address: fmt.Sprintf("%#x", f.Addr), Size: f.Size, Allocation: f.Alloc, Count: max(f.Count, 1)}
}

// group is findings of a kind.
type group struct {
	*Finding     // the first
	count    int // how often all of them happened
	more     int // findings
	paired   bool
}

// groups puts findings together that differ in their lines of PTX only.
func groups(found []Finding) (list []*group) {
	by := map[kind]*group{}
	for i := range found {
		f := &found[i]
		g := by[f.kind]
		if g == nil {
			g = &group{Finding: f, paired: f.kind.other != "0"}
			by[f.kind] = g
			list = append(list, g)
		} else {
			g.more++
		}
		g.count += f.Count
	}
	return list
}

// Collection is findings of many launches. Those that differ in their places on the card only are one.
type Collection struct {
	Findings []Finding
	More     int // that were left out

	at map[alike]int
}

// alike is what findings have in common that are one.
type alike struct {
	kind
	line int
	ptx  string
}

// Add adds a finding, unless there are so many.
func (c *Collection) Add(f Finding, most int) {
	if c.at == nil {
		c.at = map[alike]int{}
	}
	key := alike{f.kind, f.Line, f.PTX}
	i, known := c.at[key]
	switch {
	case known:
		c.Findings[i].Count += f.Count
	case len(c.Findings) >= most:
		c.More++
	default:
		c.at[key] = len(c.Findings)
		c.Findings = append(c.Findings, f)
	}
}

// Groups is how many different things were found.
func (c *Collection) Groups() int { return len(groups(c.Findings)) }

// Text is the findings for people.
func (c *Collection) Text() string {
	var b strings.Builder
	for _, g := range groups(c.Findings) {
		b.WriteString("\n" + g.text())
	}
	if c.More > 0 {
		fmt.Fprintf(&b, "\nand %s like none of these, which are not kept\n", plural(c.More, "finding"))
	}
	return b.String()
}
