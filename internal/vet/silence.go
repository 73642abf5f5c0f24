package vet

import "strings"

// Silences are the rules that lines of a file are not told of, as comments name them; an empty list is for all.
type Silences map[int][]string

// Add takes the names of a comment, with spaces or commas between them.
func (s Silences) Add(line int, names string) {
	s[line] = append(s[line], strings.FieldsFunc(names, func(r rune) bool { return r == ' ' || r == ',' || r == '\t' })...)
}

// Has tells whether a line is not told of a rule.
func (s Silences) Has(line int, r Rule) bool {
	names, ok := s[line]
	for _, n := range names {
		if r.is(n) {
			return true
		}
	}
	return ok && len(names) == 0
}
