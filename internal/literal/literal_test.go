package literal

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/testutil"
)

func TestSet(t *testing.T) {
	words := []string{"cuda", "CUDA error", "x", "ab", "error", "É", "rror"}
	s := NewSet(words...)
	r := testutil.Rand(t)
	for range 3000 {
		text := ""
		for range r.IntN(8) {
			text += []string{"cud", "CUDA", "a", "X", " ", "ErrOR", "é", "b", "É", "\xff"}[r.IntN(10)]
		}
		own := r.IntN(len(text) + 2)
		var got, want []string
		s.Each(text, own, func(word, at int) bool { got = append(got, fmt.Sprint(at, word)); return true })
		for at := range min(own, len(text)) {
			for i, w := range words {
				if strings.HasPrefix(Lower(text[at:]), Lower(w)) {
					want = append(want, fmt.Sprint(at, i))
				}
			}
		}
		if !slices.Equal(got, want) || s.Any(text) != slices.ContainsFunc(words, func(w string) bool { return strings.Contains(Lower(text), Lower(w)) }) {
			t.Fatalf("%q up to %d: %v, want %v", text, own, got, want)
		}
	}
}

// TestTable compares with running the expressions themselves.
func TestTable(t *testing.T) {
	forms := [][]string{
		{`(?:(red|blue) car\W*)?stops at(\d+)`, `no car`}, {`\bstep (\d+)`}, {`"(\w+)"is (?:not )?red`}, {`lib(?:a|b|red)\.so:lost`, `(x+)y`}, {`[ab]c|bd`},
	}
	var table []*Pattern
	for _, f := range forms[:4] {
		p := NewPattern(`(?i)`, f...)
		if !p.Begins() {
			t.Fatal(p)
		}
		table = append(table, p)
	}
	if NewPattern("", forms[4]...).Begins() {
		t.Error("a class is no beginning")
	}
	all := NewTable(table...)
	r := testutil.Rand(t)
	parts := []string{"red car", "BLUE CAR", ", ", "stops at", "7", "no car", "step 3", "_", " ", `"w"is `, "not ", "red", "lib", "a", ".so:lost", "x", "y"}
	for range 5000 {
		text := ""
		for range r.IntN(9) {
			text += parts[r.IntN(len(parts))]
		}
		own := len(text)
		i, got := all.Find(all.Candidates(nil, text, own), text, Lower(text))
		var want []int
		which := 0
		for n, p := range table {
			if want = regexp.MustCompile(p.String()).FindStringSubmatchIndex(text); want != nil {
				which = n
				break
			}
		}
		if !slices.Equal(got, want) || i != which {
			t.Fatalf("%q: pattern %d %v, want %d %v", text, i, got, which, want)
		}
	}
}
