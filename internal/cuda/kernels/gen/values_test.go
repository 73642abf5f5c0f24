package main

import (
	"testing"

	"github.com/warpline-ml/warpline/internal/ir"
)

// TestWords: every elementwise op that a value may call has a word in C++.
func TestWords(t *testing.T) {
	for code := ir.Invalid + 1; int(code) < ir.Codes; code++ {
		row := code.Row()
		callable := row.Group == ir.Elementwise && row.Params == 0 && row.Class != ir.Bools && row.Class != ir.Bits && (row.Value == "" || row.ByHand)
		if callable && words[code] == "" {
			t.Errorf("%s has no word in C++", code)
		}
	}
}

func TestSteps(t *testing.T) {
	got, err := cpp(ir.Softsign)
	if want := "auto v2 = abs(x); auto v3 = C(1) + v2; auto v4 = x / v3; return v4;"; err != nil || got != want {
		t.Errorf("%q, %v, want %q", got, err, want)
	}
}
