package errortext

import (
	"bufio"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

// block is one of testdata's texts.
type block struct {
	name  string
	yes   bool
	sizes Sizes
	text  string
	where string
}

// blocks reads testdata.
func blocks(t *testing.T) (all []block) {
	t.Helper()
	files, err := filepath.Glob("testdata/*.txt")
	if err != nil || len(files) == 0 {
		t.Fatal("no texts", err)
	}
	for _, file := range files {
		f, err := os.Open(file)
		if err != nil {
			t.Fatal(err)
		}
		defer f.Close()
		in := bufio.NewScanner(f)
		for n := 1; in.Scan(); n++ {
			head, ok := strings.CutPrefix(in.Text(), "## ")
			if ok {
				words := strings.Fields(head)
				if len(words) < 3 || words[1] != "yes" && words[1] != "no" {
					t.Fatalf("%s:%d: no \"NAME yes|no SOURCE\"", file, n)
				}
				all = append(all, block{name: words[0], yes: words[1] == "yes", where: fmt.Sprintf("%s:%d", file, n)})
				if _, sizes, ok := strings.Cut(head, "(sizes "); ok {
					s := &all[len(all)-1].sizes
					if _, err := fmt.Sscanf(sizes, "%d %d %d %d", &s.Batch, &s.Context, &s.Vocab, &s.Heads); err != nil {
						t.Fatalf("%s:%d: %v", file, n, err)
					}
				}
				continue
			}
			if len(all) > 0 {
				all[len(all)-1].text += in.Text() + "\n"
			}
		}
		if err := in.Err(); err != nil {
			t.Fatal(err)
		}
	}
	return all
}

// judged are the findings of a text, and the rows that found them.
func judged(text string, s Sizes) (found []finding.Finding, rows []string) {
	var g Growth
	var numbers Numbers
	full := false
	scan := &Scanner{Found: func(m *Match) {
		rows = append(rows, m.Row.Name)
		full = full || m.OOM != nil
		found = append(found, Judge(m, s)...)
	}}
	lines := NewLines(strings.NewReader(text))
	for {
		line, n, ok := lines.Next()
		if !ok {
			break
		}
		g.Add(line)
		numbers.Add(line, n)
		scan.Add(Line{Number: n, Text: line, Rank: -1})
	}
	scan.Flush()
	if leak := g.Leak(); leak != nil && full {
		found = append(found, *leak)
	}
	return append(found, numbers.Findings()...), rows
}

var unfilled = regexp.MustCompile(`\$\d`)

// names are all that must have texts: rows of the table, rules over an out-of-memory, the leak, and figures that a training prints.
func names() map[string]string {
	all := map[string]string{"leak": "O10", "not-finite": "R43", "loss-scale-falls": "R44", "gradient-spike": "R46", "faster-than-peak": "R48", "mfu-too-high": "R49"}
	for _, r := range Rows() {
		all[r.Name] = r.Rule
	}
	for _, r := range memoryRules {
		all[r.Name] = r.Rule
	}
	return all
}

func TestEveryTextIsKnown(t *testing.T) {
	has := map[string][2]bool{}
	known := names()
	for _, b := range blocks(t) {
		rule, ok := known[b.name]
		if !ok {
			t.Errorf("%s: there is no rule %q", b.where, b.name)
			continue
		}
		seen := has[b.name]
		found, rows := judged(b.text, b.sizes)
		hit := false
		for _, r := range rows {
			hit = hit || r == b.name
		}
		for _, f := range found {
			if f.Name == b.name {
				hit = true
				if f.Rule != rule {
					t.Errorf("%s: rule %s, want %s", b.where, f.Rule, rule)
				}
			}
			if f.Title == "" || f.Fix == "" || f.DisprovedBy == "" || f.Confidence == "" || f.Gain.Text == "" || len(f.Evidence) == 0 {
				t.Errorf("%s: a part of a finding is empty: %+v", b.where, f)
			}
			if unfilled.MatchString(f.Title + f.Fix) {
				t.Errorf("%s: a part of the text was not filled in: %s; %s", b.where, f.Title, f.Fix)
			}
		}
		if hit != b.yes {
			t.Errorf("%s: found %v, want %v; it was read as %v", b.where, hit, b.yes, rows)
		}
		seen[map[bool]int{true: 1, false: 0}[b.yes]] = true
		has[b.name] = seen
	}
	for name := range known {
		if !has[name][1] {
			t.Errorf("%s has no text that it must find", name)
		}
		if !has[name][0] {
			t.Errorf("%s has no text that it must leave alone", name)
		}
	}
}
