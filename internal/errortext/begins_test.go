package errortext

import "testing"

// TestBegins: which rows are run over a window is known from what their texts begin with, for all but PyTorch's
// out-of-memory, whose first words may be missing; a text counts that begins in the line and ends in the next.
func TestBegins(t *testing.T) {
	for i := range rows {
		r := &rows[i]
		if r.begins == nil && !r.pytorch {
			t.Errorf("%s is run over every line: its pattern begins with anything", r.Name)
		}
		for _, b := range r.begins {
			if !r.mayBegin("é: "+b+" rest", 5) || r.mayBegin("é: "+b, 3) && len(r.begins) == 1 {
				t.Errorf("%s: %q", r.Name, b)
			}
		}
	}
	if got := lowered("CUDA Größe İ\xff"); got != "cuda größe İ\xff" {
		t.Errorf("%q", got)
	}
}
