// Package torchcall answers how a call of PyTorch is written here: by our spelling with an example that is compiled, by the
// nearest way, or by the reason why there is none. The table is made by its generator from the programs of examples/pytorch
// and the files beside this one; docs/pytorch.md is made from the same.
package torchcall

import (
	"encoding/json"
	"slices"
	"strings"
	"sync"
)

//go:generate go run ./gen

// State says what there is of a call.
type State string

// The states of a call.
const (
	Here    State = "here"
	Nearest State = "nearest way"
	Not     State = "not here"
)

// Table is what the generator makes.
type Table struct {
	Version     string          `json:"version"`  // of PyTorch
	Sections    []string        `json:"sections"` // of the page, in its order
	Rows        []Row           `json:"rows"`
	Lines       []string        `json:"lines"` // of Go, that rows refer to by their number
	Differences []Difference    `json:"differences"`
	Reasons     []string        `json:"reasons"`
	Names       map[string]Name `json:"names"` // by full name, as torch.nn.functional.relu
}

// Row is a row of the page.
type Row struct {
	Section int      `json:"s"`
	PyTorch []string `json:"py"`
	Cell    string   `json:"cell,omitempty"` // PyTorch's cell, where it is not just the spellings
	Go      []string `json:"go"`
	Note    string   `json:"note,omitempty"`
	Makes   [][]int  `json:"makes"`           // of each of Go, the lines that make what it names
	Whole   string   `json:"whole,omitempty"` // the statement, where Go has its first line only
}

// Name says where the answer to a name is: in rows, in those of another name, or in a reason.
type Name struct {
	Rows    [][2]int `json:"rows,omitempty"` // row, and which of its PyTorch
	As      string   `json:"as,omitempty"`
	InPlace bool     `json:"in_place,omitempty"` // As is the form that makes a new value
	Why     int      `json:"why,omitempty"`      // a reason's number from 1
}

// Difference is one of behaviour.
type Difference struct {
	Names   []string `json:"names,omitempty"` // of the calls that it is of
	What    string   `json:"what"`
	PyTorch string   `json:"pytorch"`
	Here    string   `json:"here"`
}

// NearestSection is the section whose rows are not the call itself.
const NearestSection = "Not here: write instead"

// load gives the table.
var load = sync.OnceValue(func() *Table {
	t := new(Table)
	if err := json.Unmarshal([]byte(tableText()), t); err != nil {
		panic("torchcall: table.json: " + err.Error())
	}
	return t
})

// Version is PyTorch's that the names are of.
func Version() string { return load().Version }

// Entry is the answer to one call.
type Entry struct {
	Name        string       `json:"name"` // in full, or a spelling as "x + y"
	State       State        `json:"state"`
	SameAs      string       `json:"same_as,omitempty"` // the name whose answer this is
	Ways        []Way        `json:"ways,omitempty"`
	Reason      string       `json:"reason,omitempty"`
	Differences []Difference `json:"differences,omitempty"`
}

// Way is one row for a call.
type Way struct {
	PyTorch string   `json:"pytorch"`
	Go      []string `json:"go"`
	Example string   `json:"example"` // lines that can be compiled: what makes the values, and Go
	Note    string   `json:"note,omitempty"`
}

// Resolve gives the name that answers a name, itself without another.
func (t *Table) Resolve(name string) string {
	for range 4 { // the generator refuses longer ways
		as := t.Names[name].As
		if as == "" {
			break
		}
		name = as
	}
	return name
}

// State is what there is of a name of the table.
func (t *Table) State(name string) State {
	n := t.Names[t.Resolve(name)]
	if len(n.Rows) == 0 {
		return Not
	}
	for _, at := range n.Rows {
		if t.Sections[t.Rows[at[0]].Section] == NearestSection {
			continue
		}
		if t.rewritten(name) {
			return Nearest
		}
		return Here
	}
	return Nearest
}

// rewritten says whether a name is answered by the form that makes a new value.
func (t *Table) rewritten(name string) bool {
	for n := t.Names[name]; n.As != ""; n = t.Names[n.As] {
		if n.InPlace {
			return true
		}
	}
	return false
}

// Entry is the answer to a name of the table.
func (t *Table) Entry(name string) Entry {
	e := Entry{Name: name, State: t.State(name)}
	answer := t.Resolve(name)
	if answer != name {
		e.SameAs = answer
	}
	n := t.Names[answer]
	if n.Why > 0 {
		e.Reason = t.Reasons[n.Why-1]
	}
	for _, at := range n.Rows {
		e.Ways = append(e.Ways, t.way(at))
	}
	if t.rewritten(name) && e.State == Nearest {
		e.Reason = "it has no form of its own that writes in place: assign the new value, or write it over the old one by x.CopyInPlace(…)"
	}
	for _, d := range t.Differences {
		if slices.Contains(d.Names, answer) || slices.Contains(d.Names, name) {
			e.Differences = append(e.Differences, d)
		}
	}
	return e
}

// way is a row, seen from one of its spellings.
func (t *Table) way(at [2]int) Way {
	r := t.Rows[at[0]]
	shown := r.Of(at[1])
	w := Way{PyTorch: r.PyTorch[at[1]], Note: r.Note}
	var lines []int
	for _, i := range shown {
		w.Go = append(w.Go, r.Go[i])
		lines = append(lines, r.Makes[i]...)
	}
	var b strings.Builder
	for k, i := range lines {
		if !slices.Contains(lines[:k], i) && !slices.Contains(w.Go, t.Lines[i]) {
			b.WriteString(t.Lines[i] + "\n")
		}
	}
	if r.Whole != "" {
		b.WriteString(r.Whole)
	} else {
		b.WriteString(strings.Join(w.Go, "\n"))
	}
	w.Example = b.String()
	return w
}

// Of gives the numbers of what belongs to one of PyTorch's spellings: the one in its place, or all.
func (r *Row) Of(i int) []int {
	if len(r.Go) == len(r.PyTorch) {
		return []int{i}
	}
	all := make([]int, len(r.Go))
	for k := range all {
		all[k] = k
	}
	return all
}

// Group counts the names of one package or class of PyTorch.
type Group struct {
	Name    string `json:"name"`
	Names   int    `json:"names"`
	Here    int    `json:"here"`
	Nearest int    `json:"nearest_way"`
	Not     int    `json:"not_here"`
}

// groups are the packages and classes, in the order in which they are shown; a name belongs to the longest that it begins with.
var groups = []string{
	"torch", "torch.Tensor", "torch.nn", "torch.nn.Module", "torch.nn.functional", "torch.nn.init", "torch.nn.utils",
	"torch.optim", "torch.optim.lr_scheduler", "torch.utils.data", "torch.cuda", "torch.amp", "torch.linalg", "torch.special", "torch.fft",
}

// Groups counts what the table has of each package.
func Groups() []Group { return load().Groups() }

// Groups counts what the table has of each package.
func (t *Table) Groups() []Group {
	list := make([]Group, len(groups))
	for i, name := range groups {
		list[i].Name = name
	}
	for name := range t.Names {
		i := groupOf(name)
		if i < 0 {
			continue
		}
		g := &list[i]
		g.Names++
		switch t.State(name) {
		case Here:
			g.Here++
		case Nearest:
			g.Nearest++
		default:
			g.Not++
		}
	}
	return list
}

// groupOf is the number of a name's group, -1 for names of other packages.
func groupOf(name string) int {
	best := -1
	for i, g := range groups {
		if rest, ok := strings.CutPrefix(name, g+"."); ok && (best < 0 || len(g) > len(groups[best])) && (g != "torch" || !strings.Contains(rest, ".")) {
			best = i
		}
	}
	return best
}
