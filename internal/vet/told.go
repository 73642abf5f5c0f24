package vet

import (
	"cmp"
	"fmt"
	"path/filepath"
	"strings"
)

// Told are findings in Python that were told: several programs may import the file in which one lies.
type Told map[string]bool

// Again tells whether a finding was told before, of this program or of another, and remembers it.
func (t Told) Again(program string, f *Found) bool {
	if strings.HasSuffix(program, ".go") {
		return false
	}
	key := fmt.Sprint(filepath.Clean(cmp.Or(f.File, program)), ":", f.Cell, ":", f.Line, " ", f.Rule)
	again := t[key]
	t[key] = true
	return again
}
