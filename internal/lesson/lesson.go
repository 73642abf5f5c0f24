// Package lesson has the lessons, the quizzes and the annotated listings of package examples/lessons, as data, and shows them:
// as text for a terminal and as pages for a browser.
//
//	lesson.go    what a lesson is, and how its file is read
//	quiz.go      final checks, and how they are scored
//	listing.go   programs with an explanation for each line
//	values.go    numbers that texts name, computed from the tables of cards
//	progress.go  what somebody has read and passed, on disk
//	terminal.go  text for a terminal
//	html.go      pieces of pages
//	cells.go     runs of listings, as processes of their own
//	exercises.go pages of package exercise
//	site.go      what a browser asks
//
// A lesson's file has lines of a few kinds; a blank line ends a paragraph, a list or a table:
//
//	title: minutes: objective: source:   at its head, a line each
//	## Title {#id}                       begins a section; the id is its anchor
//	> text                               a passage of history
//	- text                               an item of a list
//	| a | b |                            a row of a table, the first its head
//	:listing L08                         an annotated listing
//	:cell L08                            the same with numbers to change, to be run
//	:quick question || answer            a quick check
//	:open question || model answer       a question to be answered in one's own words
//	:artefact text                       what the learner should have in hand at the end
//
// In texts `code`, **strong**, *stressed* and [words](address) stand as in Markdown, and {=name} is a number of values.go.
package lesson

import (
	"fmt"
	"io/fs"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"
)

// IDs are the lessons in their order.
var IDs = []string{"architecture", "roles", "environment", "placement", "copies", "timing", "memory", "precision", "several", "profiling", "pitfalls"}

// Lesson is a text to read, with programs to run.
type Lesson struct {
	ID         string    `json:"id"`
	Title      string    `json:"title"`
	Minutes    int       `json:"minutes"`
	Objectives []string  `json:"objectives"`
	Sections   []Section `json:"sections"`
	Sources    []string  `json:"sources"`
}

// Section is a part of a lesson; passages are named by LESSON#ID.
type Section struct {
	ID     string  `json:"id"`
	Title  string  `json:"title"`
	Blocks []Block `json:"blocks"`
}

// Kind is what a block is.
type Kind string

// The kinds of blocks.
const (
	Paragraph Kind = "paragraph"
	History   Kind = "history"
	List      Kind = "list"
	Table     Kind = "table"
	Program   Kind = "listing" // Text is its id
	Cell      Kind = "cell"    // Text is a listing's id
	Quick     Kind = "quick"
	Open      Kind = "open"
	Artefact  Kind = "artefact"
)

// Block is a paragraph, a table or another piece of a section.
type Block struct {
	Kind   Kind       `json:"kind"`
	Text   string     `json:"text,omitempty"`
	Answer string     `json:"answer,omitempty"` // of Quick and Open
	Items  []string   `json:"items,omitempty"`
	Rows   [][]string `json:"rows,omitempty"`
}

// All are the lessons in their order. A mistake in a text is one of the build, and panics.
var All = sync.OnceValue(func() (all []*Lesson) {
	for _, id := range IDs {
		l, err := read(id)
		if err != nil {
			panic(err)
		}
		all = append(all, l)
	}
	return all
})

// Find is the lesson with an id.
func Find(id string) (*Lesson, bool) {
	for _, l := range All() {
		if l.ID == id {
			return l, true
		}
	}
	return nil, false
}

// Passage is the section that LESSON#ID names.
func Passage(at string) (*Lesson, *Section, bool) {
	id, anchor, _ := strings.Cut(at, "#")
	l, ok := Find(id)
	if !ok {
		return nil, nil, false
	}
	for i := range l.Sections {
		if l.Sections[i].ID == anchor {
			return l, &l.Sections[i], true
		}
	}
	return nil, nil, false
}

func read(id string) (*Lesson, error) {
	text, err := fs.ReadFile(texts, "text/"+id+".txt")
	if err != nil {
		return nil, err
	}
	l := &Lesson{ID: id}
	for i, line := range strings.Split(string(text), "\n") {
		if line, err = expand(line); err == nil {
			err = l.add(line)
		}
		if err != nil {
			return nil, fmt.Errorf("%s.txt:%d: %w", id, i+1, err)
		}
	}
	return l, nil
}

var (
	heading = regexp.MustCompile(`^## (.+) \{#([a-z0-9-]+)\}$`)
	named   = regexp.MustCompile(`\{=([A-Za-z0-9.-]+)\}`)
)

// expand puts numbers in the places of their names.
func expand(line string) (out string, err error) {
	out = named.ReplaceAllStringFunc(line, func(m string) string {
		v, ok := Value(m[2 : len(m)-1])
		if !ok {
			err = fmt.Errorf("no value is called %s", m)
		}
		return v
	})
	return out, err
}

// add takes the next line of a lesson's file.
func (l *Lesson) add(line string) error {
	if m := heading.FindStringSubmatch(line); m != nil {
		l.Sections = append(l.Sections, Section{ID: m[2], Title: m[1]})
		return nil
	}
	if len(l.Sections) == 0 {
		return l.head(line)
	}
	s := &l.Sections[len(l.Sections)-1]
	key, text, _ := strings.Cut(line, " ")
	switch key {
	case "":
		s.Blocks = append(s.Blocks, Block{}) // whatever follows is a block of its own
	case ">":
		s.join(History, text)
	case "-":
		b := s.last(List)
		b.Items = append(b.Items, text)
	case "|":
		b := s.last(Table)
		b.Rows = append(b.Rows, cells(line))
	case ":listing", ":cell", ":artefact":
		s.Blocks = append(s.Blocks, Block{Kind: Kind(key[1:]), Text: text})
	case ":quick", ":open":
		question, answer, ok := strings.Cut(text, " || ")
		if !ok {
			return fmt.Errorf("%s without || and an answer", key)
		}
		s.Blocks = append(s.Blocks, Block{Kind: Kind(key[1:]), Text: question, Answer: answer})
	default:
		s.join(Paragraph, line)
	}
	return nil
}

// cells are those of a row, of which the first may be empty.
func cells(row string) (list []string) {
	for _, c := range strings.Split(strings.TrimSuffix(strings.TrimPrefix(row, "|"), "|"), "|") {
		list = append(list, strings.TrimSpace(c))
	}
	return list
}

func (l *Lesson) head(line string) (err error) {
	key, text, ok := strings.Cut(line, ": ")
	switch {
	case line == "":
	case !ok:
		err = fmt.Errorf("%q is no line of a head", line)
	case key == "title":
		l.Title = text
	case key == "minutes":
		l.Minutes, err = strconv.Atoi(text)
	case key == "objective":
		l.Objectives = append(l.Objectives, text)
	case key == "source":
		l.Sources = append(l.Sources, text)
	default:
		err = fmt.Errorf("a head has no %s", key)
	}
	return err
}

// last is the last block, if it is of a kind, or a new one.
func (s *Section) last(k Kind) *Block {
	if n := len(s.Blocks); n > 0 && s.Blocks[n-1].Kind == "" {
		s.Blocks = s.Blocks[:n-1]
	} else if n > 0 && s.Blocks[n-1].Kind == k {
		return &s.Blocks[n-1]
	}
	s.Blocks = append(s.Blocks, Block{Kind: k})
	return &s.Blocks[len(s.Blocks)-1]
}

// has reports whether a lesson has a block of a kind.
func (l *Lesson) has(k Kind) bool {
	return slices.ContainsFunc(l.Sections, func(s Section) bool {
		return slices.ContainsFunc(s.Blocks, func(b Block) bool { return b.Kind == k })
	})
}

// join adds a line to a paragraph.
func (s *Section) join(k Kind, line string) {
	b := s.last(k)
	b.Text = strings.TrimSpace(b.Text + " " + line)
}
