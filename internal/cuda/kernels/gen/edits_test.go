package main

import (
	"fmt"
	"maps"
	"math/rand/v2"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/cuda/kernels"
	"github.com/warpline-ml/warpline/internal/testutil"
)

// TestEdit: edits of random texts make the one of the other, and keep as many lines as a table of all pairs says that can be.
func TestEdit(t *testing.T) {
	r := rand.New(rand.NewPCG(testutil.Seed(t), 1))
	for range 2000 {
		lines := func() string {
			var b strings.Builder
			fmt.Fprintf(&b, "// %d\n", r.IntN(10))
			for range r.IntN(20) {
				fmt.Fprintln(&b, strings.Repeat("@+-"[r.IntN(3):], r.IntN(2)))
			}
			return b.String()
		}
		base, text := lines(), lines()
		if got, err := kernels.Apply(edit("m", base, text), base); err != nil || got != text {
			t.Fatalf("%q by edits of %q: %q, error %v", text, base, got, err)
		}
		_, a := body(base)
		_, b := body(text)
		want := common(a, b)
		if len(a)+len(b)-2*want > max(len(a), len(b)) {
			want = 0
		}
		if got := match(a, b); len(got) != want {
			t.Fatalf("%q and %q: %v, want %d pairs", a, b, got, want)
		}
	}
}

// common is the length of the longest common subsequence.
func common(a, b []string) int {
	row := make([]int, len(b)+1)
	for _, x := range a {
		diagonal := 0
		for j, y := range b {
			above := row[j+1]
			if row[j+1] = max(above, row[j]); x == y {
				row[j+1] = diagonal + 1
			}
			diagonal = above
		}
	}
	return row[len(b)]
}

// TestForms: in a family those after float32 and bfloat16 are edits of whichever makes them shorter, where that is at most
// half; others are whole; and a family that lacks a text is left alone.
func TestForms(t *testing.T) {
	t.Chdir(t.TempDir())
	long := func(head, line string) string { return head + "\n" + strings.Repeat("the same\n", 40) + line + "\n" }
	var units []unit
	var texts []string
	add := func(source, name, text string) {
		units, texts = append(units, unit{source: source, name: name, target: "sm_80"}), append(texts, text)
	}
	add("src/a.cu", "a_f16", long("// f16", "third"))
	add("src/a.cu", "a_bf16", strings.Repeat("another\n", 40)+long("", "second"))
	add("src/a.cu", "a_f32", long("// f32", "first"))
	add("src/a.cu", "a_u8", "// u8\nalone\n")
	add("src/a.cu", "a_more_f16", long("// f16", "of another family"))
	add("src/b.cu", "b_f32", long("// f32", "first"))
	add("src/b.cu", "b_f16", "")
	add("src/c.cu", "c", long("// f32", "first"))
	if err := os.MkdirAll("ptx/sm_80", 0o777); err != nil {
		t.Fatal(err)
	}
	for _, stale := range []string{"a_f16.ptx", "a_u8.edits", "b_f16.ptx"} {
		if err := os.WriteFile("ptx/sm_80/"+stale, []byte("stale\n"), 0o666); err != nil {
			t.Fatal(err)
		}
	}
	if err := store(forms(units, texts)); err != nil {
		t.Fatal(err)
	}
	entries, err := os.ReadDir("ptx/sm_80")
	if err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range entries {
		got = append(got, e.Name())
	}
	want := []string{"a_bf16.ptx", "a_f16.edits", "a_f32.ptx", "a_more_f16.ptx", "a_u8.ptx", "b_f16.ptx", "c.ptx"}
	if !slices.Equal(got, want) {
		t.Errorf("files %v, want %v", got, want)
	}
	for i, u := range units {
		if text, err := u.text(); u.source != "src/b.cu" && (err != nil || text != texts[i]) {
			t.Errorf("%s: %q, error %v", u.name, text, err)
		}
	}
	if e, _ := os.ReadFile("ptx/sm_80/a_f16.edits"); !strings.Contains(string(e), "edits of a_f32, ") {
		t.Errorf("%s", e)
	}
}

// stored compares the committed files with the forms of the texts that they have.
func stored(t *testing.T, units []unit, texts []string, spread testutil.Spread) {
	t.Helper()
	texts = slices.Clone(texts)
	for i, u := range units {
		if !spread.Takes(u.source + " " + u.stem()) { // for all targets or for none: forms for older cards may be edits of the base's
			texts[i] = ""
		}
	}
	files := forms(units, texts)
	if len(files) == 0 {
		t.Error("no family is tried")
	}
	for _, path := range slices.Sorted(maps.Keys(files)) {
		if text, _ := os.ReadFile(path); string(text) != files[path] {
			t.Errorf("%s is not what gen would write; run go generate ./internal/cuda/kernels", path)
		}
	}
}
