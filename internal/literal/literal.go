// Package literal finds which of many words a text has, in one pass and without regard to the case of ASCII's letters, and
// runs regular expressions only where their matches can begin. Logs are long, and nearly no line of them is of interest.
package literal

import (
	"regexp"
	"regexp/syntax"
	"slices"
	"strings"
	"sync"

	"github.com/warpline-ml/warpline/internal/sorting"
)

// Set is words that are looked for together: by their first byte, then by the second, then one by one.
type Set struct {
	words []string // in lower case
	lead  [256]uint8
	next  [][256]uint16
	same  [][]int32 // words with the same first two bytes; none at 0
}

// NewSet is a set of words; each has at least one byte.
func NewSet(words ...string) *Set {
	s := &Set{next: make([][256]uint16, 1), same: make([][]int32, 1)}
	for i, w := range words {
		w = Lower(w)
		s.words = append(s.words, w)
		for second := range 256 {
			if len(w) == 1 || fold[second] == w[1] {
				s.add(w[0], byte(second), int32(i))
			}
		}
	}
	return s
}

// add takes a word with its first bytes. Words with the same second byte in the other case have a list of their own.
func (s *Set) add(first, second byte, word int32) {
	if s.lead[first] == 0 {
		for b := range 256 {
			if fold[b] == first {
				s.lead[b] = uint8(len(s.next))
			}
		}
		s.next = append(s.next, [256]uint16{})
	}
	list := &s.next[s.lead[first]][second]
	if *list == 0 {
		*list = uint16(len(s.same))
		s.same = append(s.same, nil)
	}
	s.same[*list] = append(s.same[*list], word)
}

// Each calls found with each word that begins in the first own bytes of a text, and where, in the order of places, until
// found returns false.
func (s *Set) Each(text string, own int, found func(word, at int) bool) {
	for at := range min(own, len(text)) {
		second := byte(0)
		if at+1 < len(text) {
			second = text[at+1]
		}
		list := s.next[s.lead[text[at]]][second]
		if list == 0 {
			continue
		}
		for _, i := range s.same[list] {
			if hasPrefix(text[at:], s.words[i]) && !found(int(i), at) {
				return
			}
		}
	}
}

// Any tells that a text has one of the words.
func (s *Set) Any(text string) (has bool) {
	s.Each(text, len(text), func(int, int) bool { has = true; return false })
	return has
}

// fold is a byte in lower case.
var fold = func() (table [256]byte) {
	for i := range table {
		table[i] = byte(i)
		if 'A' <= i && i <= 'Z' {
			table[i] += 'a' - 'A'
		}
	}
	return table
}()

// hasPrefix tells that a text begins with a word, which is in lower case.
func hasPrefix(text, word string) bool {
	if len(text) < len(word) {
		return false
	}
	for i := range len(word) {
		if fold[text[i]] != word[i] {
			return false
		}
	}
	return true
}

// Lower is a text with ASCII's letters in lower case; every byte stays in its place.
func Lower(text string) string {
	b := []byte(text)
	for i, c := range b {
		b[i] = fold[c]
	}
	return string(b)
}

// Pattern is a regular expression of several forms, of which the first that matches counts. It is compiled when it first runs.
type Pattern struct {
	flags    string
	texts    []string
	forms    []form
	compiled func() *regexp.Regexp
}

// form is one of them.
type form struct {
	heads   []string // what a match begins with, in lower case; nil where it may begin with anything
	needs   string   // what a match has somewhere, in lower case
	bounded bool     // no letter, digit or underscore stands before it
}

// NewPattern is a pattern of forms in the syntax of package regexp. Flags stand before all of them ("(?i)"), or are empty.
func NewPattern(flags string, forms ...string) *Pattern {
	p := &Pattern{flags: flags, texts: forms}
	p.compiled = sync.OnceValue(func() *regexp.Regexp { return regexp.MustCompile(flags + `\A(?:` + strings.Join(forms, "|") + `)`) })
	for _, f := range forms {
		parsed, err := syntax.Parse(flags+f, syntax.Perl)
		if err != nil {
			panic(err) // as regexp.MustCompile
		}
		p.forms = append(p.forms, formOf(parsed.Simplify()))
	}
	return p
}

func formOf(re *syntax.Regexp) form {
	f := form{needs: needs(re), bounded: re.Op == syntax.OpConcat && re.Sub[0].Op == syntax.OpWordBoundary}
	for _, h := range heads(re) {
		if h.text == "" {
			return form{}
		}
		f.heads = append(f.heads, h.text)
	}
	return f
}

// String is the regular expression whose matches are looked for.
func (p *Pattern) String() string { return p.flags + strings.Join(p.texts, "|") }

// Begins tells that it is known what matches begin with. Patterns for which it is not cannot be in a Table.
func (p *Pattern) Begins() bool {
	return !slices.ContainsFunc(p.forms, func(f form) bool { return f.heads == nil })
}

// Match is where a match and its parentheses are if one begins at the text's byte at, as regexp.FindStringSubmatchIndex has it,
// or nil. What stands before at is not looked at.
func (p *Pattern) Match(text string, at int) []int {
	m := p.compiled().FindStringSubmatchIndex(text[at:])
	for i := range m {
		if m[i] >= 0 {
			m[i] += at
		}
	}
	return m
}

// Table is patterns that are looked for together.
type Table struct {
	patterns []*Pattern
	set      *Set
	owners   []owner // of the words of set
	longest  int
}

type owner struct {
	pattern int
	*form
}

// NewTable is a table of patterns, of all of which it is known what they begin with.
func NewTable(patterns ...*Pattern) *Table {
	t := &Table{patterns: patterns}
	var words []string
	for i, p := range patterns {
		for n := range p.forms {
			f := &p.forms[n]
			if f.heads == nil {
				panic("literal: a pattern may begin with anything: " + p.String())
			}
			for _, h := range f.heads {
				words = append(words, h)
				t.owners = append(t.owners, owner{i, f})
				t.longest = max(t.longest, len(h))
			}
		}
	}
	t.set = NewSet(words...)
	return t
}

// Longest is how many bytes are looked at to tell what may begin at a place.
func (t *Table) Longest() int { return t.longest }

// Candidate is where a match of a pattern may begin.
type Candidate struct {
	Pattern, At int
	needs       string
}

// Candidates are where matches may begin within the first own bytes of a text, in the order of patterns and then of places,
// appended to room.
func (t *Table) Candidates(room []Candidate, text string, own int) []Candidate {
	t.set.Each(text, own, func(word, at int) bool {
		if o := &t.owners[word]; !o.bounded || at == 0 || !InWord(text[at-1]) {
			room = append(room, Candidate{o.pattern, at, o.needs})
		}
		return true
	})
	sorting.By(room, func(a, b Candidate) int { return a.Pattern - b.Pattern })
	return room
}

// InWord tells that a byte is a letter, a digit or an underscore: between two of them there is no boundary of words.
func InWord(c byte) bool {
	return c == '_' || '0' <= c && c <= '9' || 'a' <= fold[c] && fold[c] <= 'z'
}

// Find is the first pattern that has a match at one of the candidates of a text, and its match, or nil. lower is the text as
// Lower has it.
func (t *Table) Find(candidates []Candidate, text, lower string) (pattern int, match []int) {
	for _, c := range candidates {
		if !strings.Contains(lower[c.At:], c.needs) {
			continue
		}
		if m := t.patterns[c.Pattern].Match(text, c.At); m != nil {
			return c.Pattern, m
		}
	}
	return 0, nil
}
