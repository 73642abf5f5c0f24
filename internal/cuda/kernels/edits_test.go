package kernels_test

import (
	"strings"
	"testing"
	"testing/fstest"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
)

const base = "// src/a.cu -DELEMENT=bf16; 01\none\ntwo\nthree\nfour\n"

// edits are of base, with hunks.
func edits(hunks string) string {
	return "// src/a.cu -DELEMENT=f16; 02\n" + kernels.EditsOf("a_bf16", base) + hunks
}

// TestApply: edits say what stays, goes and comes, and what they cannot be applied to is an error.
func TestApply(t *testing.T) {
	for _, c := range []struct{ hunks, want, err string }{
		{"", "one\ntwo\nthree\nfour\n", ""},
		{"@0 -1\n+1\n@1 -2\n", "1\ntwo\n", ""},
		{"@4 -0\n+five\n+@six -1\n", "one\ntwo\nthree\nfour\nfive\n@six -1\n", ""},
		{"@0 -4\n", "", ""},
		{"+zero\n", "zero\none\ntwo\nthree\nfour\n", ""},
		{"@0 -5\n", "", `line 3, "@0 -5\n": a_bf16 has 4 lines more`},
		{"@2 -1\n@2 -0\n", "", `line 4, "@2 -0\n": a_bf16 has 1 lines more`},
		{"@9223372036854775807 -9223372036854775807\n", "", "a_bf16 has 4 lines more"},
		{"@-1 -1\n", "", "a_bf16 has 4 lines more"},
		{"@1 -1", "", `line 3 is neither +TEXT nor @KEEP -LEAVE: "@1 -1"`},
		{"@1 -1 \n", "", "line 3 is neither"},
		{"<<<<<<< HEAD\n", "", "line 3 is neither"},
	} {
		got, err := kernels.Apply(edits(c.hunks), base)
		if c.err != "" {
			if err == nil || !strings.Contains(err.Error(), c.err) {
				t.Errorf("%q: error %v, want %s", c.hunks, err, c.err)
			}
		} else if err != nil || got != "// src/a.cu -DELEMENT=f16; 02\n"+c.want {
			t.Errorf("%q: %q, error %v", c.hunks, got, err)
		}
	}
}

// TestText: a module is read in either form, and edits of a module that has changed since are an error that tells the file.
func TestText(t *testing.T) {
	read := func(base, edits string) (string, error) {
		files := fstest.MapFS{"ptx/sm_80/a_bf16.ptx": {Data: []byte(base)}, "ptx/sm_80/a_f16.edits": {Data: []byte(edits)}}
		if _, err := (&kernels.Module{Name: "a_bf16", Target: "sm_80"}).Text(files); err != nil {
			t.Error(err)
		}
		text, err := (&kernels.Module{Name: "a_f16", Target: "sm_80"}).Text(files)
		return string(text), err
	}
	if got, err := read(strings.Replace(base, "; 01", "; 03", 1), edits("@1 -3\n")); err != nil || got != "// src/a.cu -DELEMENT=f16; 02\none\n" {
		t.Errorf("%q, error %v", got, err)
	}
	for _, c := range []struct{ base, edits, want string }{
		{strings.Replace(base, "two", "2", 1), edits("@1 -3\n"), "these are edits of another text of a_bf16"},
		{base, strings.Replace(edits(""), "a_bf16", "b_bf16", 1), "b_bf16.ptx"},
		{base, strings.Replace(edits(""), ", ", " ", 1), `the second line is not "// edits of NAME, SUM" but "`},
		{base, "", `the second line is not "// edits of NAME, SUM" but "`},
	} {
		_, err := read(c.base, c.edits)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "ptx/sm_80/a_f16.edits: ") {
			t.Errorf("error %v, want %s", err, c.want)
		}
	}
	if _, err := (&kernels.Module{Name: "none", Target: "sm_80"}).Text(fstest.MapFS{}); err == nil {
		t.Error("a module without a file has a text")
	}
}

// FuzzApply: hunks of any kind are applied or refused, and what is applied is the lines kept and those that came.
func FuzzApply(f *testing.F) {
	f.Add("@0 -1\n+1\n@1 -2\n")
	f.Add("@4 -0\n+five")
	f.Add("@-1 --1\n")
	f.Fuzz(func(t *testing.T, hunks string) {
		got, err := kernels.Apply(edits(hunks), base)
		if err == nil && len(got) > len(base)+len(hunks) {
			t.Errorf("%q makes %q", hunks, got)
		}
	})
}
