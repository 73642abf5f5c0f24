package ptx

import (
	"strconv"
	"strings"
	"sync"
)

// need is what a form asks of a module.
type need struct {
	version Version
	target  Target
	last    int // the last architecture that has the form; 0 if it is still there
}

// formTable holds the needs of the accepted forms by family and key. Lines of forms.txt are cut only when an instruction of
// their family is met: loading a module must not pay for the whole table.
type formTable struct {
	lines map[string][]string
	mu    sync.Mutex
	cut   map[string]map[string]need
}

var forms = sync.OnceValue(func() *formTable {
	t := &formTable{lines: map[string][]string{}, cut: map[string]map[string]need{}}
	for line := range strings.Lines(tableText()) {
		if family, rest, ok := strings.Cut(strings.TrimSuffix(line, "\n"), " "); ok && family != "#" {
			t.lines[family] = append(t.lines[family], rest)
		}
	}
	return t
})

// find looks a form up by its projection onto one facet.
func (t *formTable) find(family, key string) (need, bool) {
	t.mu.Lock()
	defer t.mu.Unlock()
	keys := t.cut[family]
	if keys == nil {
		keys = map[string]need{}
		for _, line := range t.lines[family] {
			cutLine(line, keys)
		}
		t.cut[family] = keys
	}
	n, ok := keys[key]
	return n, ok
}

// cutLine reads "7.8 sm_90 key key …"; an empty key stands for the form without modifiers of the facet.
func cutLine(line string, keys map[string]need) {
	version, rest, _ := strings.Cut(line, " ")
	target, rest, _ := strings.Cut(rest, " ")
	n := need{version: versionOf(version)}
	first, last, bounded := strings.Cut(target, "-")
	n.target, _ = parseTarget(first)
	if bounded {
		t, _ := parseTarget(last)
		n.last = t.SM
	}
	for key := range strings.SplitSeq(rest, " ") {
		keys[key] = n
	}
}

func versionOf(s string) Version {
	major, minor, _ := strings.Cut(s, ".")
	a, _ := strconv.Atoi(major)
	b, _ := strconv.Atoi(minor)
	return Version{a, b}
}

// join is the need of a form that must satisfy both.
func (n need) join(o need) need {
	if n.version.Less(o.version) {
		n.version = o.version
	}
	if o.target.SM > n.target.SM || o.target.SM == n.target.SM && o.target.Suffix != 0 {
		n.target = o.target
	}
	if n.last == 0 || o.last != 0 && o.last < n.last {
		n.last = o.last
	}
	return n
}

// met says what a module lacks, or "".
func (n need) met(m *Module) string {
	switch {
	case m.Version.Less(n.version):
		return "needs PTX " + n.version.String() + " or later"
	case n.target.Suffix != 0 && (m.Target.Suffix == 0 || m.Target.SM < n.target.SM):
		return "needs target " + n.target.String()
	case m.Target.SM < n.target.SM:
		return "needs target " + n.target.String() + " or higher"
	case n.last != 0 && m.Target.SM > n.last:
		return "is gone after target sm_" + strconv.Itoa(n.last)
	}
	return ""
}
