package torchcall

import (
	"cmp"
	"maps"
	"regexp"
	"slices"
	"strings"
	"unicode"

	"github.com/warpline-ml/warpline/internal/advice"
	"github.com/warpline-ml/warpline/internal/sorting"
)

// Answer is what is known of a call as it was written.
type Answer struct {
	Call    string   `json:"call"`
	Entries []Entry  `json:"entries,omitempty"`
	Unshown []string `json:"unshown,omitempty"` // arguments of the call that no row of the entries has
	Near    []string `json:"near,omitempty"`    // names, where there is no entry
}

// Short are the names that programs give to packages, and the classes of the variables that they use.
var Short = map[string]string{
	"F": "torch.nn.functional", "nn": "torch.nn", "optim": "torch.optim", "lr_scheduler": "torch.optim.lr_scheduler",
	"init": "torch.nn.init", "data": "torch.utils.data", "cuda": "torch.cuda", "amp": "torch.amp",
	"model": "torch.nn.Module", "m": "torch.nn.Module", "module": "torch.nn.Module", "Module": "torch.nn.Module",
	"opt": "torch.optim.Optimizer", "optimizer": "torch.optim.Optimizer", "Optimizer": "torch.optim.Optimizer",
	"sched": "torch.optim.lr_scheduler.LRScheduler", "scheduler": "torch.optim.lr_scheduler.LRScheduler",
	"scaler": "torch.amp.GradScaler", "GradScaler": "torch.amp.GradScaler", "tensor": "torch.Tensor", "Tensor": "torch.Tensor",
	"loader": "torch.utils.data.DataLoader", "g": "torch.cuda.CUDAGraph", "stream": "torch.cuda.Stream", "event": "torch.cuda.Event",
}

// Others are libraries that programs use beside PyTorch, of which rows have calls.
var Others = []string{"lightning", "pandas", "peft", "sklearn", "torchinfo", "torchmetrics", "torchtune", "torchvision", "transformers"}

// Full is a dotted name as PyTorch has it: with its package for what Short knows, and of a tensor for another variable.
func Full(name string) string {
	first, rest, dotted := strings.Cut(name, ".")
	long, known := Short[first]
	switch {
	case !dotted:
		return name
	case known:
		return long + "." + rest
	case first == "torch" || slices.Contains(Others, first):
		return name
	case strings.Contains(rest, ".") || len(first) > 6:
		return name
	default:
		return "torch.Tensor." + rest
	}
}

// Find answers a call as people write it: a name with or without its package, in any case, with or without arguments.
func Find(call string) Answer { return load().Find(call) }

// Find answers a call as people write it.
func (t *Table) Find(call string) Answer {
	a := Answer{Call: call}
	path, arguments, given := parts(call)
	names := t.named(path)
	for _, name := range names {
		a.Entries = append(a.Entries, t.Entry(name))
	}
	if len(names) == 0 {
		a.Entries = t.spelt(call)
	}
	if len(a.Entries) == 0 {
		a.Near = t.near(path)
	}
	a.Unshown = t.choose(a.Entries, arguments)
	if given != "" {
		first(a.Entries, given)
	}
	return a
}

var argument = regexp.MustCompile(`(\w+)\s*=[^=]`)

// parts are the dotted name of a call, the names of its arguments, and what stands behind the name.
func parts(call string) (path string, arguments []string, rest string) {
	path, rest, _ = strings.Cut(strings.TrimSpace(call), "(")
	path = strings.TrimPrefix(strings.TrimSpace(strings.TrimPrefix(path, "@")), "import ")
	for _, m := range argument.FindAllStringSubmatch(rest, -1) {
		arguments = append(arguments, m[1])
	}
	return strings.Trim(path, ". "), arguments, rest
}

// named are the names that a path means: exactly, else by its last part in any case and without underlines, else by how
// that begins, if that is so of few.
func (t *Table) named(path string) []string {
	if _, ok := t.Names[Full(path)]; ok && strings.Contains(path, ".") {
		return []string{Full(path)}
	}
	last := key(base(path))
	if last == "" {
		return nil
	}
	equal := t.where(func(name string) bool { return key(base(name)) == last })
	for _, holds := range []func(name string) bool{
		func(name string) bool { return strings.HasSuffix(key(name), key(Full(path))) },
		func(name string) bool { return base(name) == base(path) },
	} {
		if some := keep(equal, holds); len(some) > 0 {
			equal = some
		}
	}
	if len(equal) > 0 {
		return t.distinct(equal)
	}
	if len(last) < 4 || !t.has(Full(path)) {
		return nil
	}
	begun := t.distinct(t.where(func(name string) bool { return strings.HasPrefix(key(base(name)), last) }))
	if len(begun) <= 4 {
		return begun
	}
	return nil
}

// has reports whether the package or class before a dotted name's last part is in the table; a bare name may be of any.
func (t *Table) has(full string) bool {
	at := strings.LastIndexByte(full, '.') + 1
	for name := range maps.Keys(t.Names) {
		if strings.HasPrefix(name, full[:at]) {
			return true
		}
	}
	return false
}

func keep(names []string, holds func(name string) bool) []string {
	return slices.DeleteFunc(slices.Clone(names), func(name string) bool { return !holds(name) })
}

// where are the names that something holds of: what is used most first.
func (t *Table) where(holds func(name string) bool) []string {
	var list []string
	for name := range maps.Keys(t.Names) {
		if holds(name) {
			list = append(list, name)
		}
	}
	sorting.By(list, func(a, b string) int { return cmp.Or(t.rank(a)-t.rank(b), cmp.Compare(a, b)) })
	return list
}

// rank orders names: what has rows of its own, what is as another, what is not here.
func (t *Table) rank(name string) int {
	switch n := t.Names[name]; {
	case len(n.Rows) > 0:
		return 0
	case n.As != "" && !n.InPlace:
		return 1
	case n.As != "":
		return 2
	default:
		return 3
	}
}

// distinct leaves out names that have the answer of one before.
func (t *Table) distinct(names []string) []string {
	seen := map[string]bool{}
	var list []string
	for _, name := range names {
		answer := t.Resolve(name)
		if !seen[answer] {
			list = append(list, name)
		}
		seen[answer] = true
	}
	return list
}

// spelt answers what is no name, as "x @ w", by the spelling of a row.
func (t *Table) spelt(call string) []Entry {
	want := squeezed(call)
	var list []Entry
	for i, r := range t.Rows {
		for k, py := range r.PyTorch {
			if squeezed(py) != want {
				continue
			}
			state := Here
			if t.Sections[r.Section] == NearestSection {
				state = Nearest
			}
			list = append(list, Entry{Name: py, State: state, Ways: []Way{t.way([2]int{i, k})}})
		}
	}
	return list
}

// squeezed is a text without spaces, its variables all alike.
func squeezed(s string) string {
	s = strings.Map(func(r rune) rune {
		if unicode.IsSpace(r) {
			return -1
		}
		return unicode.ToLower(r)
	}, s)
	return variable.ReplaceAllString(s, "·")
}

var variable = regexp.MustCompile(`\b[a-z]\b`)

// choose puts the ways that have a call's arguments first, and gives the arguments that none has.
func (t *Table) choose(entries []Entry, arguments []string) (unshown []string) {
	for _, name := range arguments {
		shown := false
		has := func(w Way) bool { return strings.Contains(w.PyTorch, name+"=") }
		for _, e := range entries {
			shown = shown || slices.ContainsFunc(e.Ways, has)
			sorting.By(e.Ways, func(a, b Way) int { return order(has(b)) - order(has(a)) })
		}
		if !shown && len(entries) > 0 {
			unshown = append(unshown, name)
		}
	}
	return unshown
}

// first puts the ways first whose arguments are those given, to the letter.
func first(entries []Entry, given string) {
	same := func(w Way) bool { return strings.HasSuffix(squeezed(w.PyTorch), "("+squeezed(given)) }
	for _, e := range entries {
		sorting.By(e.Ways, func(a, b Way) int { return order(same(b)) - order(same(a)) })
	}
}

func order(b bool) int {
	if b {
		return 1
	}
	return 0
}

// near are the names that are most alike: what holds the text, then what the text holds or is few letters away.
func (t *Table) near(path string) []string {
	const most, longest = 8, 60
	last := key(base(path))
	if last == "" || len(last) > longest {
		return nil
	}
	far := func(name string) int {
		switch k := key(base(name)); {
		case len(last) > 2 && strings.Contains(k, last):
			return 0
		case len(k) > 8 && strings.Contains(last, k):
			return 1
		default:
			return advice.Distance(k, last)
		}
	}
	list := t.where(func(name string) bool { return far(name) <= max(2, len(last)/3) })
	sorting.By(list, func(a, b string) int { return cmp.Or(far(a)-far(b), len(a)-len(b)) })
	list = t.distinct(list)
	return list[:min(len(list), most)]
}

// base is the last part of a dotted name.
func base(name string) string { return name[strings.LastIndexByte(name, '.')+1:] }

// key is what names are compared by: letters and digits, in lower case.
func key(s string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsLetter(r) || unicode.IsDigit(r) {
			return unicode.ToLower(r)
		}
		return -1
	}, s)
}
