package main

import (
	"encoding/json"
	"fmt"
	"html"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/warpline-ml/warpline/examples/lessons"
	"github.com/warpline-ml/warpline/internal/lesson"
)

// item is what a lesson on computing with GPUs should have, and where ours has it.
type item struct {
	ID, What string
	At       []string // pages with their passages
	Says     []string // what stands there, or what a command tells
	Commands []string
	Tests    []string // PACKAGE:TEST
	Listings []string // that stand in one of the passages
}

// quickly are command lines that are quick enough to be run here, by how they begin.
var quickly = []string{"plan ", "learn hint ", "torch ", "sim cards"}

// TestLessonItems: docs/lesson-items.json names for each item a passage, a command or a test, which is there and says what it should.
func TestLessonItems(t *testing.T) {
	text, err := os.ReadFile(filepath.Join("..", "..", "docs", "lesson-items.json"))
	if err != nil {
		t.Fatal(err)
	}
	var items []item
	if err := json.Unmarshal(text, &items); err != nil {
		t.Fatal(err)
	}
	if len(items) != 114 {
		t.Errorf("%d items", len(items))
	}
	seen := map[string]bool{}
	for _, i := range items {
		if seen[i.ID] || i.What == "" || len(i.At)+len(i.Commands)+len(i.Tests) == 0 {
			t.Errorf("%s is there twice, or has nothing to show", i.ID)
		}
		seen[i.ID] = true
		shown, listings := i.shown(t)
		for _, trouble := range i.troubles(shown, listings) {
			t.Error(trouble)
		}
		i.altered(t, shown, listings)
	}
}

// shown is what the passages and commands of an item say, and the listings that stand there.
func (i *item) shown(t *testing.T) (text string, listings []string) {
	t.Helper()
	var b strings.Builder
	for _, at := range i.At {
		text, has, ok := passage(t, at)
		if !ok {
			t.Errorf("%s: there is no %s", i.ID, at)
		}
		b.WriteString(text)
		listings = append(listings, has...)
	}
	for _, line := range i.Commands {
		b.WriteString(commandOf(t, i.ID, strings.TrimPrefix(line, "warpline ")))
	}
	for _, name := range i.Tests {
		if !testThere(t, name) {
			t.Errorf("%s: there is no %s", i.ID, name)
		}
	}
	return b.String(), listings
}

// troubles are what should stand there and does not.
func (i *item) troubles(shown string, listings []string) (list []string) {
	for _, s := range i.Says {
		if !strings.Contains(shown, s) {
			list = append(list, fmt.Sprintf("%s: %q is not said by %v %v", i.ID, s, i.At, i.Commands))
		}
	}
	for _, l := range i.Listings {
		if !slices.Contains(listings, l) {
			list = append(list, fmt.Sprintf("%s: listing %s is not in %v, which have %v", i.ID, l, i.At, listings))
		}
	}
	return list
}

// altered sees that each value which an item states is looked for: with any of its digits another it is not found.
func (i *item) altered(t *testing.T, shown string, listings []string) {
	t.Helper()
	for k, s := range i.Says {
		for at, c := range []byte(s) {
			if c < '0' || c > '9' {
				continue
			}
			other := *i
			other.Says = slices.Clone(i.Says)
			other.Says[k] = s[:at] + string('0'+(c-'0'+1)%10) + s[at+1:]
			if len(other.troubles(shown, listings)) == 0 {
				t.Errorf("%s: %q would do as well as %q", i.ID, other.Says[k], s)
			}
		}
	}
}

var tags = regexp.MustCompile(`<[^>]*>`)

// passage is what a page says at a place, in words, with what its listings print, and those listings.
func passage(t *testing.T, at string) (text string, listings []string, ok bool) {
	t.Helper()
	if id, quiz := strings.CutPrefix(at, "/quiz/"); quiz {
		q, ok := lesson.FindQuiz(id)
		if !ok {
			return "", nil, false
		}
		return html.UnescapeString(tags.ReplaceAllString(q.HTML(), "")), nil, true
	}
	if at == "/learn/" {
		var b strings.Builder
		for _, l := range lesson.All() {
			b.WriteString(l.HTML(false))
		}
		return tags.ReplaceAllString(b.String(), ""), nil, true
	}
	l, s, ok := lesson.Passage(strings.TrimPrefix(at, "/learn/"))
	if !ok {
		return "", nil, false
	}
	one := *l
	one.Sections = []lesson.Section{*s}
	text = html.UnescapeString(tags.ReplaceAllString(one.HTML(false), ""))
	for _, b := range s.Blocks {
		if b.Kind != lesson.Program && b.Kind != lesson.Cell {
			continue
		}
		listings = append(listings, b.Text)
		if l, _ := lessons.Find(b.Text); l.Run != nil {
			printed, err := os.ReadFile(filepath.Join("..", "..", "examples", "lessons", "testdata", b.Text+".txt"))
			if err != nil {
				t.Error(err)
			}
			text += string(printed)
		}
	}
	return text, listings, true
}

// commandOf is what a command line tells, if it is quick; of the others it is only seen that they are there.
func commandOf(t *testing.T, id, line string) string {
	t.Helper()
	cmd, rest, err := newRoot().Find(strings.Fields(line))
	if err != nil || !cmd.HasParent() || cmd.ParseFlags(rest) != nil {
		t.Errorf("%s: warpline %s: %v", id, line, err)
		return ""
	}
	if !slices.ContainsFunc(quickly, func(begin string) bool { return strings.HasPrefix(line, begin) }) {
		return ""
	}
	status, stdout, stderr := command(t.Context(), strings.Fields(line)...)
	if status > 1 {
		t.Errorf("%s: warpline %s: %d: %s", id, line, status, stderr)
	}
	return stdout
}

// testThere reports whether a package has a test.
func testThere(t *testing.T, name string) bool {
	t.Helper()
	pkg, test, _ := strings.Cut(name, ":")
	files, err := filepath.Glob(filepath.Join("..", "..", filepath.FromSlash(pkg), "*_test.go"))
	if err != nil {
		t.Fatal(err)
	}
	return slices.ContainsFunc(files, func(f string) bool {
		text, err := os.ReadFile(f)
		return err == nil && strings.Contains(string(text), "\nfunc "+test+"(t *testing.T)")
	})
}
