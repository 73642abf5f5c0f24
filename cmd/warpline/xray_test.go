package main

import (
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
)

// TestXray: what docs/xray.md shows of a simulated card is what its commands say, line for line; "…" stands for others.
func TestXray(t *testing.T) { runsDoc(t, "xray.md", 4) }

// TestPlanDoc is the same of docs/plan.md.
func TestPlanDoc(t *testing.T) { runsDoc(t, "plan.md", 5) }

// runsDoc runs the commands of a page, of which there are at least so many.
func runsDoc(t *testing.T, page string, least int) {
	t.Helper()
	doc, err := os.ReadFile(filepath.Join("..", "..", "docs", page))
	if err != nil {
		t.Fatal(err)
	}
	newRoom(t)
	ran := 0
	for _, block := range regexp.MustCompile("(?s)```console\n(.*?)```").FindAllStringSubmatch(string(doc), -1) {
		for _, shown := range strings.Split("\n"+block[1], "\n$ warpline ")[1:] {
			line, want, _ := strings.Cut(shown, "\n")
			code, out, errs := command(t.Context(), strings.Fields(line)...)
			if code != exitDone {
				t.Fatalf("%s: %d\n%s", line, code, errs)
			}
			ran++
			sameText(t, line, out, want)
		}
	}
	if ran < least {
		t.Errorf("%d commands", ran)
	}
}

// lineNumbers are what an edit of our own files above them changes.
var lineNumbers = regexp.MustCompile(`\.go:\d+`)

// sameText compares an output with what is shown of it: runs of lines, with others between them.
func sameText(t *testing.T, line, out, want string) {
	t.Helper()
	out, want = lineNumbers.ReplaceAllString(out, ".go:N"), lineNumbers.ReplaceAllString(want, ".go:N")
	for i, part := range strings.Split("\n"+strings.TrimRight(want, "\n")+"\n", "\n…\n") {
		part = strings.Trim(part, "\n")
		if part == "" {
			continue
		}
		at := strings.Index(out, part)
		if at < 0 {
			t.Errorf("%s: part %d is not, or not here, in\n%s\nwhich is\n%s", line, i, out, part)
			return
		}
		out = out[at+len(part):]
	}
}
