package source

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"

	"github.com/warpline-ml/warpline/internal/torchcall"
)

// names is PyTorch's list, which is to be answered whole.
type names struct {
	known  map[string]bool
	inside map[string][][2]int // rows in which a name only stands
}

// readNames reads the list, whose first line says the version.
func readNames(t *torchcall.Table, file string) (*names, error) {
	text, err := os.ReadFile(file)
	if err != nil {
		return nil, err
	}
	list := strings.Split(strings.TrimSpace(string(text)), "\n")
	if _, err := fmt.Sscanf(list[0], "# Names of PyTorch %s by", &t.Version); err != nil {
		return nil, fmt.Errorf("names.txt begins with %q: %w", list[0], err)
	}
	n := &names{known: map[string]bool{}, inside: map[string][][2]int{}}
	for _, name := range list[1:] {
		n.known[name] = true
	}
	return n, nil
}

var dotted = regexp.MustCompile(`\)?\w*(?:\.[A-Za-z_]\w*)+`)

// calls are the names in a spelling: first those that it is of, then those that only stand in it.
func calls(spelling string) (first, rest []string) {
	for _, part := range strings.Split(spelling, "; ") {
		for i, at := range dotted.FindAllStringIndex(part, -1) {
			name := part[at[0]:at[1]]
			if i > 0 && !strings.HasPrefix(part[at[1]:], "(") {
				continue
			}
			if strings.HasPrefix(name, ")") {
				name = "x" + name[1:] // of a value
			}
			full := torchcall.Full(name)
			if i == 0 {
				first = append(first, full)
			} else {
				rest = append(rest, full)
			}
		}
	}
	return first, rest
}

// fromRows finds the names that rows answer.
func (n *names) fromRows(t *torchcall.Table) error {
	for i, r := range t.Rows {
		for k, py := range r.PyTorch {
			first, rest := calls(py)
			for _, name := range first {
				if !n.known[name] {
					if !n.missing(py, name) {
						if first, _, _ := strings.Cut(name, "."); slices.Contains(torchcall.Others, first) {
							n.add(t.Names, name, [2]int{i, k})
						}
						continue
					}
					return fmt.Errorf("`%s`: PyTorch has no %s; names.txt has what it has", py, name)
				}
				n.add(t.Names, name, [2]int{i, k})
			}
			for _, name := range rest {
				if n.known[name] {
					n.inside[name] = append(n.inside[name], [2]int{i, k})
				}
			}
		}
	}
	return nil
}

// variable is the beginning of a spelling of a tensor's method: others' first name may be a package's.
var variable = regexp.MustCompile(`^\(|^[a-z]\.`)

// missing says whether a name should be known: all but those of other libraries, and of variables that are no tensors.
func (n *names) missing(spelling, name string) bool {
	if strings.HasPrefix(name, "torch.Tensor.") {
		return variable.MatchString(spelling) || strings.HasPrefix(spelling, "tensor.")
	}
	if field, ok := strings.CutPrefix(name, "torch.nn.Module."); ok {
		return strings.Contains(spelling, field+"(") // any other is a field of somebody's module
	}
	return strings.HasPrefix(name, "torch.")
}

func (n *names) add(to map[string]torchcall.Name, name string, at [2]int) {
	v := to[name]
	if !slices.Contains(v.Rows, at) {
		v.Rows = append(v.Rows, at)
	}
	to[name] = v
}

var meant = regexp.MustCompile(`^(.+?)(: | = )(.+)$`)

// fromReasons reads reasons.txt: "NAME NAME: why" and "NAME NAME = NAME", names with * for any letters.
func (n *names) fromReasons(t *torchcall.Table, file string) error {
	list, err := lines(file)
	if err != nil {
		return err
	}
	var wrong []error
	for _, line := range list {
		m := meant.FindStringSubmatch(line)
		if m == nil {
			return fmt.Errorf("reasons.txt: %q is neither NAMES: REASON nor NAMES = NAME", line)
		}
		v := torchcall.Name{}
		if m[2] == ": " {
			t.Reasons = append(t.Reasons, m[3])
			v.Why = len(t.Reasons)
		} else if v.As = torchcall.Full(m[3]); !n.known[v.As] && len(t.Names[v.As].Rows) == 0 {
			wrong = append(wrong, fmt.Errorf("reasons.txt: %s is as %s, which is no name", m[1], m[3]))
		}
		for _, pattern := range strings.Fields(m[1]) {
			wrong = append(wrong, n.set(t, pattern, v))
		}
	}
	return errors.Join(wrong...)
}

// set gives an answer to the names of a pattern that have none.
func (n *names) set(t *torchcall.Table, pattern string, v torchcall.Name) error {
	full, used := torchcall.Full(pattern), false
	for name := range n.known {
		if ok, err := path.Match(full, name); err != nil || !ok {
			continue
		}
		_, answered := t.Names[name]
		if answered && name == full {
			return fmt.Errorf("reasons.txt: %s has a row, or stands there twice: take it out", pattern)
		}
		if !answered {
			t.Names[name] = v
		}
		used = true
	}
	if !used {
		return fmt.Errorf("reasons.txt: names.txt has nothing for %s", pattern)
	}
	return nil
}

// families are packages in which the same name is the same function.
var families = []string{"torch.Tensor.", "torch.", "torch.nn.functional.", "torch.special.", "torch.linalg."}

// rest answers what has the name of a thing that is answered, in another package or without _, and gives what is not answered.
func (n *names) rest(t *torchcall.Table) error {
	var open []string
	for _, name := range slices.Sorted(maps.Keys(n.known)) {
		if _, ok := t.Names[name]; ok {
			continue
		}
		v, ok := n.like(t, name)
		if (!ok || v.InPlace) && len(n.inside[name]) > 0 {
			v, ok = torchcall.Name{Rows: n.inside[name]}, true
		}
		if ok {
			t.Names[name] = v
			continue
		}
		open = append(open, name)
	}
	for name := range t.Names {
		if last := t.Names[t.Resolve(name)]; last.As != "" || len(last.Rows)+last.Why == 0 {
			return fmt.Errorf("reasons.txt: what %s is as has no answer, or is as itself", name)
		}
	}
	if len(open) > 0 {
		return fmt.Errorf("%d names of PyTorch have no row in examples/pytorch and no line in reasons.txt:\n%s", len(open), strings.Join(open, "\n"))
	}
	return nil
}

// like is the answer to a name by that of another.
func (n *names) like(t *torchcall.Table, name string) (torchcall.Name, bool) {
	dot := strings.LastIndexByte(name, '.') + 1
	if !slices.Contains(families, name[:dot]) {
		return torchcall.Name{}, false
	}
	for _, as := range []string{name[dot:], strings.TrimSuffix(name[dot:], "_")} {
		for _, f := range families {
			v, ok := t.Names[f+as]
			if !ok || f+as == name || v.InPlace && as == name[dot:] && !strings.HasSuffix(as, "_") {
				continue
			}
			return torchcall.Name{As: f + as, InPlace: as != name[dot:] && v.Why == 0}, true
		}
	}
	return torchcall.Name{}, false
}

// readDifferences reads differences.txt: "NAMES | what | PyTorch | here".
func readDifferences(t *torchcall.Table, file string) error {
	list, err := lines(file)
	if err != nil {
		return err
	}
	for _, line := range list {
		cells := strings.Split(line, "|")
		if len(cells) != 4 {
			return fmt.Errorf("differences.txt: %q is not NAMES | what | PyTorch | here", line)
		}
		d := torchcall.Difference{What: strings.TrimSpace(cells[1]), PyTorch: strings.TrimSpace(cells[2]), Here: strings.TrimSpace(cells[3])}
		for _, name := range strings.Fields(cells[0]) {
			full := torchcall.Full(name)
			if _, ok := t.Names[full]; !ok {
				return fmt.Errorf("differences.txt: %s is no name", name)
			}
			d.Names = append(d.Names, full)
		}
		if len(d.Names) == 0 || slices.ContainsFunc(t.Differences, func(o torchcall.Difference) bool { return o.What == d.What }) {
			return fmt.Errorf("differences.txt: %q is of no call, or there twice", d.What)
		}
		t.Differences = append(t.Differences, d)
	}
	return nil
}
