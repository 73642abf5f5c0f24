package tensor

import (
	"fmt"
	"math"
	"slices"
)

// same raises an error unless f, recorded after before for batches of the same kind, has the same work.
func (f *form) same(before *form) {
	if why := f.like(before); why != "" {
		raise("Run", "what changes from run to run is a tensor of the batch or lies in a buffer (tensor.NewBuffer, tensor.SetCell); another field of the batch makes another kind",
			"the step does not ask for the same in each run: %s", why)
	}
}

// like tells where f has other work than before has; "": nowhere.
func (f *form) like(before *form) string {
	for i := range min(len(f.launches), len(before.launches)) {
		if why := f.differs(before, i); why != "" {
			return why
		}
	}
	switch n, m := len(f.launches), len(before.launches); {
	case n > m:
		return fmt.Sprintf("%s is one of %d operations, %d before", f.launches[m].title(), n, m)
	case n < m:
		return fmt.Sprintf("%s was one of %d operations, and is none of %d now", before.launches[n].title(), m, n)
	case f.place != before.place || !sameResult(f.result, before.result):
		return "it returns another value"
	case len(f.before) != len(before.before) || len(f.after) != len(before.after) || !slices.Equal(f.leaves, before.leaves):
		return "the optimizers' Steps are not those before"
	}
	return ""
}

func sameResult(r, s *Tensor) bool { return (r == nil) == (s == nil) && (r == nil || r.typ == s.typ) }

// differs tells how the i-th launches differ; "": they are the same.
func (f *form) differs(before *form, i int) string {
	now, then := &f.launches[i], &before.launches[i]
	switch how := now.kernel.Differs(then.kernel); how {
	case "":
	case "another operation":
		return fmt.Sprintf("%s, where %s was before", now.title(), then.title())
	default:
		return fmt.Sprintf("%s has %s than before", now.title(), how)
	}
	for j, s := range now.places {
		a, b := now.args[j], then.args[j]
		if s != then.places[j] || a.Offset != b.Offset || s < 0 && a.Mem.Addr != b.Mem.Addr {
			return fmt.Sprintf("%s takes other values than before", now.title())
		}
	}
	if !slices.Equal(now.cells, then.cells) {
		return fmt.Sprintf("%s takes other numbers than before", now.title())
	}
	if (now.key < 0) != (then.key < 0) || now.key >= 0 && !f.keys.draws(now.key, &before.keys, then.key) {
		return fmt.Sprintf("%s draws from another path than before", now.title())
	}
	return now.numbers(then)
}

// numbers tells which parameter that travels with a launch is another than before.
func (l *launchRecord) numbers(then *launchRecord) string {
	for i := range l.params.N {
		key, random := randomKey[l.kernel.Op.Code]
		planned := slices.ContainsFunc(l.cells, func(c cellRecord) bool { return c.param == i })
		if planned || random && key == i && l.key >= 0 {
			continue
		}
		if a, b := l.params.P[i], then.params.P[i]; a != b {
			return fmt.Sprintf("%s has the number %s, and %s before", l.title(), number(a.Value), number(b.Value))
		}
	}
	return ""
}

// number is a launch parameter, which is a float64 or an integer.
func number(bits uint64) string {
	if int64(bits) > -1<<40 && int64(bits) < 1<<40 {
		return fmt.Sprint(int64(bits))
	}
	return fmt.Sprint(math.Float64frombits(bits))
}

// title is a launch for people: operation and line.
func (l *launchRecord) title() string {
	return fmt.Sprintf("%s at %s", l.kernel.What(), l.params.Site.String())
}

// draws tells whether a key follows from the same as key j of another recording of the step.
func (r *keyring) draws(i int, s *keyring, j int) bool {
	d, e := &r.keys[i], &s.keys[j]
	if d.kind != e.kind || d.fold != e.fold {
		return false
	}
	switch d.kind {
	case keyOf:
		return d.from == e.from && (d.from == 0 || r.paths[d.from].path == s.paths[e.from].path)
	case keyDrawn:
		return d.path == e.path && r.paths[d.path].count == s.paths[e.path].count && r.draws(d.from, s, e.from)
	case keyFolded:
		return r.draws(d.from, s, e.from)
	default: // a constant
		return true
	}
}
