// Package vettest reads the marks of programs that the rules of package vet are tested with: "want: R06 V14" in a comment at the end
// of a line that these rules find something in, "near: R06" where one nearly would.
package vettest

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/vet"
)

var (
	want = regexp.MustCompile(`(?://|#) want: ([A-Z0-9 ]+)`)
	near = regexp.MustCompile(`(?://|#) near: ([A-Z0-9 ]+)`)
)

// Wanted are "line rule" of a program's marks, sorted.
func Wanted(source string) (all []string) {
	for i, line := range strings.Split(source, "\n") {
		for _, r := range marks(want, line) {
			all = append(all, fmt.Sprintf("%d %s", i+1, r))
		}
	}
	slices.Sort(all)
	return all
}

func marks(mark *regexp.Regexp, source string) (rules []string) {
	for _, m := range mark.FindAllStringSubmatch(source, -1) {
		rules = append(rules, strings.Fields(m[1])...)
	}
	return rules
}

// Unlike shows what is wanted and what is there, if they differ.
func Unlike(want, got []string) string {
	if slices.Equal(want, got) {
		return ""
	}
	return fmt.Sprintf("  %q\n  %q", want, got)
}

// Examples hands out the programs of all rules in a language, with their rules. A rule has them in the languages that it is for, with
// marks in the broken one alone.
func Examples(t testing.TB, in vet.Languages, language string, each func(r vet.Rule, broken, mended string)) {
	t.Helper()
	for _, r := range vet.Rules() {
		examples := slices.DeleteFunc(r.Examples(), func(e vet.Example) bool { return e.Language != language })
		if r.In.Has(in) != (len(examples) == 1) {
			t.Errorf("%s is for %s and has %d programs in %s", r.ID, r.In, len(examples), in)
		}
		for _, e := range examples {
			if len(Wanted(e.Broken)) == 0 || len(Wanted(e.Mended)) > 0 {
				t.Errorf("%s: marks of the programs", r.ID)
			}
			each(r, e.Broken, e.Mended)
		}
	}
}

// Enough demands for each rule of a language so many marks of each kind in some programs.
func Enough(t *testing.T, in vet.Languages, sources []string, planted, misses int) {
	t.Helper()
	wanted, close := map[string]int{}, map[string]int{}
	for _, s := range sources {
		for _, r := range marks(want, s) {
			wanted[r]++
		}
		for _, r := range marks(near, s) {
			close[r]++
		}
	}
	for _, r := range vet.Rules() {
		if r.In.Has(in) && (wanted[r.ID] < planted || close[r.ID] < misses) {
			t.Errorf("%s in %s: %d planted and %d near misses; %d and %d are wanted", r.ID, in, wanted[r.ID], close[r.ID], planted, misses)
		}
	}
}
