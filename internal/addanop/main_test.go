package main

import (
	"os"
	"strings"
	"testing"
)

// TestPage: every edit of the page finds its place, an elementwise op takes no more than three files by hand, and the page is
// short. Whether the edits do what the page says is for the command itself to show.
func TestPage(t *testing.T) {
	t.Chdir("../..")
	text, err := os.ReadFile(page)
	if err != nil {
		t.Fatal(err)
	}
	steps, err := parse(string(text))
	if err != nil {
		t.Fatal(err)
	}
	edited, first := map[string]string{}, map[string]bool{}
	commands := 0
	for _, s := range steps {
		if s.command != "" {
			commands++
			continue
		}
		if commands == 0 {
			first[s.file] = true
		}
		if edited[s.file] == "" {
			b, err := os.ReadFile(s.file)
			if err != nil {
				t.Fatal(err)
			}
			edited[s.file] = string(b)
		}
		after, err := s.edit(edited[s.file])
		if err != nil {
			t.Errorf("%s: %v", s.String(), err)
			continue
		}
		edited[s.file] = after
	}
	if len(first) == 0 || len(first) > 3 {
		t.Errorf("an elementwise op takes %d files: %v", len(first), first)
	}
	if commands < 10 {
		t.Errorf("%d commands", commands)
	}
}

func TestParse(t *testing.T) {
	for text, words := range map[string]string{
		"```go\nx\n```":                          "where the block belongs",
		"In `a.go`, before `b`:\n\n```go\nx\n":   "no end",
		"In `a.go` before `b`:\n\n```go\nx\n```": "where the block belongs",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), words) {
			t.Errorf("%q: %v", text, err)
		}
	}
	steps, err := parse("In `a.go`, before `	b`:\n\n```go\n	x\n```\n\n```sh\ngo vet\ngo test\n```\n")
	if err != nil || len(steps) != 3 || steps[2].command != "go test" {
		t.Fatalf("%+v, %v", steps, err)
	}
	if got, err := steps[0].edit("a\n	b c\n"); got != "a\n	x\n	b c\n" || err != nil {
		t.Errorf("%q, %v", got, err)
	}
	for _, bad := range []string{"a\n", "	b\n	b\n"} {
		if got, err := steps[0].edit(bad); err == nil {
			t.Errorf("%q became %q", bad, got)
		}
	}
}
