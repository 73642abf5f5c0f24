package joblog

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/internal/finding"
)

// block is one of testdata's texts.
type block struct {
	name, text, where string
	yes               bool
}

func blocks(t *testing.T) (all []block) {
	t.Helper()
	f, err := os.Open("testdata/signs.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	in := bufio.NewScanner(f)
	for n := 1; in.Scan(); n++ {
		if head, ok := strings.CutPrefix(in.Text(), "## "); ok {
			words := strings.Fields(head)
			if len(words) < 3 || words[1] != "yes" && words[1] != "no" {
				t.Fatalf("line %d: no \"NAME yes|no SOURCE\"", n)
			}
			all = append(all, block{name: words[0], yes: words[1] == "yes", where: fmt.Sprintf("signs.txt:%d", n)})
		} else if len(all) > 0 {
			all[len(all)-1].text += in.Text() + "\n"
		}
	}
	if err := in.Err(); err != nil {
		t.Fatal(err)
	}
	return all
}

// verdicts are the names of findings of this package, and their rules.
var verdicts = map[string]string{
	"own-error": "J01", "segfault": "J01", "aborted-exit": "J01", "exit-status": "J01", "hardware": "J02", "setup": "J02", "ended-from-outside": "J03", "network": "J03",
	"host": "J04", "killed": "J04", "bus-error": "J04", "hang": "R37", "slow-transport": "R36", "wrong-interface": "D46", "loopback-master": "D46", "node-without-infiniband": "D46",
}

func TestEverySignIsKnown(t *testing.T) {
	known := map[string]bool{"elastic-table": true}
	for _, s := range signs {
		known[s.name] = true
	}
	for name := range verdicts {
		known[name] = true
	}
	has := map[string][2]bool{}
	for _, b := range blocks(t) {
		if !known[b.name] {
			t.Errorf("%s: there is no rule %q", b.where, b.name)
			continue
		}
		l, _, err := Reader{}.read(context.Background(), "job.log", strings.NewReader(b.text))
		if err != nil {
			t.Fatal(err)
		}
		report := l.report()
		hit := slices.ContainsFunc(l.Events, func(e *Event) bool { return e.Name == b.name })
		for _, f := range report.Findings {
			if f.Name == b.name && verdicts[b.name] != "" {
				hit = true
				if f.Rule != verdicts[b.name] {
					t.Errorf("%s: rule %s, want %s", b.where, f.Rule, verdicts[b.name])
				}
			}
			if f.Title == "" || f.Fix == "" || f.DisprovedBy == "" || f.Confidence == "" || f.Gain.Text == "" || len(f.Evidence) == 0 {
				t.Errorf("%s: a part of a finding is empty: %+v", b.where, f)
			}
		}
		if hit != b.yes {
			var names []string
			for _, e := range l.Events {
				names = append(names, e.Name)
			}
			t.Errorf("%s (%s): found %v, want %v; events %v, findings %v", b.where, b.name, hit, b.yes, names, titles(report.Findings))
		}
		seen := has[b.name]
		seen[map[bool]int{true: 1, false: 0}[b.yes]] = true
		has[b.name] = seen
	}
	for name := range known {
		if !has[name][0] || !has[name][1] {
			t.Errorf("%s lacks a text that it must find, or one that it must leave alone", name)
		}
	}
}

func titles(all []finding.Finding) (out []string) {
	for _, f := range all {
		out = append(out, f.Rule+" "+f.Name+" "+f.Title)
	}
	return out
}

// TestIsShort: a short text with control characters is one, and a picture is none.
func TestIsShort(t *testing.T) {
	if !Is([]byte("RuntimeError: caf\xe9 CUDA error: device-side assert triggered\x01\x02\n")) {
		t.Error("a text with two control characters is none")
	}
	if Is(bytes.Repeat([]byte("\x00\x01\x02pixels"), 20)) || Is([]byte("\x80\x02}q\x00.")) {
		t.Error("a picture or a pickle is a text")
	}
}
